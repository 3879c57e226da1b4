"""Gating matrices of grids of two axes on which paths turn once: walk along a line, turn, walk along the other axis.

Nodes are `(y, x)`, and a path goes along the axis of x first. With T the transition, S the source and M the mark at a node, c
the port along x and r the other one, for a direction that goes forward on both axes

    A[y0, x0, x] = S_c(y0, x0) (prod of T_cc(y0, u) over x0 < u < x) T_rc(y0, x)     x > x0,  and  S_r(y0, x0) at x = x0
    R[y0, x0, x] = S_c(y0, x0) (prod of T_cc(y0, u) over x0 < u < x) M_c(y0, x)      x > x0,  else 0
    B[y0, y, x]  = (prod of T_rr(w, x) over y0 < w < y) M_r(y, x)                    y > y0,  else 0

    G[(y0, x0), (y, x)] = A[y0, x0, x] B[y0, y, x]  for y > y0,  and  R[y0, x0, x]  for y = y0

and in others the same turned around. At most one of two directions that differ in the sense of y alone reaches any other line:
they share what is a `Term` here. Products are running ones, so that gates at zero, one and minus one are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


class PortGates(NamedTuple):
    """Gates of every direction in declared coordinates, `(direction, head, y, x)`; `first` is the port along x."""

    source_first: Array
    source_last: Array
    first: Array
    last: Array
    turn: Array
    mark_first: Array
    mark_last: Array


class Term(NamedTuple):
    """What targets in other lines than a source's read of it is `before[y0, x0, x] up[y0, y, x]` where `y < y0` and
    `after[y0, x0, x] down[y0, y, x]` where `y > y0`; those in its own read `level[y0, x0, x]`."""

    before: Float[Array, "head y0 x0 x"]
    level: Float[Array, "head y0 x0 x"]
    after: Float[Array, "head y0 x0 x"]
    up: Float[Array, "head y0 y x"]
    down: Float[Array, "head y0 y x"]


def terms(gates: PortGates, senses: Sequence[tuple[int, int]], kept_apart: bool) -> list[Term]:
    """The terms whose sum is the gating matrix of all directions, or one for each direction where they are kept apart.

    `senses` are those of y and x, direction by direction.
    """
    pairs = [[number] for number in range(len(senses))] if kept_apart else pairs_of(senses)
    turned, levels = _first_walk(gates, [first for _, first in senses], pairs)
    across = _last_walk(gates, [last for last, _ in senses])

    def of(pair: list[int], level: Array) -> Term:
        down, up = sorted(pair, key=lambda number: -senses[number][0]) if len(pair) == 2 else pair * 2
        return Term(turned[up], level, turned[down], across[up], across[down])

    return [of(pair, level) for pair, level in zip(pairs, levels, strict=True)]


def pairs_of(senses: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Directions that share a term: the same sense along x, opposite ones along y. Some have no partner."""
    found: list[list[int]] = []
    for number, (last, first) in enumerate(senses):
        for pair in found:
            if len(pair) == 1 and senses[pair[0]] == (-last, first):
                pair.append(number)
                break
        else:
            found.append([number])
    return found


def _rerun(step: Callable[..., Any]) -> Callable[..., Any]:
    """A scan's step of which the backward pass keeps nothing but the carry."""
    return cast(Callable[..., Any], cast(Any, jax.checkpoint)(step))


# Both walks are scans that put one place after the other in front of those ahead of it, in all lines, heads and directions at
# once. What they give are the tables themselves: arithmetic that came after would be fused into the reading of all pairs.


def _first_walk(gates: PortGates, senses: Sequence[int], pairs: Sequence[Sequence[int]]) -> tuple[list[Array], list[Array]]:
    """A of every direction and R of every pair, `(head, y0, x0, x)`."""

    @_rerun
    def step(ahead: Array, at: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        here, (decay, source_first, source_last) = at[0][:, None, None, :], (part[..., None] for part in at[1:])
        sent = source_first * ahead
        turned = sent * gates.turn + here * source_last
        line = sent * gates.mark_first
        levels = jnp.stack([sum((line[number] for number in pair[1:]), start=line[pair[0]]) for pair in pairs])
        return here + decay * ahead, (turned, levels)

    columns = [_along(gate, senses, 3) for gate in (gates.first, gates.source_first, gates.source_last)]
    xs = (_places(gates.first, senses, 3), *columns)
    turned, levels = cast(tuple[Array, Array], lax.scan(step, jnp.zeros_like(gates.first), xs)[1])
    return (
        [_placed(turned, number, sense, 2) for number, sense in enumerate(senses)],
        [_placed(levels, number, senses[pair[0]], 2) for number, pair in enumerate(pairs)],
    )


def _last_walk(gates: PortGates, senses: Sequence[int]) -> list[Array]:
    """B of every direction, `(head, y0, y, x)`."""

    @_rerun
    def step(ahead: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        here, decay = at[0][:, None, :, None], at[1][..., None, :]
        return here + decay * ahead, ahead * gates.mark_last

    rows = (_places(gates.last, senses, 2), _along(gates.last, senses, 2))
    found = cast(Array, lax.scan(step, jnp.zeros_like(gates.last), rows)[1])
    return [_placed(found, number, sense, 1) for number, sense in enumerate(senses)]


def _along(gate: Array, senses: Sequence[int], axis: int) -> Array:
    """A gate with a leading axis of steps, `(step, direction, head, other axis)`: the places of an axis from the far end on."""
    forward = jnp.asarray([sense > 0 for sense in senses])[:, None, None]
    gate = jnp.moveaxis(gate, axis, 0)
    return jnp.where(forward, gate[::-1], gate)


def _places(gate: Array, senses: Sequence[int], axis: int) -> Array:
    """Which place each step puts in front, one-hot: `(step, direction, place)`."""
    size = gate.shape[axis]
    step, place = jnp.arange(size)[:, None], jnp.arange(size)
    parts = [(size - 1 - step if sense > 0 else step) == place for sense in senses]
    return jnp.stack(parts, 1).astype(gate.dtype)


def _placed(tables: Array, number: int, sense: int, axis: int) -> Array:
    """One table of `(step, table, head, ...)`, its steps as places of an axis."""
    table = tables[::-1, number] if sense > 0 else tables[:, number]
    return jnp.moveaxis(table, 0, axis)
