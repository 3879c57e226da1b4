"""Separable grids: attention whose gating matrix is a product of two tables of decays along lines (see `turns`).

Entries are made where they are used. The gating matrix of one direction is never formed; with `rows` less than the number of
lines nothing of its size is: targets are worked off in blocks of so many lines, `N x rows X` pairs at a time, and the backward
pass makes each block again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from stmlang.lower.adapters import by_block
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.manual import alike
from stmlang.lower.merge_tree import whole_block
from stmlang.lower.no_fusion import apart
from stmlang.lower.one_turn import PortGates, Walks, partings, walks
from stmlang.lower.operands import Operands, flip, scalars
from stmlang.lower.strategy import LoweringContext, Needs, Tables
from stmlang.lower.summary import Summary
from stmlang.strategies.separable.settings import Lines, Separable, lines_of


def _outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
    scan, lines = context.problem.scan, _grid_lines(context)
    first = lines.first
    senses = [(direction.senses[1 - first], direction.senses[first]) for direction in scan.directions]
    direct = operands.direct if operands.direct is None or first == 1 else jnp.swapaxes(operands.direct, 2, 3)
    gates = _port_gates(context, operands, first)
    together = [range(len(senses))] if scan.combine == "sum" else [[number] for number in range(len(senses))]

    def found(number: int, group: Sequence[int]) -> Walks:
        part = PortGates(*(jnp.concatenate([_taken(gate, 0)[one][None] for one in group]) for gate in gates))
        return walks(part, None if direct is None else direct[number], [senses[one] for one in group], tables)

    query, key, value = (_lines(flip(part[0], scan.directions[0].senses, 1), first) for part in operands.inputs)
    rows = cast(Separable, context.settings).rows
    h = jnp.stack([attend(rows, query, key, value, found(number, group)) for number, group in enumerate(together)])
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
        found = jnp.moveaxis(ports, -1, 0)
        found = jnp.stack([flip(part, one.senses, 2) for part, one in zip(_taken(found, 1), directions, strict=True)], 1)
        return _taken(found if first == 1 else jnp.swapaxes(found, 3, 4), 0)

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
    return [jnp.squeeze(part, axis) for part in jnp.split(array, array.shape[axis], axis)]


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    """What crosses the border, and the gating matrix of each direction for those who ask for it, by merging."""
    del tables
    return whole_block(context, (), operands)


# --- attention with the tables ---------------------------------------------------------------------------------------


def attend(rows: int, query: Array, key: Array, value: Array, gates: Walks) -> Array:
    """`h[n] = sum over m of G[m, n] (q[n] . k[m]) v[m]`: inputs `(head, node, index)`, `rows` lines of targets at a time."""
    if rows >= gates.across.shape[-2]:
        function = with_adjoint(_whole, _whole_forward, _whole_backward)
    else:
        function = with_adjoint(partial(_blocks, rows), partial(_blocks_forward, rows), partial(_blocks_backward, rows))
    return function(query, key, value, gates)


class Pairs(NamedTuple):
    """Of all sources and the targets of a block: `q . k`, and that times the gating matrix."""

    scores: Array
    weights: Array


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

    parts = [entries(term) for term in range(terms)]
    return pairs * sum(parts[1:], start=parts[0])


def _unfolded(pairs: Array, gates: Walks) -> Array:
    """`(head, source, target)` as `(head, y0, x0, y, x)`."""
    heads, lines, targets, size = gates.across.shape[1:]
    return pairs.reshape(heads, lines, size, targets, size)


def _read(query: Array, key: Array, value: Array, gates: Walks, start: Any) -> tuple[Array, Pairs]:
    """What a block of targets reads; `across` is cut to it, and it starts at line `start`."""
    lines, count = gates.across.shape[-3:-1]
    scores = matmul(key, transposed(query))
    weights = _weighted(_unfolded(scores, gates), gates, _ahead(lines, start, count)).reshape(scores.shape)
    return matmul(transposed(weights), value), Pairs(scores, weights)


@apart
def _pulled(scores: Array, seen: Array, gates: Walks, ahead: Array) -> tuple[list[Array], Array, list[Array]]:
    """Cotangents of the tables, where `seen` is that of the weights: walk by walk, the one of `level` for all terms."""
    change, terms = scores * seen, gates.level.shape[0]
    coming, passed, own = (jnp.where(holds, change, 0) for holds in (ahead > 0, ahead < 0, ahead == 0))
    halves = [coming] * terms + [passed] * terms
    return (
        [(part * gates.across[walk][..., None, :, :]).sum(-2) for walk, part in enumerate(halves)],
        own.sum(-2),
        [(part * gates.turned[walk][..., None, :]).sum(-3) for walk, part in enumerate(halves)],
    )


def _pull(
    query: Array, key: Array, value: Array, gates: Walks, start: Any, pairs: Pairs, cotangent: Array
) -> tuple[Array, Array, Array, Walks]:
    """Cotangents of all that `_read` takes."""
    lines, count = gates.across.shape[-3:-1]
    ahead = _ahead(lines, start, count)
    seen = matmul(value, transposed(cotangent))
    back = _weighted(_unfolded(seen, gates), gates, ahead).reshape(seen.shape)
    turned, level, across = _pulled(_unfolded(pairs.scores, gates), _unfolded(seen, gates), gates, ahead)
    return (
        matmul(transposed(back), key),
        matmul(back, query),
        matmul(pairs.weights, cotangent),
        Walks(jnp.stack(turned), jnp.broadcast_to(level, gates.level.shape), jnp.stack(across)),
    )


def _whole(query: Array, key: Array, value: Array, gates: Walks) -> Array:
    return _read(query, key, value, gates, 0)[0]


def _whole_forward(query: Array, key: Array, value: Array, gates: Walks) -> tuple[Array, Pairs]:
    return _read(query, key, value, gates, 0)


def _whole_backward(args: tuple[Any, ...], saved: Pairs, cotangent: Array) -> tuple[Any, ...]:
    query, key, value, gates = args
    return _pull(query, key, value, gates, 0, saved, cotangent)


# --- block after block -----------------------------------------------------------------------------------------------


def _blocks(rows: int, query: Array, key: Array, value: Array, gates: Walks) -> Array:
    def step(start: Array, block: tuple[Array, Array]) -> tuple[Array, Array]:
        targets, across = block
        return start + rows, _read(targets, key, value, gates._replace(across=across), start)[0]

    size, lines = gates.across.shape[-1], gates.across.shape[-2]
    _, found = lax.scan(step, jnp.zeros((), jnp.int32), _in_blocks(rows, size, query, gates))
    return _joined_blocks(found, -2, lines * size)


def _in_blocks(rows: int, size: int, nodes: Array, gates: Walks) -> tuple[Array, Array]:
    """Targets, and the tables of their lines, with a leading axis of blocks; the last one is filled up with zeros."""
    return _split(nodes, rows * size, -2), _split(gates.across, rows, -2)


def _split(array: Array, count: int, axis: int) -> Array:
    axis %= array.ndim
    size = array.shape[axis]
    blocks = -(-size // count)
    widths = [(0, blocks * count - size if k == axis else 0) for k in range(array.ndim)]
    parts = jnp.pad(array, widths).reshape(*array.shape[:axis], blocks, count, *array.shape[axis + 1 :])
    return jnp.moveaxis(parts, axis, 0)


def _joined_blocks(array: Array, axis: int, size: int) -> Array:
    """The inverse of `_split`."""
    axis %= array.ndim - 1
    parts = jnp.moveaxis(array, 0, axis)
    whole = parts.reshape(*parts.shape[:axis], -1, *parts.shape[axis + 2 :])
    return lax.slice_in_dim(whole, 0, size, axis=axis)


def _blocks_forward(rows: int, query: Array, key: Array, value: Array, gates: Walks) -> tuple[Array, tuple[()]]:
    return _blocks(rows, query, key, value, gates), ()


def _blocks_backward(rows: int, args: tuple[Any, ...], saved: Any, cotangent: Array) -> tuple[Any, ...]:
    """Block after block again: sums for all sources are carried along, what belongs to targets is put together."""
    del saved
    query, key, value, gates = args
    size, lines = gates.across.shape[-1], gates.across.shape[-2]

    def step(carry: Any, block: Any) -> tuple[Any, Any]:
        start, total = carry
        (targets, across), back = block
        cut = gates._replace(across=across)
        _, pairs = _read(targets, key, value, cut, start)
        *inputs, tables = _pull(targets, key, value, cut, start, pairs, back)
        total = jax.tree.map(jnp.add, total, (inputs[1], inputs[2], tables.turned, tables.level))
        return (start + rows, total), (inputs[0], tables.across)

    sums = (key, value, gates.turned, gates.level)
    zero = alike(tuple(jnp.zeros(part.shape, part.dtype) for part in sums), sums)
    blocks = (_in_blocks(rows, size, query, gates), _split(cotangent, rows * size, -2))
    (_, (keys, values, turned, level)), (queries, across) = lax.scan(step, (jnp.zeros((), jnp.int32), zero), blocks)
    tables = Walks(turned, level, _joined_blocks(across, -2, lines))
    return _joined_blocks(queries, -2, lines * size), keys, values, tables


def _tables(context: LoweringContext) -> Tables:
    """The levels at which lines, and places in a line, part."""
    lines = _grid_lines(context)
    return partings(lines.count), partings(lines.size)


LOWERING = by_block(_tables, _block, _outputs, needs=Needs(direct=True))
