"""Strategies of kernels of our own: where they are admitted, and that none is chosen on a guess."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stmlang.check import load
from stmlang.compiler import Call, prepare
from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.coefficients import TERMS, Weights
from stmlang.cost.problem import Problem
from stmlang.cost.settings import settings_dict
from stmlang.cost.target import CPU, H100, H200, TARGETS, Target
from stmlang.plan.choose import make_plan
from stmlang.plan.tuned import Found, Measured, Record
from stmlang.strategies.base import asked_for, proposed
from stmlang.strategies.registry import strategies, strategy_named, without_kernels

GATES = "source[out] = given()\n transition[out, in] = given()\n mark[in] = given()\n"
ONE_TURN = GATES + "transition[out = cols, in = rows] = 0\n directions all\n"
CHAIN = "source = given()\n transition = sigmoid(given())\n mark = given()\n"
TWO_TURNS = GATES + "directions all\n"
KERNELS = {
    "kernel_separable": ("grid(rows = 14, cols = 14)", ONE_TURN),
    "kernel_rows": ("grid(rows = 14, cols = 14)", TWO_TURNS),
    "kernel_chain": ("chain(t = 4096)", CHAIN),
}


def given(strategy: str, *, key: int = 64, dtype: Any = "bfloat16") -> Problem:
    topology, body = KERNELS[strategy]
    text = f"topology t = {topology}\nscan test(heads = 3, key = {key}, value = 64) on t {{\n{body}stabilize none\n}}\n"
    return prepare(load(text), Call(dtype=dtype)).problem


def offered(strategy: str, problem: Problem, target: Target = H100) -> list[Candidate | Rejection]:
    return list(proposed(strategy_named(strategy), problem, target))


def test_those_of_the_registry_are_tested_here() -> None:
    assert set(KERNELS) == {strategy.name for strategy in strategies()} - {strategy.name for strategy in without_kernels()}


@pytest.mark.parametrize("strategy", KERNELS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_they_are_admitted_where_they_run(strategy: str, dtype: str) -> None:
    problem = given(strategy, dtype=dtype)
    for target in TARGETS.values():
        found = offered(strategy, problem, target)
        if target in (H100, H200):
            assert found
            assert all(isinstance(entry, Candidate) for entry in found)
        else:
            (rejection,) = found
            assert isinstance(rejection, Rejection)
            assert f"the target is `{target.name}`" in rejection.reason


@pytest.mark.parametrize("strategy", KERNELS)
@pytest.mark.parametrize(("changes", "words"), [({"dtype": "float64"}, "float64"), ({"key": 129}, "key = 129")])
def test_refusals(strategy: str, changes: dict[str, Any], words: str) -> None:
    (found,) = offered(strategy, given(strategy, **changes))
    assert isinstance(found, Rejection)
    assert words in found.reason


@pytest.mark.parametrize("strategy", KERNELS)
def test_they_are_chosen_by_measurements_alone(strategy: str) -> None:
    problem = given(strategy)
    guessed = make_plan(problem, H100)
    own = [entry for entry in guessed.ranked if entry.estimate.candidate.strategy == strategy]
    assert guessed.strategy != strategy
    assert own
    assert {entry.why for entry in own} == {"never measured: `stmlang tune` times it"}
    # Asked for by name.
    assert make_plan(problem, H100, strategy=strategy).strategy == strategy
    # Fitted to runs that took no time.
    record = H100.coefficients
    stages = (*own[0].estimate.candidate.forward, *own[0].estimate.candidate.backward)
    free = {stage.name: Weights(*(0.0 for _ in TERMS)) for stage in stages}
    fitted = replace(record, stages={**record.stages, strategy: free})
    assert make_plan(problem, replace(H100, coefficients=fitted)).strategy == strategy
    # Tuned.
    label, before = own[0].estimate.candidate.label, guessed.chosen.candidate.label
    measured = tuple(Measured(name, ratio, ratio, 0.01, 1.0, 0) for name, ratio in ((before, 1.0), (label, 0.5)))
    tuned = Found(Record({}, before, label, "the recurrence", measured))
    assert make_plan(problem, H100, tuned=tuned).strategy == strategy


@pytest.mark.parametrize(
    ("settings", "words"),
    [({}, "`width`"), ({"rows": 2}, "`width`"), ({"width": 8}, "16, 32 or 64 wide, not 8"), ({"width": 64}, "bytes on chip")],
)
def test_settings_of_separable_kernels(settings: dict[str, Any], words: str) -> None:
    strategy, problem = strategy_named("kernel_separable"), given("kernel_separable", dtype="float32")
    refused = asked_for(strategy, problem, settings, H100)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    built = asked_for(strategy, problem, {"width": 16}, H100)
    assert isinstance(built, Candidate)
    assert settings_dict(built.settings) == {"width": 16}
    assert isinstance(asked_for(strategy, problem, {"width": 16}, CPU), Rejection)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "`axis` and `rows`"),
        ({"axis": 2, "rows": 1}, "0 to 1, not 2"),
        ({"axis": 0, "rows": 0}, "positive, not 0"),
    ],
)
def test_settings_of_kernels_of_rows(settings: dict[str, Any], words: str) -> None:
    strategy, problem = strategy_named("kernel_rows"), given("kernel_rows", dtype="float32")
    refused = asked_for(strategy, problem, settings, H100)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    built = asked_for(strategy, problem, {"axis": 1, "rows": 20}, H100)
    assert isinstance(built, Candidate)
    assert settings_dict(built.settings) == {"axis": 1, "rows": 8}


@pytest.mark.parametrize(
    ("axes", "dtype", "words"),
    [
        ("rows = 40, cols = 65", "bfloat16", None),
        ("rows = 65, cols = 66", "bfloat16", "130"),
        ("rows = 32, cols = 40", "float32", "bytes"),
    ],
)
def test_rows_of_many_edges_do_not_fit(axes: str, dtype: str, words: str | None) -> None:
    """Those of four directions, two of each sense, of the shorter axis."""
    text = f"topology t = grid({axes})\nscan test(heads = 1, key = 64, value = 64) on t {{\n{TWO_TURNS}stabilize none\n}}\n"
    found = offered("kernel_rows", prepare(load(text), Call(dtype=dtype)).problem)
    reasons = [entry.reason for entry in found if isinstance(entry, Rejection)]
    assert bool(reasons) == (words is not None)
    assert words is None or words in reasons[0]
