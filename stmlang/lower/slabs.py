"""Rows of a grid as blocks, and the first few of them joined to runs: the start of the row form (`stmlang.lower.rows`).

A row is all nodes at one place along the first axis, on a volume a slab. Its edges are those along that axis, `width` entering
and as many leaving; what enters along the other axes does not take part. On a grid of two axes, with `B[x', x]` the product of
the steps `transition[cols, cols]` strictly between x' and x, and zero unless x' < x,

    T[x', x] = diag(transition[rows, rows]) + transition[cols, rows](x') B[x', x] transition[rows, cols](x)
    S[x', x] = diag(source[rows])           + source[cols](x')           B[x', x] transition[rows, cols](x)
    M[x', x] = diag(mark[rows])             + transition[cols, rows](x') B[x', x] mark[cols](x)
    G[x', x] =                                source[cols](x')           B[x', x] mark[cols](x)

whatever the gates: running products, no divisions, zeros are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.block import matmul, transposed
from stmlang.lower.grid import node_blocks
from stmlang.lower.merge import merge_grid
from stmlang.lower.operands import Scalars, flip
from stmlang.lower.parallel import arranged, slot_order


class Slabs(NamedTuple):
    """Runs of rows as blocks: `T[entering, leaving]`, `S[node, leaving]`, and with the target first `M[node, entering]` and
    `G[node, node]`."""

    through: Float[Array, "*batch run width width"]
    source: Float[Array, "*batch run node width"]
    mark: Float[Array, "*batch run node width"]
    seen: Float[Array, "*batch run node node"]


def cut_first(gates: Scalars, axis: int, rank: int) -> Scalars:
    """The gates `(direction, head, *axes, ports...)` of a grid with one of its axes, and the port along it, in front."""

    def moved(array: Array) -> Array:
        array = jnp.moveaxis(array, 2 + axis, 2)
        order = [axis, *(port for port in range(rank) if port != axis)]
        for last in range(2 + rank, array.ndim):
            array = jnp.concatenate([jax.lax.slice_in_dim(array, p, p + 1, axis=last) for p in order], axis=last)
        return array

    return gates if axis == 0 else Scalars(*(moved(gate) for gate in gates))


def pad_rows(gates: Scalars, before: Sequence[int], count: int) -> Scalars:
    """`count` rows more, of them `before[direction]` ahead of all others, that pass on what enters along the first axis and
    touch nothing else."""
    if count == 0:
        return gates

    def pad(array: Array, ahead: int) -> Array:
        return jnp.pad(array, [(0, 0), (ahead, count - ahead), *((0, 0) for _ in range(array.ndim - 2))])

    parts = Scalars(*(jnp.stack([pad(part, ahead) for part, ahead in zip(gate, before, strict=True)]) for gate in gates))
    size, rank = gates.source.shape[2], gates.source.ndim - 3
    place = jnp.arange(size + count) - jnp.asarray(before)[:, None]
    straight = jnp.zeros((rank, rank), gates.transition.dtype).at[0, 0].set(1)
    beyond = ((place < 0) | (place >= size)).reshape(len(before), 1, size + count, *(1,) * (rank + 1))
    return parts._replace(transition=jnp.where(beyond, straight, parts.transition))


def rows_of(gates: Scalars) -> Slabs:
    """Single rows: gates `(*batch, row, *others, ports...)`."""
    rank = gates.source.shape[-1]
    if rank != 2:
        return _merged_rows(gates, rank)
    into, out = gates.transition[..., 0, 1], gates.transition[..., 1, 0]
    strict = _products(gates.transition[..., 1, 1])
    eye = jnp.eye(strict.shape[-1], dtype=strict.dtype)

    def row(diagonal: Array, first: Array, last: Array) -> Array:
        return diagonal[..., None, :] * eye + first[..., :, None] * strict * last[..., None, :]

    source, mark = gates.source, gates.mark
    return Slabs(
        row(gates.transition[..., 0, 0], out, into),
        row(source[..., 0], source[..., 1], into),
        transposed(row(mark[..., 0], out, mark[..., 1])),
        transposed(source[..., 1][..., :, None] * strict * mark[..., 1][..., None, :]),
    )


def _products(steps: Array) -> Array:
    """`B[x', x]`, the product of `steps[u]` over `x' < u < x`: zero unless `x' < x`."""

    def one(row: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        step, unit = given
        return step[..., None] * row + unit, row

    size = steps.shape[-1]
    units = jnp.eye(size, dtype=steps.dtype)
    _, rows = jax.lax.scan(one, jnp.zeros_like(steps), (jnp.moveaxis(steps, -1, 0), units), reverse=True)
    return jnp.moveaxis(rows, 0, -2)


def _merged_rows(gates: Scalars, rank: int) -> Slabs:
    """Slabs of any number of axes, by merging their nodes; of their borders only the edges along the first axis count."""
    sizes = gates.source.shape[-1 - rank + 1 : -1]
    flat = Scalars(*(jnp.expand_dims(gate, 3) for gate in gates))
    block, border = merge_grid(node_blocks(flat), (1, *sizes))
    width = prod(sizes)
    entering, leaving = (slot_order(edges, (1, *sizes))[:width] for edges in (border.entering, border.leaving))
    block = arranged(block, entering, leaving)
    return Slabs(block.transition, block.source, transposed(block.mark), transposed(block.gating))


def joined(rows: Slabs, count: int) -> Slabs:
    """Every `count` rows as one run, row after row."""
    if count == 1:
        return rows
    through, source, mark, seen = (taken_apart(part, count) for part in rows)
    width, rank = through[0].shape[-1], seen[0].ndim

    def line(row: int, before: list[Array]) -> Array:
        after = [(0, 0)] * (rank - 1) + [(0, (count - 1 - row) * width)]
        return jnp.concatenate([*before, jnp.pad(seen[row], after)], axis=-1)

    past = jnp.concatenate([through[0], source[0]], axis=-2)
    marks, lines = [mark[0]], [line(0, [])]
    for row in range(1, count):
        entering, before = jnp.split(matmul(mark[row], transposed(past)), [width], axis=-1)
        marks.append(entering)
        lines.append(line(row, [before]))
        past = jnp.concatenate([matmul(past, through[row]), source[row]], axis=-2)
    passed, written = jnp.split(past, [width], axis=-2)
    return Slabs(passed, written, jnp.concatenate(marks, axis=-2), jnp.concatenate(lines, axis=-2))


def taken_apart(runs: Array, count: int) -> list[Array]:
    """`(*batch, run, ., .)`: the first, the second, ... of every `count` runs. A split, whose transpose is one concatenation,
    where that of slices is a sum of arrays filled up with zeros."""
    parts = jnp.split(runs.reshape(*runs.shape[:-3], -1, count, *runs.shape[-2:]), count, axis=-3)
    return [jnp.squeeze(part, -3) for part in parts]


def declared(runs: Slabs, senses: Sequence[int], sizes: Sequence[int]) -> Slabs:
    """One direction's runs, batch `(head, run)`, with runs, rows and nodes in declared order. `sizes` are those of the rows of
    a run and of the other axes; the edges stay in the direction's own order, for it alone numbers them."""

    def nodes(array: Array, axis: int) -> Array:
        split = array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :])
        return flip(split, senses, axis).reshape(array.shape)

    through, source, mark, seen = (flip(part, senses[:1], 1) for part in runs)
    return Slabs(through, nodes(source, 2), nodes(mark, 2), nodes(nodes(seen, 2), 3))
