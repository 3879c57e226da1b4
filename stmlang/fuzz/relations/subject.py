"""A trial as relations find it: compiled, and called as it is. Relations of one trial share it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar
from zlib import crc32

import jax
import numpy as np

from stmlang.cost.settings import Config, freeze
from stmlang.fuzz.checks.programs import execute, quick_compilation
from stmlang.fuzz.memory import forgotten_by, remembered
from stmlang.fuzz.relations.instance import Floats, Given, Instance, Outcome, compiled, given, outcome, single
from stmlang.fuzz.trial import NotApplicable, Trial, Way
from stmlang.oracle.recurrence import ReferenceResult
from stmlang.oracle.value_sets import bounds
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.scan import Mode

KEPT = 4
"""Subjects that are remembered for all relations."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An instance with the scan that evaluates it; of a trial's own, `limits` says by how much two evaluations may differ."""

    op: CompiledScan
    instance: Instance
    limits: Callable[[], Outcome] | None = None

    def call(self, arguments: Given) -> Outcome:
        """What it gives for other arguments, in one call with final states."""
        with quick_compilation():
            return outcome(execute(_evaluated, self.op, arguments.tree))

    @cached_property
    def outcome(self) -> Outcome:
        """What it gives for its own."""
        return self.call(self.instance.given)

    @cached_property
    def rounding(self) -> Outcome:
        """By how much two evaluations may differ."""
        assert self.limits is not None
        return self.limits()

    def call_both(self, first: Given, second: Given) -> list[Outcome]:
        """What it gives for two sets of arguments in one call, mapped over both."""
        with quick_compilation():
            h, state = execute(_mapped, self.op, _stacked([first, second]))
        return [
            outcome((h[number], tuple({port: array[number] for port, array in ports.items()} for ports in state)))
            for number in range(2)
        ]


def _evaluated(op: CompiledScan, tree: tuple[Any, ...]) -> Any:
    return op(*tree, return_state=True)


def _mapped(op: CompiledScan, tree: tuple[Any, ...]) -> Any:
    return jax.vmap(_evaluated, in_axes=(None, 0))(op, tree)


def _stacked(batch: list[Given]) -> tuple[Any, ...]:
    def together(*arrays: Floats) -> Floats:
        return np.stack(arrays)

    return jax.tree.map(together, *(arguments.tree for arguments in batch))


def evaluate(instance: Instance, way: Way) -> Outcome:
    """An instance compiled and called. Raises NotApplicable as `compiled` does."""
    return Subject(compiled(instance.scan, instance.dag, way), instance).outcome


T = TypeVar("T")


def kept(function: Callable[[Trial, Way], T]) -> Callable[[Trial, Way], T]:
    """A function that remembers what it found of the last few trials and ways."""

    @remembered(KEPT)
    def recall(trial: Trial, strategy: str, config: Config) -> T:
        return function(trial, Way(strategy, dict(config)))

    def recalled(trial: Trial, way: Way) -> T:
        return recall(trial, way.strategy, freeze(way.config))

    return recalled


@kept
def subject(trial: Trial, way: Way) -> Subject:
    """A trial compiled for a way. Raises NotApplicable without nodes, and for graphs that come at run time."""
    if trial.graphs is not None:
        raise NotApplicable("its graphs come at run time")
    op = trial.compiled(way, "float64")
    if op.dag.node_count == 0:
        raise NotApplicable("there are no nodes")
    instance = Instance(replace(op.scan, stabilize=Mode.NONE), op.dag, given(trial.arguments(op)))
    limits = partial(rounding, "its own", trial, lambda draw: subject(draw, way).instance)
    return Subject(op, instance, limits)


@kept
def one_direction(trial: Trial, way: Way) -> Subject:
    """The same with one of its directions, if it has several."""
    whole = subject(trial, way)
    count = len(whole.instance.scan.directions)
    if count == 1:
        return whole
    alone = single(whole.instance, int(random(trial, "direction").integers(count)))
    limits = partial(rounding, "one direction", trial, lambda draw: one_direction(draw, way).instance)
    return Subject(compiled(alone.scan, alone.dag, way), alone, limits)


def another(trial: Trial, op: CompiledScan) -> Given:
    """Other arguments of the same kind."""
    return given(trial.another().arguments(op))


def random(trial: Trial, relation: str) -> np.random.Generator:
    """The choices of a relation: the same for the same trial."""
    return np.random.default_rng([trial.seed, crc32(relation.encode())])


def rounding(relation: str, trial: Trial, instance_of: Callable[[Trial], Instance]) -> Outcome:
    """By how much two evaluations of what a relation makes of a trial may differ: twice what each may be off
    (`stmlang.oracle.tolerance`). It is worked out for all draws that are tried together, and kept."""
    draws = trial.together
    first = replace(trial, draw=draws.start, beside=None)
    key = relation, first, len(draws)
    if key not in _limits:
        instances = [instance_of(draw) for draw in first.draws(len(draws))]
        scan, dag = instances[0].scan, instances[0].dag
        with np.errstate(all="ignore"):
            _limits[key] = bounds(scan, dag, "float64", [instance.given.arguments for instance in instances])
    _limits.move_to_end(key)
    while len(_limits) > KEPT:
        _limits.popitem(last=False)
    limits = _limits[key][trial.draw - draws.start]
    both = outcome((limits.h, limits.state))
    return Outcome(2 * both.h, tuple({port: 2 * array for port, array in ports.items()} for ports in both.state))


_limits: OrderedDict[tuple[str, Trial, int], list[ReferenceResult]] = OrderedDict()
forgotten_by(_limits.clear)
