"""Many sets of values for each compiled program: a fault that few of them meet is caught, saved as one set, and replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from stmlang.fuzz.checks import CHECKS
from stmlang.fuzz.checks.programs import execute, program
from stmlang.fuzz.fuzzer import DRAWS, Fuzzer, Source, Task, draws_of
from stmlang.fuzz.jobs import Draw, Evaluate, Job, Outcome, Plan, answer, replaying
from stmlang.fuzz.saved import load, name_of
from stmlang.fuzz.trial import Finding, Trial, Way
from stmlang.strategies.linear import lower as linear
from tests.fuzz.faults import CHAIN, Fault, planted
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

WAY = Way("linear", {"chunk": 3})


def at_rare_decays(rare: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Products of decays that are a little too large where some decay is a rare one."""

    def change(right: Any) -> Any:
        def wrong(decay: Any) -> Any:
            products = right(decay)
            factor = jnp.where(jnp.any(rare(decay)), 1 + 1e-9, 1.0)
            return products._replace(inside=products.inside * factor)

        return wrong

    return change


RARE = {
    "exactly zero": lambda decay: decay == 0,
    "exactly one": lambda decay: decay == 1,
    "very small": lambda decay: (decay != 0) & (jnp.abs(decay) < 1e-30),
}


def fault(name: str) -> Fault:
    return Fault(name, linear, "paths", at_rare_decays(RARE[name]), CHAIN, "linear", {"chunk": 3})


class Here:
    """An evaluator in this process."""

    def ask(self, job: Job) -> Any:
        return answer(replace(job, optimized=False) if isinstance(job, Evaluate) else job)


@pytest.mark.parametrize("check", ["value", "grad"])
@pytest.mark.parametrize("name", RARE)
def test_a_fault_at_rare_values_is_caught(name: str, check: str) -> None:
    assert answer(Evaluate(check, CHAIN, WAY, draws=DRAWS)).kind == "passed"
    with planted(fault(name)):
        assert answer(Evaluate(check, CHAIN, WAY)).kind == "passed"  # the one set of values that there used to be
        outcome = answer(Evaluate(check, CHAIN, WAY, draws=DRAWS))
        assert outcome.kind == "wrong"
        assert 0 < outcome.draw < DRAWS
        alone = answer(Evaluate(check, replace(CHAIN, draw=outcome.draw), WAY))
        assert (alone.kind, alone.finding, alone.draw) == ("wrong", outcome.finding, outcome.draw)


def test_a_failing_set_is_saved_and_replays(tmp_path: Path) -> None:
    task = Task(Source(st.just(CHAIN)), 0, ("linear",), ("value",))
    with planted(fault("exactly zero")):
        fuzzer = Fuzzer(task, tmp_path, 3, None)
        list(fuzzer.alone(Here()))
        (kept,) = fuzzer.kept.values()
        assert kept.path is not None
        found = load(kept.path)
        assert found.trial.draw > 0
        assert found.trial == kept.saved.trial
        outcome = answer(replaying(found))
        assert (outcome.kind, outcome.finding) == ("wrong", found.finding)
        # It is the numbers that are replayed, and not what a later version draws.
        numbers = {name: np.full_like(array, 0.5) for name, array in (found.numbers or {}).items()}
        assert answer(replaying(replace(found, numbers=numbers))).kind == "passed"
    assert answer(replaying(found)).kind == "passed"
    assert fuzzer.counts.examples.total() == 3
    assert found.trial.draw < fuzzer.counts.draws.total() < 3 * DRAWS


def test_names_of_draws_differ() -> None:
    """And the first keeps the name that it had when there was but one."""
    assert name_of("value", WAY, CHAIN) == name_of("value", WAY, replace(CHAIN, draw=0))
    assert len({name_of("value", WAY, replace(CHAIN, draw=draw)) for draw in range(3)}) == 3


class Dying:
    """An evaluator whose process dies of the values of one draw."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.jobs = fatal, list[Job]()

    def ask(self, job: Job) -> Any:
        self.jobs.append(job)
        match job:
            case Plan():
                return [WAY]
            case Draw():
                return {"q": np.zeros(1)}
            case Evaluate(check=check, trial=trial, way=way, draws=draws):
                if trial.draw <= self.fatal < trial.draw + draws:
                    return Outcome("died", Finding(check, way.label, "the process ended", float("inf"), 0.0))
                return Outcome("passed", draws=draws)


@pytest.mark.parametrize("fatal", [0, 37, DRAWS - 1])
def test_the_set_that_a_process_dies_of_is_singled_out(fatal: int, tmp_path: Path) -> None:
    evaluator = Dying(fatal)
    fuzzer = Fuzzer(Task(Source(st.just(CHAIN)), 0, ("linear",), ("value",)), tmp_path, 1, None)
    list(fuzzer.alone(evaluator))
    (kept,) = fuzzer.kept.values()
    assert kept.saved.trial.draw == fatal


def test_a_program_is_compiled_once_for_all_sets() -> None:
    op, traced = CHAIN.compiled(WAY, "float64"), list[int]()

    def counted(op: Any, number: jax.Array) -> jax.Array:
        del op
        traced.append(1)
        return number + 1

    assert [float(execute(counted, op, jnp.asarray(float(draw)))) for draw in range(5)] == [1, 2, 3, 4, 5]
    assert len(traced) == 1
    assert program(counted, op, jnp.zeros(2)) is not program(counted, op, jnp.zeros(3))
    assert len(traced) == 3


def test_values_of_which_nothing_is_claimed_do_not_count() -> None:
    """Some sets overflow: of the others something is said, and only they count."""
    text = CHAIN.text.replace("mark[in] = given()", "mark = exp(900 * given())")
    outcome = answer(Evaluate("value", Trial(text, "", "exact", 0), Way("recurrent", {}), draws=16))
    assert outcome.kind == "passed"
    assert 0 < outcome.draws < 16


def test_sets_are_many_where_something_is_compiled() -> None:
    assert all(draws_of(name) >= 64 for name in CHECKS if name != "oracles")
    assert draws_of("oracles") > 1
