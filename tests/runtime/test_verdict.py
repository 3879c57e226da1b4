"""Right numbers pass, wrong ones do not, wherever they are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from stmlang.check import load
from stmlang.compiler import Call, Prepared, prepare
from stmlang.cost.target import CPU
from stmlang.plan.choose import make_plan, rechosen
from stmlang.runtime import verdict
from stmlang.runtime.compiled import compiled
from stmlang.runtime.measure import Built, scan_program
from stmlang.runtime.verdict import Inspector, reference_seconds, smaller

GRID = """
scan s(heads = 2, key = 3, value = 2) on grid(a = 3, b = 2) {
    source[out] = sigmoid(linear(x))
    transition[out, in] = 0.4 * tanh(linear(x))
    mark[in] = param(0.5)
}
"""
TREE = "scan s(heads = 2, key = 6, value = 5) on tree(arity = 2, depth = 2) { source = sigmoid(linear(x)); transition = 0.5 }"


def prepared(text: str, mode: Any = "training", batch: int = 1, dtype: Any = "float32") -> Prepared:
    return prepare(load(text, {}), Call(dtype, mode, batch=batch))


class Bench:
    """An inspector and the programs of one problem."""

    def __init__(self, given: Prepared) -> None:
        self.given, self.plan = given, make_plan(given.problem, CPU)
        self.inspector = Inspector(given, CPU, [entry.estimate for entry in self.plan.ranked], 0)

    def program(self, strategy: str) -> tuple[Any, Built]:
        estimate = next(entry.estimate for entry in self.plan.ranked if entry.estimate.candidate.strategy == strategy)
        op = compiled(self.given, rechosen(self.plan, estimate))
        return op, scan_program(op, self.given.problem.mode, self.given.problem.batch)

    def fault(self, strategy: str, spoil: Callable[[Any], Any] = lambda found: found) -> str:
        op, program = self.program(strategy)
        call = program.call
        return self.inspector.fault(op, replace(program, call=lambda *arguments: spoil(call(*arguments))))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_right_numbers_pass(mode: str, batch: int) -> None:
    bench = Bench(prepared(GRID, mode, batch))
    assert bench.inspector.full
    assert bench.fault("parallel") == ""
    assert bench.fault("recurrent") == ""
    assert bench.inspector.checked.startswith("results and gradients" if mode == "training" else "results as")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_every_data_type_has_its_tolerance(dtype: str) -> None:
    assert Bench(prepared(GRID, dtype=dtype)).fault("parallel") == ""


@pytest.mark.parametrize("spec", ["std:chain/mlstm", "std:chain/deltanet"])
def test_rounding_that_a_scan_magnifies_is_no_fault(spec: str) -> None:
    given = prepare(load(spec, {"time": 24, "key": 8, "value": 8}), Call())
    assert Bench(given).fault("recurrent") == ""


def spoilt(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], Any]:
    """A change of (result, gradients by name)."""

    def spoil(found: Any) -> Any:
        h, (q, k, v, gates) = found
        made = change({"h": h, "q": q, "k": k, "v": v, **gates})
        return made["h"], (made["q"], made["k"], made["v"], {name: made[name] for name in gates})

    return spoil


SPOILS: dict[str, Callable[[Any], Any]] = {
    "result": spoilt(lambda found: found | {"h": found["h"] * 1.001}),
    "one number": spoilt(lambda found: found | {"h": found["h"].at[..., 0, 0].add(0.1)}),
    "no number": spoilt(lambda found: found | {"h": found["h"].at[..., 0, 0].set(jnp.nan)}),
    "gradient of v": spoilt(lambda found: found | {"v": found["v"] * 1.01}),
    "gradient of a leaf": spoilt(lambda found: found | {"mark": found["mark"] * 0.5}),
    "sign": spoilt(lambda found: found | {"transition": -found["transition"]}),
}


@pytest.mark.parametrize("batch", [1, 2])
def test_wrong_numbers_do_not_pass(batch: int) -> None:
    bench = Bench(prepared(GRID, batch=batch))
    for name, spoil in SPOILS.items():
        assert "off by" in bench.fault("parallel", spoil), name


def test_large_scans_are_judged_small_and_by_another_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    given = prepared(GRID)
    seconds = reference_seconds(given.problem.counts, given.declared)
    monkeypatch.setattr(verdict, "REFERENCE_SECONDS", seconds / 2)
    bench = Bench(given)
    assert not bench.inspector.full
    assert bench.fault("parallel") == ""
    assert "at 1 x 2 as the reference has them, and at full size as another strategy" in bench.inspector.checked
    for name, spoil in SPOILS.items():
        assert "says `recurrent`" in bench.fault("parallel", spoil), name

    def scaled(op: Any, *arguments: Any) -> Built:
        program = scan_program(op, *arguments)
        return replace(program, call=lambda *given: jax.tree.map(lambda array: array * 1.01, program.call(*given)))

    monkeypatch.setattr(verdict, "scan_program", scaled)
    assert bench.fault("parallel").endswith("at 1 x 2")


def test_what_is_too_large_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    grid, tree = prepared(GRID), prepared(TREE)
    assert reference_seconds(grid.problem.counts, grid.declared) < verdict.REFERENCE_SECONDS
    least = reference_seconds(tree.problem.counts, replace(tree.declared, key=4, value=4))
    monkeypatch.setattr(verdict, "REFERENCE_SECONDS", least)
    narrow = smaller(tree)
    assert narrow is not None
    assert (narrow.key, narrow.value) == (4, 4)
    monkeypatch.setattr(verdict, "REFERENCE_SECONDS", 0.0)
    assert smaller(tree) is None
    assert smaller(grid) is not None
