"""What the public cases share: chains as texts, a recurrence of their own in JAX, and every way of evaluating a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import stmlang
from stmlang.cost.candidate import Candidate
from stmlang.cost.settings import ConfigValue, settings_dict
from stmlang.cost.target import CPU
from stmlang.strategies.base import asked_for, odd_settings
from stmlang.strategies.registry import strategies, strategy_named
from tests.helpers.cases import GIVEN, NONE

Tree = Any
PLAIN = GIVEN + NONE


def scan_on(topology: str, body: str = PLAIN, heads: int = 1, key: int = 2, value: int = 2, track: int = 1) -> str:
    """A scan as a text."""
    tracks = f", track = {track}" if track > 1 else ""
    return f"scan test(heads = {heads}, key = {key}, value = {value}{tracks}) on {topology} {{\n{body}}}\n"


def settings(op: Any, strategy: str, size: int) -> dict[str, ConfigValue]:
    """The settings of a strategy that cuts a scan's topology, by the names that they have in any of them: pieces with sides of
    `size`. Of one that has none of these, the first that it calls odd."""
    axes = op.dag.regular or ()
    pieces: dict[str, ConfigValue] = {"block": size}
    if axes:
        tile = (size,) * len(axes)
        pieces = {"tile": tile, "segments": 1, "chunk": size, "axis": 0, "rows": size, "targets": size + 1}
    entry = strategy_named(strategy)
    config = {field.name: pieces[field.name] for field in fields(entry.settings) if field.name in pieces}
    odd = () if config else odd_settings(entry, op.compilation.program.problem)
    return settings_dict(odd[0]) if odd else config


Names = tuple[str, ...] | None


def sweep(*quick: str) -> pytest.MarkDecorator:
    """A parameter `only` for `every_way`: some strategies, or if none is named the one that the planner chooses; all of them in
    the slow sweep."""
    every = pytest.param(None, id="every strategy", marks=pytest.mark.slow)
    return pytest.mark.parametrize("only", [pytest.param(quick, id=" ".join(quick) or "planned"), every])


def every_way(text: str, dtype: str, size: int, only: Names = None) -> dict[str, Any]:
    """A scan compiled by every strategy that can evaluate it, by name; those that cut it, in pieces of `size`."""
    op: Any = stmlang.compile(text, dtype=dtype)
    problem, found = op.compilation.program.problem, {}
    wanted = {op.plan.strategy} if only == () else set(only or [strategy.name for strategy in strategies()])
    for strategy in strategies():
        config = settings(op, strategy.name, size)
        if strategy.name in wanted and isinstance(asked_for(strategy, problem, config, CPU), Candidate):
            found[strategy.name] = stmlang.compile(text, dtype=dtype, strategy=strategy.name, config=config)
    assert set(only if only is not None else [ranked.estimate.candidate.strategy for ranked in op.plan.ranked]) <= set(found)
    return found


def recurrence(q: Tree, k: Tree, v: Tree, gates: Mapping[str, Tree], initial: Tree, return_state: bool = True) -> Tree:
    """The chain of `PLAIN`, one node after the other in the type of its arguments, differentiable: result and final states, as
    a compiled scan gives them."""
    assert return_state
    port = next(iter(initial[0]))

    def step(state: jax.Array, now: tuple) -> tuple[jax.Array, jax.Array]:
        q, k, v, source, transition, mark, direct = now
        added = k[:, :, None] * v[:, None, :]
        read = mark[:, :, None] * state + direct[:, None, None] * added
        return transition[:, 0, :, None] * state + source[:, :, None] * added, jnp.einsum("hk,hkv->hv", q, read)

    gate = (gates[name] for name in ("source", "transition", "mark", "direct"))
    state, h = lax.scan(step, jnp.asarray(initial[0][port]), (q, k, v, *gate))
    return h, ({port: state},)


def ones(op: Any, tree: Tree) -> Tree:
    """A cotangent of ones for result and final states."""
    return jax.tree.map(lambda leaf: np.ones(leaf.shape), jax.eval_shape(lambda: op(*tree, return_state=True)))


def as_type(tree: Tree, dtype: str) -> Tree:
    """Arguments rounded to a type, as JAX arrays."""
    return jax.tree.map(lambda array: jnp.asarray(array, dtype), tree)


def widened(tree: Tree) -> Tree:
    """Arguments in double precision, as numpy arrays."""
    return jax.tree.map(lambda array: np.asarray(array, np.float64), tree)
