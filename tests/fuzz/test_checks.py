"""Checks pass where nothing is wrong, and object to little that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from stmlang.fuzz import checks
from stmlang.fuzz.checks import CHECKS, agreement, batches, curvature, evaluation, gradients
from stmlang.fuzz.checks.differences import STEPS, extrapolated
from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import Point, point
from stmlang.fuzz.checks.programs import QUICK, execute, quick_compilation
from stmlang.fuzz.trial import Finding, NotApplicable, NothingClaimed, Trial, Way
from stmlang.oracle.recurrence import ReferenceResult
from tests.helpers.cases import DELTA, GIVEN, NONE, SMALL, SUM
from tests.helpers.turns import half, halves

CHAIN = Trial(f"scan a(heads = 2, key = 2, value = 2) on chain(t = 5) {{\n{GIVEN}{NONE}}}\n", "chain", "random", 0)
OVERWRITTEN = Trial(f"scan a(heads = 1, key = 2, value = 1) on chain(t = 4) {{\n{DELTA}}}\n", "chain", "random", 1)
RECURRENT, CHUNKS = Way("recurrent", {}), Way("linear", {"chunk": 2})
COMPILED = [name for name in CHECKS if name not in ("declared", "oracles")]


@pytest.fixture(autouse=True)
def quick() -> Any:
    with quick_compilation():
        yield


@pytest.mark.parametrize("name", COMPILED)
def test_nothing_is_objected_to(name: str) -> None:
    assert CHECKS[name](CHAIN, CHUNKS) is None


INSERTED = "    source = 1\n    transition[key, key'] = given(-1, 1)\n    {}\n"


def inserted(values: str, mode: str = "", topology: str = "chain(t = 4)") -> Trial:
    head = f"scan a(heads = 1, key = 2, value = 1) on {topology}"
    return Trial(f"{head} {{\n{INSERTED.format(mode)}}}\n", "inserted", values, 1)


def test_what_a_stabilizer_leaves_alone_is_held_against_what_is_written() -> None:
    assert CHECKS["declared"](inserted("kept"), RECURRENT) is None
    for trial, why in (
        (inserted("kept", "stabilize none"), "nothing was inserted"),
        (inserted("saturated"), "too large"),
        (inserted("kept", "stabilize D", "grid(a = 2, b = 2)"), "left out"),
    ):
        with pytest.raises(NotApplicable, match=why):
            CHECKS["declared"](trial, RECURRENT)


def test_a_leaf_may_have_the_name_of_an_input() -> None:
    """A shared one is not taken for the input, which is not."""
    body = "    q = q * param(1); source = 1; transition = given()\n    stabilize none\n"
    text = f"scan a(heads = 1, key = 1, value = 1) on chain(t = 3) {{\n{body}}}\n"
    trial = Trial(text, "chain", "random", 0)
    assert {slope.name for slope in point(trial, "float64", False).slopes} >= {"q", "leaf `q`"}
    assert CHECKS["vmap"](trial, RECURRENT) is None


@pytest.mark.parametrize("name", ["grad", "jvp"])
def test_gates_that_are_matrices(name: str) -> None:
    assert CHECKS[name](OVERWRITTEN, Way("delta", {"chunk": 3})) is None


KINKS = {
    "relu": "given()",
    "abs": "given()",
    "cap": "given()",
    "softplus": "given()",
    "min": "given(), given()",
    "max": "given(), given()",
    "clip": "given(), -1, 0",
}


@halves
@pytest.mark.parametrize("function", KINKS)
def test_derivatives_at_kinks(function: str, late: bool) -> None:
    """At zeros, ones and equal numbers checks and compiled scans mean the same derivative."""
    (name,) = half(("grad", "jvp"), list(KINKS).index(function), late)
    body = f"    source = {function}({KINKS[function]}); transition = given(0, 1)\n{NONE}"
    text = f"scan a(heads = 3, key = 2, value = 2) on chain(t = 6) {{\n{body}}}\n"
    assert CHECKS[name](Trial(text, "chain", "exact", 0), RECURRENT) is None


@pytest.mark.parametrize("form", ["abs(given() * given())", "abs(given() / (1 + given(1, 2)))", "relu(given() * given(0, 1))"])
def test_derivatives_at_kinks_of_products(form: str) -> None:
    """Where a factor is zero and all are moved, what is moved decides on no side: of draws along everything, too."""
    body = f"    source = {form}; transition = given(0, 1)\n{NONE}"
    text = f"scan a(heads = 3, key = 2, value = 2) on chain(t = 6) {{\n{body}}}\n"
    for draw in range(6):
        assert CHECKS["jvp"](Trial(text, "chain", "exact", 0, draw=draw), RECURRENT) is None


@pytest.mark.parametrize("name", ["grad", "jvp"])
@pytest.mark.parametrize("topology", [SMALL, "grid(rows = 3, cols = 2)"])
@pytest.mark.parametrize("form", ["largest(w, over = out)", "sum(l1norm(w, over = out), over = out)"])
def test_derivatives_at_kinks_among_edges(form: str, topology: str, name: str) -> None:
    body = f"    w[out] = given(); source = {form}; transition = given()\n    stabilize P\n"
    text = f"scan a(heads = 3, key = 2, value = 2) on {topology} {{\n{body}}}\n"
    assert CHECKS[name](Trial(text, "kinks", "exact", 0), RECURRENT) is None


AT_RUN_TIME = Trial(
    f"topology g = dag(nodes <= 4, edges <= 5)\nscan a(heads = 2, key = 2, value = 2) on g {{\n{GIVEN}    stabilize P\n}}\n",
    "run-time dag",
    "random",
    0,
    ((4, ((2, 0), (2, 1), (0, 3), (1, 3), (1, 3))), (0, ()), (1, ()), (3, ((0, 2), (2, 1)))),
)


@pytest.mark.parametrize("name", COMPILED)
def test_graphs_at_run_time(name: str) -> None:
    assert CHECKS[name](AT_RUN_TIME, RECURRENT) is None


def test_nothing_is_claimed_of_padding() -> None:
    """Neither of its results, nor is anything differentiated through them."""
    here = point(AT_RUN_TIME, "float64", True)
    real = np.arange(16) < 8
    assert (np.isfinite(here.allowed.h).all((1, 2)) == real).all()
    assert (here.cotangent[0].any((1, 2)) == real).all()


# --- what is a little wrong


def off(room: Any, point: Point, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs give back in a room of checks is wrong by so many times what is allowed: one number of each array."""
    bound = factor * float(np.max(point.allowed.h))

    def moved(array: Any) -> np.ndarray:
        found = np.array(array)
        found.flat[found.size - 1] += bound
        return found

    def faulty(*arguments: Any) -> Any:
        return jax.tree.map(moved, execute(*arguments))

    monkeypatch.setattr(room, "execute", faulty)


ROOMS = {"value": evaluation, "jit": evaluation, "grad": gradients, "jvp": gradients, "float32": gradients, "vmap": batches}


@pytest.mark.parametrize("name", ROOMS)
def test_a_few_times_the_bound_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    off(ROOMS[name], point(CHAIN, "float32" if name == "float32" else "float64", name != "vmap"), 5.0, monkeypatch)
    found = CHECKS[name](CHAIN, RECURRENT)
    assert isinstance(found, Finding)
    assert found.check == name
    assert found.way == "recurrent"
    assert found.error > found.allowed > 0


@pytest.mark.parametrize(("name", "room"), [("remat", gradients), ("hvp", curvature)])
def test_a_gradient_that_is_wrong_is_noticed(name: str, room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one part in 1e8 of one number, in arrays of ten and more."""
    off(room, point(CHAIN, "float64", False), 1e-8 / 2.0**-53 / 10, monkeypatch)
    found = CHECKS[name](CHAIN, RECURRENT)
    assert found is not None
    assert "derivative" in found.what or "gradient" in found.what


MEETING = """scan drawn(heads = 1, key = 3, value = 1, reads = 3) on chain(time = 8) {
    g0[out] = given()
    g1[in] = neighbour(in)
    transition[out, in] = g0 * g1
    source[out] = given(-1, 1)
    mark[read] = log(1 + max(1 / degree(in), given(0, 1)))
    direct = 1
    q = q / sqrt(key)
    k = softplus(k)
    v = v * sigmoid(linear(x))
    directions +time, -time own q
    stabilize auto
}
"""


def test_nothing_is_claimed_where_kinks_meet() -> None:
    """Found by the fuzzer: a mark that is 1 on both sides, of which the chain rule says a half, times a state of zero."""
    trial, way = Trial(MEETING, "chain", "tiny", 62294), Way("recurrent", {})
    assert CHECKS["hvp"](trial, way) is None
    with pytest.raises(NothingClaimed, match="kinks"):
        CHECKS["hvp"](replace(trial, draw=4), way)


def test_a_result_of_another_type_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(*arguments: Any) -> Any:
        (h, state), gradient = execute(*arguments)
        return (np.asarray(h, np.float64), state), gradient

    monkeypatch.setattr(gradients, "execute", wide)
    found = CHECKS["float32"](CHAIN, RECURRENT)
    assert found is not None
    assert "float64, should be float32" in found.what


# --- the watchers


@pytest.mark.parametrize("trial", [CHAIN, OVERWRITTEN, replace(CHAIN, text=CHAIN.text.replace(GIVEN, SUM))], ids=range(3))
def test_oracles_agree(trial: Trial) -> None:
    assert CHECKS["oracles"](trial, RECURRENT) is None
    with pytest.raises(NotApplicable):
        CHECKS["oracles"](trial, CHUNKS)


def larger(found: Any) -> Any:
    """Numbers, or a result, larger by one part in 1e8."""
    if isinstance(found, ReferenceResult):
        return replace(found, h=larger(found.h))
    return (larger(found[0]), found[1]) if isinstance(found, tuple) else found * (1 + 1e-8)


@pytest.mark.parametrize(
    ("oracle", "words"), [("solved", "solve"), ("gating_matrix", "paths"), ("extrapolated", "differences")]
)
def test_an_oracle_that_errs_is_noticed(oracle: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(agreement, oracle)
    monkeypatch.setattr(agreement, oracle, lambda *arguments: larger(right(*arguments)))
    found = CHECKS["oracles"](CHAIN, RECURRENT)
    assert found is not None
    assert words in found.what


# --- judging


def judged(found: Any, wanted: Any, allowed: Any) -> Finding | None:
    return judge("some", RECURRENT, [Comparison("numbers", np.asarray(found), np.asarray(wanted), np.asarray(allowed))])


def test_judging() -> None:
    assert judged([1.0, 2.0], [1.1, 2.0], [0.2, 0.0]) is None
    found = judged([[1.0, 2.0], [3.0, 4.5]], [[1.1, 2.0], [3.0, 4.0]], [[0.05, 0.1], [0.1, 0.1]])
    assert found == Finding("some", "recurrent", "numbers at (1, 1) is 4.5, should be 4", 0.5, 0.1)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_objected_to(wrong: float) -> None:
    assert judged([1.0, wrong], [1.0, 2.0], [1.0, 1.0]) is not None
    assert judged([1.0, wrong], [1.0, 2.0], [1.0, np.inf]) is None


def test_shapes_must_agree() -> None:
    found = judged([1.0, 2.0], [1.0], [9.0])
    assert found is not None
    assert "shape (2,), should be (1,)" in found.what


def test_numbers_of_which_nothing_is_claimed_are_not_judged() -> None:
    with pytest.raises(NotApplicable):
        judged([1.0], [2.0], [np.inf])
    assert judged(np.zeros(0), np.zeros(0), np.zeros(0)) is None


def test_a_scan_that_overflows_is_not_judged() -> None:
    text = CHAIN.text.replace("mark[in] = given()", "mark = exp(9000 * given())")
    with pytest.raises(NotApplicable):
        CHECKS["value"](replace(CHAIN, text=text), RECURRENT)


def test_the_setting_comes_back() -> None:
    config: Any = jax.config
    config.update(QUICK, False)
    with quick_compilation():
        assert config.read(QUICK)
    assert not config.read(QUICK)


def test_every_check_has_its_name() -> None:
    for name, check in checks.CHECKS.items():
        assert getattr(check, "__name__", "") == name


# --- differences


def differences(function: Any, at: float) -> tuple[float, float]:
    """The extrapolated derivative and its doubt."""
    values = [np.asarray(function(at + sign * step)) for step in STEPS for sign in (1, -1)]
    limit, doubt = extrapolated(values, np.asarray(function(at)))
    return float(limit), float(doubt)


def test_differences_are_extrapolated() -> None:
    limit, doubt = differences(np.exp, 0.5)
    assert abs(limit - np.exp(0.5)) <= doubt < 1e-9


@pytest.mark.parametrize("at", [0.0, 1e-30, 3e-3])
def test_differences_know_a_kink(at: float) -> None:
    """Whose mean slope central differences take for a derivative."""
    assert differences(abs, at)[1] > 0.1
