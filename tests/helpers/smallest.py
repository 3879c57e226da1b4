"""The smallest scan that each strategy takes, for tests of what must hold of every one.

The strategies come from the registry and the scans from `EXAMPLES`: of these the first that a strategy proposes itself for is
its own. So a new strategy is tested without another line, and fails loudly where no scan in the list admits it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import stmlang
from stmlang.cost.settings import settings_dict
from stmlang.fuzz.generators import random_arguments
from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import ReferenceResult, reference
from stmlang.strategies.registry import strategies, without_kernels
from tests.helpers.calls import as_tree, dot

FACTORS = """
    f[out] = tanh(given())
    g[in] = given(-1, 1)
    source[out] = given()
    transition[out, in] = f[out] * g[in]
    mark[in] = given()
    direct = given()
    stabilize none
"""
ERASING = """
    u[key] = given()
    strength = sigmoid(given())
    source[key] = given()
    transition[key, key'] = eye[key, key'] - strength * u[key] * u[key']
    mark = given()
    direct = given()
    stabilize none
"""
ERASING_ONE_TURN = """
    decay[out, in] = tanh(given())
    strength = sigmoid(given())
    source[out] = given()
    transition[out, in, key, key'] = decay * (eye[key, key'] - strength * k[key] * k[key'])
    transition[out = cols, in = rows, key, key'] = 0
    mark[in] = given()
    direct = given()
    stabilize none
"""
SAME_EVERYWHERE = """
    source[out] = param(0.7)
    transition[out, in] = tanh(param(0.4))
    mark[in] = param(1)
    direct = given()
    stabilize none
"""
ONE_TURN = """
    source[out] = given()
    transition[out, in] = tanh(given())
    transition[out = cols, in = rows] = 0
    mark[in] = given()
    direct = given()
    stabilize none
"""


@dataclass(frozen=True)
class Example:
    """A scan with heads = 1, key = 2, value = 2; `graphs` are those that it is given at run time."""

    topology: str
    body: str
    graphs: tuple[DAG, ...] = ()
    track: int = 1

    @property
    def text(self) -> str:
        sizes = "heads = 1, key = 2, value = 2" + (f", track = {self.track}" if self.track > 1 else "")
        return f"topology t = {self.topology}\nscan smallest({sizes}) on t {{{self.body}}}\n"


PAIR = tuple(
    ragged_dag(nodes, np.array(tails), np.array(heads)) for nodes, tails, heads in ((3, [0, 0, 1], [1, 2, 2]), (1, [], []))
)
KEY_TURN = """
    source[out] = given()
    transition[out, in, key] = given(-1, 1)
    transition[out = cols, in = rows, key] = 0
    mark[in] = given()
    direct = given()
    stabilize none
"""
REFLECTED = """
    normal[track] = given()
    bend = given(0, 1)
    source[track] = given()
    transition[track, track'] = tanh(given()) * (eye[track, track'] - bend * normal[track] * normal[track'])
    mark[track] = given()
    stabilize none
"""
GRID = Example("grid(rows = 2, cols = 3)", ONE_TURN)
EXAMPLES = (
    Example("dag { -> a; a -> b, c; b, c -> d; d -> }", FACTORS),
    Example("chain(t = 17)", FACTORS),
    Example("chain(t = 17)", ERASING),
    Example("chain(t = 17)", REFLECTED, track=2),
    GRID,
    Example("grid(rows = 2, cols = 3)", ERASING_ONE_TURN),
    Example("grid(rows = 2, cols = 3)", SAME_EVERYWHERE),
    Example("grid(rows = 2, cols = 3)", KEY_TURN),
    Example("dag(nodes <= 10, edges <= 20)", FACTORS, PAIR),
)


def names() -> tuple[str, ...]:
    """Of all strategies that any machine runs, those that a test has registered among them."""
    return tuple(strategy.name for strategy in without_kernels())


def kernels() -> tuple[str, ...]:
    """Of all that GPUs alone run."""
    return tuple(strategy.name for strategy in strategies() if strategy.kernel)


@cache
def planned(example: Example, registered: tuple[str, ...]) -> dict[str, Any]:
    """The strategies that an example admits, each with the smallest of the settings that it proposes: they make most pieces."""
    del registered  # others are other plans
    proposed: dict[str, list[Any]] = {}
    plans = compiled(example).plan, compiled(example, "float32", target="gpu").plan
    for ranked in (entry for plan in plans for entry in plan.ranked):
        candidate = ranked.estimate.candidate
        proposed.setdefault(candidate.strategy, []).append(settings_dict(candidate.settings))
    return {strategy: min(settings, key=lambda config: sorted(config.items())) for strategy, settings in proposed.items()}


def compiled(example: Example, dtype: str = "float64", **options: Any) -> Any:
    """An example as a compiled scan, with its graphs."""
    op = stmlang.compile(example.text, dtype=dtype, **options)
    return op.at(batch(example.graphs)) if example.graphs else op


@dataclass(frozen=True, eq=False)
class Subject:
    """A strategy's smallest scan, `op`; `trees`, the arguments of three calls; a cotangent for result and final states, zero
    where a batch is padded; and for every array of the first of them a random change."""

    op: Any
    trees: tuple[Any, ...]
    cotangent: Any
    real: np.ndarray
    changes: tuple[np.ndarray, ...]

    def result(self, at: Any) -> ReferenceResult:
        """Of the recurrence, at a tree of arguments."""
        return reference(self.op.scan, self.op.dag, *at)

    def derivative(self, at: Any, along: Any) -> ReferenceResult:
        """Of the recurrence, at a tree of arguments along another."""
        return derivative(self.op.scan, self.op.dag, Arguments(*at), Arguments(*along))

    def slope(self, at: Any, along: Any) -> float:
        """The derivative of the cotangent's product."""
        found = self.derivative(at, along)
        return dot(self.cotangent, (found.h, found.state))

    def changed(self, kept: Callable[[int], bool]) -> Any:
        """The changes of those arrays whose number `kept` accepts, as a tree; of the others zero."""
        leaves = [change if kept(number) else np.zeros_like(change) for number, change in enumerate(self.changes)]
        return jax.tree.unflatten(jax.tree.structure(self.trees[0]), leaves)


def example_of(strategy: str) -> tuple[Example, dict[str, Any]]:
    """The first example that a strategy of the registry takes, and the smallest settings that it proposes for it."""
    example = next((example for example in EXAMPLES if strategy in planned(example, names())), None)
    if example is None:
        pytest.fail(f"no scan in {__name__}.EXAMPLES admits strategy `{strategy}`: add one")
    return example, planned(example, names())[strategy]


@cache
def smallest(strategy: str) -> Subject:
    """The subject of a strategy of the registry."""
    example, config = example_of(strategy)
    return subject(example, strategy, config)


def subject(example: Example, strategy: str, config: dict[str, Any]) -> Subject:
    """An example run by a strategy with these settings."""
    op = compiled(example, strategy=strategy, config=config)
    assert op.plan.strategy == strategy
    trees = tuple(as_tree(random_arguments(op, seed)) for seed in range(3))
    result = reference(op.scan, op.dag, *trees[0])
    real = batch(example.graphs).node_mask if example.graphs else np.ones(len(result.h), bool)
    rng = np.random.default_rng(3)
    h, state = jax.tree.map(lambda array: rng.normal(size=array.shape), (result.h, result.state))
    changes = tuple(rng.normal(size=np.shape(leaf)) for leaf in jax.tree.leaves(trees[0]))
    return Subject(op, trees, (h * real.reshape(-1, *(1,) * (h.ndim - 1)), state), real, changes)
