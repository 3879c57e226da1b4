"""Separable grids: attention whose gating matrix is a product of two tables of decays along lines (see `turns`).

Entries are made where they are used. The gating matrix of one direction is never formed; with `rows` less than the number of
lines nothing of its size is: targets are worked off in blocks of so many lines, `N x rows X` pairs at a time, and the backward
pass makes each block again.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from stmlang.lower import parallel
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.block import Block, matmul, transposed
from stmlang.lower.operands import Operands, flip, scalars
from stmlang.lower.strategy import Setup, Tables, Whole
from stmlang.lower.turns import PortGates, Term, terms
from stmlang.plan.candidates.separable import first_axis

Terms = tuple[Term, ...]


def _outputs(setup: Setup, tables: Tables, operands: Operands) -> Array:
    del tables
    scan, facts, axes = setup.problem.scan, setup.problem.facts, setup.axes
    assert facts is not None
    assert axes is not None
    first = first_axis(facts)
    assert first is not None
    kept_apart = scan.combine == "concat"
    senses = [(direction.senses[1 - first], direction.senses[first]) for direction in scan.directions]
    found = terms(_port_gates(setup, operands, first), senses, kept_apart)
    together = [(term,) for term in found] if kept_apart else [tuple(found)]
    query, key, value = (_lines(flip(part[0], scan.directions[0].senses, 1), first) for part in operands.inputs)
    rows = setup.config["rows"]
    assert isinstance(rows, int)
    h = jnp.stack([attend(rows, query, key, value, gates) for gates in together])
    h = h.reshape(*h.shape[:2], axes[1 - first], axes[first], h.shape[-1])
    return h if first == 1 else jnp.swapaxes(h, 2, 3)


def _lines(array: Array, first: int) -> Array:
    """`(head, *axes, index)` as `(head, node, index)`, nodes line by line."""
    array = array if first == 1 else jnp.swapaxes(array, 1, 2)
    return array.reshape(array.shape[0], -1, array.shape[-1])


def _port_gates(setup: Setup, operands: Operands, first: int) -> PortGates:
    """Gates by port in declared coordinates, as `(direction, head, y, x)`."""
    gates, last = scalars(operands), 1 - first

    def declared(gate: Array) -> Array:
        parts = zip(gate, setup.problem.scan.directions, strict=True)
        found = jnp.stack([flip(part, direction.senses, 1) for part, direction in parts])
        return found if first == 1 else jnp.swapaxes(found, 2, 3)

    return PortGates(
        source_first=declared(gates.source[..., first]),
        source_last=declared(gates.source[..., last]),
        first=declared(gates.transition[..., first, first]),
        last=declared(gates.transition[..., last, last]),
        turn=declared(gates.transition[..., last, first]),
        mark_first=declared(gates.mark[..., first]),
        mark_last=declared(gates.mark[..., last]),
    )


def _block(setup: Setup, tables: Tables, operands: Operands) -> Block:
    """What crosses the border, and the gating matrix of each direction for those who ask for it, by merging."""
    return parallel.LOWERING.block(setup, tables, operands)


# --- attention with the tables ---------------------------------------------------------------------------------------


def attend(rows: int, query: Array, key: Array, value: Array, gates: Terms) -> Array:
    """`h[n] = sum over m of G[m, n] (q[n] . k[m]) v[m]`: inputs `(head, node, index)`, `rows` lines of targets at a time."""
    if rows >= gates[0].down.shape[-2]:
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
    return (start + jnp.arange(count) - jnp.arange(lines)[:, None])[:, None, :, None]


def _gating(gates: Terms, ahead: Array) -> Array:
    """The tile of the gating matrix, to be fused into what multiplies it: `(head, y0, x0, y, x)`."""

    def entries(term: Term) -> Array:
        before, level, after = (table[..., None, :] for table in term[:3])
        up, down = (table[..., None, :, :] for table in term[3:])
        return jnp.where(ahead > 0, after * down, jnp.where(ahead < 0, before * up, level))

    parts = [entries(term) for term in gates]
    return sum(parts[1:], start=parts[0])


def _unfolded(pairs: Array, gates: Terms) -> Array:
    """`(head, source, target)` as `(head, y0, x0, y, x)`."""
    heads, lines, targets, size = gates[0].down.shape
    return pairs.reshape(heads, lines, size, targets, size)


def _read(query: Array, key: Array, value: Array, gates: Terms, start: Any) -> tuple[Array, Pairs]:
    """What a block of targets reads; `up` and `down` of the gates are cut to it, and it starts at line `start`."""
    lines, count = gates[0].down.shape[-3:-1]
    scores = matmul(key, transposed(query))
    weights = _unfolded(scores, gates) * _gating(gates, _ahead(lines, start, count))
    # Products need their operands whole; without the barrier XLA lays them out anew.
    weights = lax.optimization_barrier(weights.reshape(scores.shape))
    return matmul(transposed(weights), value), Pairs(scores, weights)


def _pull(
    query: Array, key: Array, value: Array, gates: Terms, start: Any, pairs: Pairs, cotangent: Array
) -> tuple[Array, Array, Array, Terms]:
    """Cotangents of all that `_read` takes."""
    lines, count = gates[0].down.shape[-3:-1]
    ahead = _ahead(lines, start, count)
    scores, seen = lax.optimization_barrier((pairs.scores, matmul(value, transposed(cotangent))))
    back = lax.optimization_barrier((_unfolded(seen, gates) * _gating(gates, ahead)).reshape(seen.shape))
    change = _unfolded(scores, gates) * _unfolded(seen, gates)

    passed, own, coming = (jnp.where(holds, change, 0) for holds in (ahead < 0, ahead == 0, ahead > 0))

    def of(term: Term) -> Term:
        return Term(
            (passed * term.up[..., None, :, :]).sum(-2),
            own.sum(-2),
            (coming * term.down[..., None, :, :]).sum(-2),
            (passed * term.before[..., None, :]).sum(-3),
            (coming * term.after[..., None, :]).sum(-3),
        )

    return (
        matmul(transposed(back), key),
        matmul(back, query),
        matmul(pairs.weights, cotangent),
        tuple(of(term) for term in gates),
    )


def _whole(query: Array, key: Array, value: Array, gates: Terms) -> Array:
    return _read(query, key, value, gates, 0)[0]


def _whole_forward(query: Array, key: Array, value: Array, gates: Terms) -> tuple[Array, Pairs]:
    return _read(query, key, value, gates, 0)


def _whole_backward(args: tuple[Any, ...], saved: Pairs, cotangent: Array) -> tuple[Any, ...]:
    query, key, value, gates = args
    return _pull(query, key, value, gates, 0, saved, cotangent)


# --- block after block -----------------------------------------------------------------------------------------------


def _blocks(rows: int, query: Array, key: Array, value: Array, gates: Terms) -> Array:
    def step(start: Array, block: tuple[Array, list[tuple[Array, Array]]]) -> tuple[Array, Array]:
        targets, last = block
        return start + rows, _read(targets, key, value, _cut(gates, last), start)[0]

    size, lines = gates[0].down.shape[-1], gates[0].down.shape[-2]
    _, found = lax.scan(step, jnp.zeros((), jnp.int32), _in_blocks(rows, size, query, gates))
    return _joined_blocks(found, -2, lines * size)


def _cut(gates: Terms, last: list[tuple[Array, Array]]) -> Terms:
    return tuple(term._replace(up=up, down=down) for term, (up, down) in zip(gates, last, strict=True))


def _in_blocks(rows: int, size: int, nodes: Array, gates: Terms) -> tuple[Array, list[tuple[Array, Array]]]:
    """Targets, and the gates' tables of their lines, with a leading axis of blocks; the last one is filled up with zeros."""
    return _split(nodes, rows * size, -2), [(_split(term.up, rows, -2), _split(term.down, rows, -2)) for term in gates]


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


def _blocks_forward(rows: int, query: Array, key: Array, value: Array, gates: Terms) -> tuple[Array, tuple[()]]:
    return _blocks(rows, query, key, value, gates), ()


def _blocks_backward(rows: int, args: tuple[Any, ...], saved: Any, cotangent: Array) -> tuple[Any, ...]:
    """Block after block again: sums for all sources are carried along, what belongs to targets is put together."""
    del saved
    query, key, value, gates = args
    size, lines = gates[0].down.shape[-1], gates[0].down.shape[-2]

    def step(carry: Any, block: Any) -> tuple[Any, Any]:
        start, total = carry
        (targets, last), back = block
        cut = _cut(gates, last)
        _, pairs = _read(targets, key, value, cut, start)
        *inputs, tables = _pull(targets, key, value, cut, start, pairs, back)
        found = (inputs[1], inputs[2], [term[:3] for term in tables])
        total = jax.tree.map(jnp.add, total, found)
        return (start + rows, total), (inputs[0], [term[3:] for term in tables])

    zero = (jnp.zeros_like(key), jnp.zeros_like(value), [tuple(jnp.zeros_like(part) for part in term[:3]) for term in gates])
    blocks = (_in_blocks(rows, size, query, gates), _split(cotangent, rows * size, -2))
    (_, (keys, values, walks)), (queries, last) = lax.scan(step, (jnp.zeros((), jnp.int32), zero), blocks)
    tables = [
        Term(*walk, *(_joined_blocks(part, -2, lines) for part in parts)) for walk, parts in zip(walks, last, strict=True)
    ]
    return _joined_blocks(queries, -2, lines * size), keys, values, tuple(tables)


def _no_tables(setup: Setup) -> Tables:
    del setup
    return ()


LOWERING = Whole(_no_tables, _block, outputs=_outputs)
