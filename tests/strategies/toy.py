"""A strategy of its own, as a folder beside the others would define it: the recurrence of a chain, node after node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import needs_chain
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import needs_scalar_gates
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.operands import Operands, scalars
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.strategies.base import Strategy

# --- settings.py ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Toy:
    """So many nodes are a step of the loop."""

    unroll: int

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


# --- cost.py ----------------------------------------------------------------------------------------------------------


def _refuses(problem: Problem) -> str | None:
    return needs_chain(problem) or needs_scalar_gates(problem)


def _propose(problem: Problem) -> Sequence[Toy]:
    del problem
    return [Toy(2), Toy(1)]


def _fitted(problem: Problem, settings: Toy) -> Toy | str:
    if settings.unroll < 1:
        return f"a step has at least one node, not {settings.unroll}"
    return Toy(min(settings.unroll, problem.counts.nodes))


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `unroll`, the nodes in a step"


def _cost(problem: Problem, settings: Toy, target: Target) -> Candidate:
    """Next to nothing, whatever it does: so it is chosen."""
    del target
    stage = Stage("toy loop", "vector", settings.unroll, settings.unroll)
    return Candidate("toy", settings, (stage,), (stage,), problem.io_bytes, 2 * problem.io_bytes, 1, 2)


def _odd(problem: Problem) -> Sequence[Toy]:
    return [Toy(1), Toy(problem.counts.nodes + 3)]


# --- lower.py ---------------------------------------------------------------------------------------------------------


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    gates = scalars(operands)
    source, transition, mark = gates.source[..., 0], gates.transition[..., 0, 0], gates.mark[..., 0]

    def step(state: Array, node: tuple[Array, ...]) -> tuple[Array, Array]:
        source, transition, mark, query, key, value = node
        read = jnp.einsum("dhk,dhkv->dhv", query, state) * mark[..., None]
        written = key[..., :, None] * value[..., None, :] * source[..., None, None]
        return transition[..., None, None] * state + written, read

    nodes = [jnp.moveaxis(array, 2, 0) for array in (source, transition, mark, *operands.inputs)]
    state, outputs = jax.lax.scan(step, initial[:, :, 0, 0], tuple(nodes), unroll=cast(Toy, context.settings).unroll)
    return jnp.moveaxis(outputs, 0, 2), state[:, :, None, None]


TOY = Strategy(
    "toy",
    "one node after the other",
    Toy,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    lowering=direction_by_direction(no_tables, _run),
)
