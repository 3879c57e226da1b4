"""Separable grids: attention whose gating matrix is a product of two tables of decays along lines (see `turns`).

Entries are made where they are used. The gating matrix of one direction is never formed; with `rows` less than the number of
lines nothing of its size is: targets are worked off in blocks of so many lines, `N x rows X` pairs at a time, and the backward
pass makes each block again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from stmlang.cost.lines import Lines, lines_of
from stmlang.lower.adapters import by_block
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.attention import streamed_attention, weighed_attention
from stmlang.lower.merge_tree import whole_block
from stmlang.lower.no_fusion import apart
from stmlang.lower.one_turn import PortGates, Walks, partings, walks
from stmlang.lower.operands import Operands, flip, scalars
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary
from stmlang.strategies.separable.settings import Separable


def _outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
    scan, lines = context.problem.scan, _grid_lines(context)
    first = lines.first
    senses = [(direction.senses[1 - first], direction.senses[first]) for direction in scan.directions]
    direct = operands.direct if operands.direct is None or first == 1 else jnp.swapaxes(operands.direct, 2, 3)
    gates = _port_gates(context, operands, first)
    together = [range(len(senses))] if scan.combine == "sum" else [[number] for number in range(len(senses))]

    def group_walks(number: int, group: Sequence[int]) -> Walks:
        joined = PortGates(*(jnp.concatenate([_taken(gate, 0)[index][None] for index in group]) for gate in gates))
        return walks(joined, None if direct is None else direct[number], [senses[index] for index in group], tables)

    query, key, value = (_lines(flip(array[0], scan.directions[0].senses, 1), first) for array in operands.inputs)
    rows = cast(Separable, context.settings).rows
    h = jnp.stack([attend(rows, query, key, value, group_walks(number, group)) for number, group in enumerate(together)])
    h = h.reshape(*h.shape[:2], lines.count, lines.size, h.shape[-1])
    return h if first == 1 else jnp.swapaxes(h, 2, 3)


def _grid_lines(context: LoweringContext) -> Lines:
    facts, axes = context.problem.facts, context.axes
    assert facts is not None
    assert axes is not None
    return lines_of(facts, axes)


def _lines(array: Array, first: int) -> Array:
    """`(head, *axes, index)` as `(head, node, index)`, nodes line by line."""
    array = array if first == 1 else jnp.swapaxes(array, 1, 2)
    return array.reshape(array.shape[0], -1, array.shape[-1])


def _port_gates(context: LoweringContext, operands: Operands, first: int) -> PortGates:
    """Gates by port in declared coordinates, as `(direction, head, y, x)`."""
    gates, last, directions = scalars(operands), 1 - first, context.problem.scan.directions

    def by_port(gate: Array) -> list[Array]:
        """Taken apart by one split: its transpose is one concatenation."""
        ports = gate.reshape(*gate.shape[:4], -1)
        gates = jnp.moveaxis(ports, -1, 0)
        gates = jnp.stack(
            [flip(lane, direction.senses, 2) for lane, direction in zip(_taken(gates, 1), directions, strict=True)], 1
        )
        return _taken(gates if first == 1 else jnp.swapaxes(gates, 3, 4), 0)

    source, transition, mark = (by_port(gate) for gate in gates)
    return PortGates(
        source_first=source[first],
        source_last=source[last],
        first=transition[3 * first],
        last=transition[3 * last],
        turn=transition[2 * last + first],
        mark_first=mark[first],
        mark_last=mark[last],
    )


def _taken(array: Array, axis: int) -> list[Array]:
    """The entries along an axis."""
    return [jnp.squeeze(piece, axis) for piece in jnp.split(array, array.shape[axis], axis)]


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    """What crosses the border, and the gating matrix of each direction for those who ask for it, by merging."""
    del tables
    return whole_block(context, (), operands)


# --- attention with the tables ---------------------------------------------------------------------------------------


def attend(rows: int, query: Array, key: Array, value: Array, gates: Walks) -> Array:
    """`h[n] = sum over m of G[m, n] (q[n] . k[m]) v[m]`: inputs `(head, node, index)`, `rows` lines of targets at a time."""
    lines, size = gates.across.shape[-2:]
    if rows >= lines:
        return weighed_attention(query, key, value, lambda scores: weigh(scores, gates, _ahead(lines, 0, lines)))

    def weigh_block(block: tuple[Array, Array], scores: Array) -> Array:
        start, across = block
        return weigh(scores, gates._replace(across=across), _ahead(lines, start, rows))

    blocks = -(-lines // rows)
    starts = rows * jnp.arange(blocks, dtype=jnp.int32)
    h = streamed_attention(_split(query, rows * size, -2), key, value, (starts, _split(gates.across, rows, -2)), weigh_block)
    h = jnp.moveaxis(h, 0, -3).reshape(*query.shape[:-2], -1, value.shape[-1])
    return lax.slice_in_dim(h, 0, lines * size, axis=h.ndim - 2)


def _split(array: Array, count: int, axis: int) -> Array:
    """So many entries of an axis at a time, with a leading axis of blocks; the last block is filled up with zeros."""
    axis %= array.ndim
    size = array.shape[axis]
    blocks = -(-size // count)
    widths = [(0, blocks * count - size if k == axis else 0) for k in range(array.ndim)]
    split = jnp.pad(array, widths).reshape(*array.shape[:axis], blocks, count, *array.shape[axis + 1 :])
    return jnp.moveaxis(split, axis, 0)


def _ahead(lines: int, start: Any, count: int) -> Array:
    """How many lines each of `count` lines of targets lies after each line of sources, to broadcast over `(y0, x0, y, x)`."""
    target, source = (start + jnp.arange(count, dtype=jnp.int32))[None], jnp.arange(lines, dtype=jnp.int32)[:, None]
    return (target - source)[:, None, :, None]


@apart
def _weighted(pairs: Array, gates: Walks, ahead: Array) -> Array:
    """Numbers of pairs `(head, y0, x0, y, x)` times the tile of the gating matrix."""
    turned, level, across = gates.turned[..., None, :], gates.level[..., None, :], gates.across[..., None, :, :]
    terms = level.shape[0]

    def entries(term: int) -> Array:
        later, earlier = turned[term] * across[term], turned[terms + term] * across[terms + term]
        return jnp.where(ahead > 0, later, jnp.where(ahead < 0, earlier, level[term]))

    products = [entries(term) for term in range(terms)]
    return pairs * sum(products[1:], start=products[0])


@apart
def _pulled(scores: Array, cotangent: Array, gates: Walks, ahead: Array) -> tuple[list[Array], Array, list[Array]]:
    """Cotangents of the tables, from that of the weights: walk by walk, the one of `level` for all terms."""
    change, terms = scores * cotangent, gates.level.shape[0]
    coming, passed, own = (jnp.where(holds, change, 0) for holds in (ahead > 0, ahead < 0, ahead == 0))
    halves = [coming] * terms + [passed] * terms
    return (
        [(half * gates.across[walk][..., None, :, :]).sum(-2) for walk, half in enumerate(halves)],
        own.sum(-2),
        [(half * gates.turned[walk][..., None, :]).sum(-3) for walk, half in enumerate(halves)],
    )


def _unfolded(pairs: Array, gates: Walks) -> Array:
    """`(head, source, target)` as `(head, y0, x0, y, x)`."""
    heads, lines, targets, size = gates.across.shape[1:]
    return pairs.reshape(heads, lines, size, targets, size)


def _weigh(scores: Array, gates: Walks, ahead: Array) -> Array:
    return _weighted(_unfolded(scores, gates), gates, ahead).reshape(scores.shape)


def _weigh_forward(scores: Array, gates: Walks, ahead: Array) -> tuple[Array, tuple[()]]:
    return _weigh(scores, gates, ahead), ()


def _weigh_backward(args: tuple[Array, Walks, Array], saved: Any, cotangent: Array) -> tuple[Array, Walks, None]:
    del saved
    scores, gates, ahead = args
    turned, level, across = _pulled(_unfolded(scores, gates), _unfolded(cotangent, gates), gates, ahead)
    tables = Walks(jnp.stack(turned), jnp.broadcast_to(level, gates.level.shape), jnp.stack(across))
    return _weigh(cotangent, gates, ahead), tables, None


weigh = with_adjoint(_weigh, _weigh_forward, _weigh_backward)
"""`(scores, gates, ahead) -> weights`, `(head, source, target)`: scores times the tile of the gating matrix that `ahead` is of,
to whose targets `across` is cut. Its adjoint is written by hand for what is summed over lines before anything is multiplied."""


def _tables(context: LoweringContext) -> Tables:
    """The levels at which lines, and places in a line, part."""
    lines = _grid_lines(context)
    return partings(lines.count), partings(lines.size)


LOWERING = by_block(_tables, _block, _outputs)
