"""The bounds hold for what rounding does, and for little more: faults of the smallest kind are far above them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.fuzz.checks.point import Point, alone, as_tree, point, rounded
from stmlang.fuzz.trial import Trial
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import ReferenceResult, reference
from stmlang.oracle.tolerance import allowances
from stmlang.oracle.value_sets import copies, side_by_side, taken_apart
from tests.helpers.cases import ALL, CASES, GIVEN, NONE, SQUARE

BY_NAME = {case.name: case for case in CASES}
KINDS = ("chain 17", "chain 33 sum", "chain 12 mlstm", "chain 9 key", "chain 9 delta", "grid 5x3", "dag matrix", "random dag D")
DTYPES = ("float64", "float32")
CLOSE = {"float64": 1e-11, "float32": 3e-3}
"""The largest bound that any kind has, relative to the largest number; for most it is a hundredth of this."""


def trial(name: str) -> Trial:
    case = BY_NAME[name]
    return Trial(case.text, "case", "random", 5)


def evaluate(here: Point, at: Arguments | None = None) -> ReferenceResult:
    at = here.at if at is None else at
    return reference(here.scan, here.dag, at.q, at.k, at.v, at.gates, at.initial)


def excess(found: ReferenceResult, here: Point) -> float:
    """The largest error of a result, in units of what is allowed there."""
    return float(np.max(np.abs(found.h - here.result.h) / here.allowed.h))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KINDS)
def test_tight(name: str, dtype: str) -> None:
    here = point(trial(name), dtype, True)
    for found, bound in ((here.result, here.allowed), here.derivatives[-1]):
        assert np.max(bound.h) <= CLOSE[dtype] * np.max(np.abs(found.h))


@pytest.mark.parametrize("name", KINDS)
def test_rounded_arithmetic_is_within(name: str) -> None:
    """Arguments off by their last bit in float32, which is part of what is allowed, are; by a hundred bits they are not."""
    here, rng = point(trial(name), "float32", True), np.random.default_rng(0)

    def off(bits: int) -> Arguments:
        def put(array: np.ndarray) -> np.ndarray:
            return array * (1 + bits * 2.0**-24 * rng.choice([-1.0, 1.0], array.shape))

        return Arguments(*jax.tree.map(put, as_tree(here.at)))

    assert excess(evaluate(here, off(1)), here) < 1
    if name != "chain 9 delta":  # a bound by norms
        assert excess(evaluate(here, off(300)), here) > 1


# --- the smallest faults


def sign(here: Point) -> Arguments:
    """One entry of the transition has the wrong sign."""
    gate = np.array(here.at.gates["transition"])
    gate.flat[gate.size // 2] *= -1
    return replace(here.at, gates={**here.at.gates, "transition": gate})


def edge(here: Point) -> Arguments:
    """One edge is not marked."""
    gate = np.array(here.at.gates["mark"])
    gate.flat[gate.size // 2] = 0
    return replace(here.at, gates={**here.at.gates, "mark": gate})


def place(here: Point) -> Arguments:
    """The sources of a node are those of its neighbour."""
    return replace(here.at, gates={**here.at.gates, "source": np.roll(np.asarray(here.at.gates["source"]), 1, axis=0)})


GIVENS = {
    "chain": Trial(f"scan a(heads = 2, key = 3, value = 2) on chain(t = 100) {{\n{GIVEN}{NONE}}}\n", "chain", "random", 1),
    "grid": Trial(
        f"scan a(heads = 1, key = 2, value = 2) on {SQUARE.format(5, 6)} {{\n{GIVEN}{ALL}{NONE}}}\n", "grid", "random", 1
    ),
    "dag": Trial(BY_NAME["random dag auto"].text, "dag", "random", 1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("topology", GIVENS)
@pytest.mark.parametrize("fault", [sign, edge, place])
def test_faults_are_far_above(fault: Callable[[Point], Arguments], topology: str, dtype: str) -> None:
    here = point(GIVENS[topology], dtype, True)
    assert excess(evaluate(here, fault(here)), here) > (1e2 if dtype == "float32" else 1e10)


# --- the bound itself


@cache
def long_chain(dtype: str) -> Point:
    text = f"scan a(heads = 1, key = 1, value = 1) on chain(t = 400) {{\n{GIVEN}{NONE}}}\n"
    here = point(Trial(text, "chain", "random", 0), dtype, False)
    ones = {name: rounded(np.full(np.shape(array), 0.999), dtype) for name, array in here.at.gates.items()}
    positive = Arguments(np.abs(here.at.q), np.abs(here.at.k), np.abs(here.at.v), ones)
    return alone(here, here.scan, positive)


def test_paths_count_by_their_length() -> None:
    """What is read after many steps may be off by more, in proportion to the steps, and by no more than eight roundings for
    each."""
    here = long_chain("float64")
    relative = (here.allowed.h / here.result.h).reshape(-1) / 2.0**-53
    assert relative[300] > 1.5 * relative[3]
    assert relative.max() < 8 * 400


def test_single_precision_is_within_on_a_long_chain() -> None:
    """A plain loop in float32 is off by less than the bound, and by more than a thousandth of it."""
    here = long_chain("float32")
    one, state = np.float32(here.at.gates["transition"].flat[0]), np.float32(0)
    q, k, v = (np.asarray(array, np.float32).reshape(-1) for array in (here.at.q, here.at.k, here.at.v))
    h = np.zeros(400, np.float32)
    for n in range(400):
        h[n] = q[n] * (one * state + one * (k[n] * v[n]))
        state = one * state + one * (k[n] * v[n])
    found = replace(here.result, h=h.astype(np.float64).reshape(here.result.h.shape))
    assert 1e-3 < excess(found, here) < 1


def test_nothing_is_claimed_of_a_quotient_by_nothing() -> None:
    """Where the sum of weights cancels, float32 knows nothing of the quotient, float64 a little; its neighbours are judged."""
    text = "scan a(heads = 1, key = 1, value = 2) on chain(t = 6) {\n"
    text += "    source = 1; transition = given(); mark = 1; direct = given()\n    normalize sum\n}\n"
    trial = Trial(text, "chain", "random", 2)
    wide = point(trial, "float64", False)
    gates = {name: np.full(np.shape(array), 0.75 if name == "transition" else 1.0) for name, array in wide.at.gates.items()}
    carried = sum(0.75**n for n in range(5))
    k = np.asarray([1.0, 1, 1, 1, 1, -carried * (1 + 1e-8)]).reshape(6, 1, 1)
    at = Arguments(np.ones((6, 1, 1)), k, wide.at.v, gates)
    for dtype, known in (("float64", True), ("float32", False)):
        bound = allowances(wide.scan, wide.dag, dtype, at)
        assert np.isfinite(bound.h[:5]).all()
        assert np.isfinite(bound.h[5]).all() == known


def test_saturated_shares_may_lose_their_derivative() -> None:
    """`1 - sigmoid(x)` where the sigmoid is all but one: the bound is that of the sigmoid's last bit, not of what is left."""
    body = "    source = 1; transition = 0; mark = 1 - sigmoid(linear(x))\n"
    text = f"scan a(heads = 1, key = 1, value = 1) on chain(t = 2) {{\n{body}}}\n"
    here = point(Trial(text, "chain", "random", 0), "float32", False)
    at = replace(here.at, gates={name: np.full(np.shape(array), 12.0) for name, array in here.at.gates.items()})
    result = evaluate(here, at)
    bound = allowances(here.scan, here.dag, "float32", at)
    relative = bound.h[1] / np.abs(result.h[1])
    assert np.all(relative > 2.0**-24 / 6e-6)
    assert np.all(relative < 1)


def test_products_may_vanish_in_single_precision() -> None:
    """1e-40, from factors that are not small: float32 may make it zero before it is multiplied by 1e5."""
    text = f"scan a(heads = 1, key = 1, value = 1) on chain(t = 2) {{\n{GIVEN}{NONE}}}\n"
    here = point(Trial(text, "chain", "random", 0), "float64", False)
    gates = {name: np.full(np.shape(array), 1e-20) for name, array in here.at.gates.items()}
    at = Arguments(np.full((2, 1, 1), 1e5), np.full((2, 1, 1), 1e-20), np.ones((2, 1, 1)), gates)
    result, bounds = evaluate(here, at), {dtype: allowances(here.scan, here.dag, dtype, at) for dtype in DTYPES}
    assert np.all(bounds["float32"].h > 1e5 * 1e-40)
    assert np.all(bounds["float32"].h < 1e-25)
    assert np.all(bounds["float64"].h < 1e-8 * result.h[1])


@pytest.mark.parametrize("leaf", [-2e-38, 2e-38, -1e-30])
def test_a_product_that_vanishes_may_change_the_side_of_a_kink(leaf: float) -> None:
    """`abs(0.3 a)` falls where `a` is negative; where the product is zero, it rises."""
    text = (
        "scan a(heads = 1, key = 1, value = 1) on chain(t = 3) {\n transition = exp(-abs(0.3 * param(0.5)))\n source = 1\n}\n"
    )
    here = point(Trial(text, "chain", "random", 0), "float64", False)
    at = replace(here.at, gates={name: np.full(np.shape(array), leaf) for name, array in here.at.gates.items()})
    still = (np.zeros(np.shape(array)) for array in (at.q, at.k, at.v))
    along = Arguments(*still, {name: np.ones(np.shape(array)) for name, array in at.gates.items()})
    slopes = [
        derivative(here.scan, here.dag, replace(at, gates={name: size * array for name, array in at.gates.items()}), along).h
        for size in (1.0, -1.0)
    ]
    either = np.abs(slopes[0] - slopes[1])
    assert np.any(either > 1e-3)
    bounds = {dtype: allowances(here.scan, here.dag, dtype, at, along).h for dtype in DTYPES}
    doubtful = bool(-(2.0**-126) < 0.3 * leaf < 0)
    assert np.all((bounds["float32"] >= either) == (doubtful | (either == 0)))
    assert np.all(bounds["float64"] < np.maximum(1e-3 * either, 1e-12))
    assert np.all(allowances(here.scan, here.dag, "float32", at).h < 1e-4)


def test_copies_are_separate_evaluations() -> None:
    for name in ("chain 12 mlstm", "chain 9 key", "grid 3x4 turn", "grid 4x7 constant", "factors tracks"):
        first, second = (point(replace(trial(name), seed=seed), "float64", True) for seed in (1, 2))
        at = side_by_side(first.scan, first.dag, [first.at, second.at])
        both = evaluate(alone(first, copies(first.scan, 2), at), at)
        for one, found in zip((first, second), taken_apart(first.scan, 2, both), strict=True):
            for mine, wanted in zip(*(jax.tree.leaves((part.h, part.state)) for part in (found, one.result)), strict=True):
                np.testing.assert_allclose(mine, wanted, rtol=1e-13, atol=1e-13)


def test_derivatives_of_copies() -> None:
    here = point(trial("grid 5x3"), "float64", True)
    for number in (0, 3, None):
        found = derivative(here.scan, here.dag, here.at, here.along(number))
        kept = here.derivatives[-1 if number is None else number][0]
        np.testing.assert_allclose(found.h, kept.h, rtol=1e-12, atol=1e-12)


def test_rounding_is_that_of_the_data_type() -> None:
    assert rounded(1 + 2.0**-8, "bfloat16") == 1
    assert rounded(1 + 2.0**-23, "float32") == 1 + 2.0**-23
    assert rounded([2.0**-126, 1e-38, 0.0], "float32").tolist() == [2.0**-126, 0.0, 0.0]
    assert np.signbit(rounded(-1e-38, "bfloat16"))
    assert rounded(1e-38, "float64") == 1e-38
    assert jnp.finfo(jnp.float32).eps == 2 * 2.0**-24
