"""A trial as relations find it: compiled, and called as it is. Relations of one trial share it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar
from zlib import crc32

import jax
import numpy as np

from stmlang.cost.settings import Config, freeze
from stmlang.fuzz.checks.programs import options, quick_compilation
from stmlang.fuzz.relations.instance import Floats, Given, Instance, Outcome, compiled, given, outcome, single
from stmlang.fuzz.trial import NotApplicable, Trial, Way
from stmlang.oracle.tolerance import allowances
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.scan import Mode

KEPT = 4
"""Subjects that are remembered, so that one is compiled once for all relations."""


@dataclass(frozen=True, eq=False)
class Subject:
    """An instance with the scan that evaluates it."""

    op: CompiledScan
    instance: Instance

    @cached_property
    def program(self) -> Callable[..., Any]:
        """One call with final states."""
        return _compiled(_evaluated, self.op, self.instance.given.tree)

    def call(self, given: Given) -> Outcome:
        """What it gives for other arguments."""
        return outcome(jax.device_get(self.program(self.op, given.tree)))

    @cached_property
    def outcome(self) -> Outcome:
        """What it gives for its own."""
        return self.call(self.instance.given)

    @cached_property
    def rounding(self) -> Outcome:
        """By how much two evaluations may differ."""
        return rounding(self.instance)

    @cached_property
    def mapped(self) -> Callable[..., Any]:
        """One call mapped over two sets of arguments."""
        return _compiled(jax.vmap(_evaluated, in_axes=(None, 0)), self.op, _stacked([self.instance.given] * 2))

    def call_both(self, first: Given, second: Given) -> list[Outcome]:
        """What it gives for two sets of arguments in one call."""
        h, state = jax.device_get(self.mapped(self.op, _stacked([first, second])))
        return [
            outcome((h[number], tuple({port: array[number] for port, array in ports.items()} for ports in state)))
            for number in range(2)
        ]


def _evaluated(op: CompiledScan, tree: tuple[Any, ...]) -> Any:
    return op(*tree, return_state=True)


def _stacked(batch: list[Given]) -> tuple[Any, ...]:
    def together(*arrays: Floats) -> Floats:
        return np.stack(arrays)

    return jax.tree.map(together, *(given.tree for given in batch))


def _compiled(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """A function compiled for its arguments, to be kept by who asked for it."""
    with quick_compilation():
        lowered: Any = jax.jit(function).lower(*arguments)
        return lowered.compile(compiler_options=options())


def evaluate(instance: Instance, way: Way) -> Outcome:
    """An instance compiled and called. Raises NotApplicable as `compiled` does."""
    return Subject(compiled(instance.scan, instance.dag, way), instance).outcome


T = TypeVar("T")
_caches: list[Callable[[], None]] = []


def kept(function: Callable[[Trial, Way], T]) -> Callable[[Trial, Way], T]:
    """A function that remembers what it found of the last few trials and ways, until `forget`."""

    @lru_cache(KEPT)
    def remembered(trial: Trial, strategy: str, config: Config) -> T:
        return function(trial, Way(strategy, dict(config)))

    def found(trial: Trial, way: Way) -> T:
        return remembered(trial, way.strategy, freeze(way.config))

    _caches.append(remembered.cache_clear)
    return found


def forget() -> None:
    """Forget everything: what is compiled from now on is compiled anew."""
    for clear in _caches:
        clear()


@kept
def subject(trial: Trial, way: Way) -> Subject:
    """A trial compiled for a way. Raises NotApplicable without nodes, and for graphs that come at run time."""
    if trial.graphs is not None:
        raise NotApplicable("its graphs come at run time")
    op = trial.compiled(way, "float64")
    if op.dag.node_count == 0:
        raise NotApplicable("there are no nodes")
    return Subject(op, Instance(replace(op.scan, stabilize=Mode.NONE), op.dag, given(trial.arguments(op))))


@kept
def one_direction(trial: Trial, way: Way) -> Subject:
    """The same with one of its directions, if it has several."""
    whole = subject(trial, way)
    count = len(whole.instance.scan.directions)
    if count == 1:
        return whole
    alone = single(whole.instance, int(random(trial, "direction").integers(count)))
    return Subject(compiled(alone.scan, alone.dag, way), alone)


def another(trial: Trial, op: CompiledScan) -> Given:
    """Other arguments of the same kind."""
    return given(replace(trial, seed=trial.seed + 1).arguments(op))


def random(trial: Trial, relation: str) -> np.random.Generator:
    """The choices of a relation: the same for the same trial."""
    return np.random.default_rng([trial.seed, crc32(relation.encode())])


def rounding(instance: Instance) -> Outcome:
    """By how much two evaluations of an instance may differ: twice what each may be off (`stmlang.oracle.tolerance`)."""
    with np.errstate(all="ignore"):
        found = allowances(instance.scan, instance.dag, "float64", instance.given.arguments)
    both = outcome((found.h, found.state))
    return Outcome(2 * both.h, tuple({port: 2 * array for port, array in ports.items()} for ports in both.state))
