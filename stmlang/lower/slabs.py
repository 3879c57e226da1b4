"""Rows of a grid as blocks, and the first few of them joined to runs: the start of the row form (`row_runs.py`).

A row is all nodes at one place along the first axis, on a volume a slab. Its edges are those along that axis, `width` entering
and as many leaving; what enters along the other axes does not take part. On a grid of two axes, with `B[x', x]` the product of
the steps `transition[cols, cols]` strictly between x' and x, and zero unless x' < x,

    T[x', x] = diag(transition[rows, rows]) + transition[cols, rows](x') B[x', x] transition[rows, cols](x)
    S[x', x] = diag(source[rows])           + source[cols](x')           B[x', x] transition[rows, cols](x)
    M[x', x] = diag(mark[rows])             + transition[cols, rows](x') B[x', x] mark[cols](x)
    G[x', x] =                                source[cols](x')           B[x', x] mark[cols](x)

whatever the gates: running products, no divisions, zeros are exact. With tracks a row is merged of its nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.contractions import matmul
from stmlang.lower.grid import node_blocks
from stmlang.lower.merge import merge_grid
from stmlang.lower.merge_tree import arranged, slot_order
from stmlang.lower.one_turn import products
from stmlang.lower.operands import Scalars, flip
from stmlang.lower.summary import Summary
from stmlang.lower.tables import by_track


class Joined(NamedTuple):
    """Runs of a few rows: `through` is `T`; `source`, `mark` are `S` and `M` row by row; `seen[target][source]` are the parts
    of `G` by pairs of rows, the source not after the target. Edges are `width`, each with all tracks."""

    through: Float[Array, "*batch run edge edge"]
    source: list[Float[Array, "*batch run width edge"]]
    mark: list[Float[Array, "*batch run edge width"]]
    seen: list[list[Float[Array, "*batch run width width"]]]


def cut_first(gates: Scalars, axis: int, rank: int, tracks: int = 1) -> Scalars:
    """The gates `(direction, head, *axes, ports...)` of a grid with one of its axes, and the port along it, in front."""

    def moved(array: Array) -> Array:
        array = jnp.moveaxis(array, 2 + axis, 2)
        order = [axis, *(port for port in range(rank) if port != axis)]
        for last in range(2 + rank, array.ndim):
            ports = [jax.lax.slice_in_dim(array, p * tracks, (p + 1) * tracks, axis=last) for p in order]
            array = jnp.concatenate(ports, axis=last)
        return array

    return gates if axis == 0 else Scalars(*(moved(gate) for gate in gates))


def pad_rows(gates: Scalars, before: Sequence[int], count: int) -> Scalars:
    """`count` rows more, of them `before[direction]` ahead of all others, that pass on what enters along the first axis and
    touch nothing else."""
    if count == 0:
        return gates

    def pad(array: Array, ahead: int) -> Array:
        return jnp.pad(array, [(0, 0), (ahead, count - ahead), *((0, 0) for _ in range(array.ndim - 2))])

    padded = Scalars(*(jnp.stack([pad(row, ahead) for row, ahead in zip(gate, before, strict=True)]) for gate in gates))
    size, rank, ports = gates.source.shape[2], gates.source.ndim - 3, gates.source.shape[-1]
    place = jnp.arange(size + count)[None] - jnp.asarray(before)[:, None]
    first = jnp.arange(ports) < ports // rank
    straight = jnp.where(first, jnp.eye(ports, dtype=gates.transition.dtype), 0)
    beyond = ((place < 0) | (place >= size)).reshape(len(before), 1, size + count, *(1,) * (rank + 1))
    return padded._replace(transition=jnp.where(beyond, straight, padded.transition))


def rows_of(gates: Scalars, parting: Array) -> Summary:
    """Single rows: gates `(direction, head, row, *others, ports...)`; `parting` those of the places in a row of one axis."""
    rank = gates.source.ndim - 3
    if gates.source.shape[-1] != 2:
        return _merged_rows(gates, rank)
    into, out = gates.transition[..., 0, 1], gates.transition[..., 1, 0]
    ahead = jnp.ones(gates.source.shape[0], jnp.int32)
    strict = products(gates.transition[..., 1, 1][..., None], ahead, parting)[..., 0]
    eye = jnp.expand_dims(jnp.eye(strict.shape[-1], dtype=strict.dtype), tuple(range(strict.ndim - 2)))

    def row(diagonal: Array, first: Array, last: Array) -> Array:
        return diagonal[..., None, :] * eye + first[..., :, None] * strict * last[..., None, :]

    source, mark = gates.source, gates.mark
    return Summary(
        source=row(source[..., 0], source[..., 1], into),
        transition=row(gates.transition[..., 0, 0], out, into),
        mark=row(mark[..., 0], out, mark[..., 1]),
        gating=source[..., 1][..., :, None] * strict * mark[..., 1][..., None, :],
    )


def _merged_rows(gates: Scalars, rank: int) -> Summary:
    """Rows of any number of axes and tracks, by merging their nodes; of their borders only the edges along the first axis
    count."""
    sizes, tracks = gates.source.shape[-1 - rank + 1 : -1], gates.source.shape[-1] // rank
    flat = Scalars(*(jnp.expand_dims(gate, 3) for gate in gates))
    block, border = merge_grid(node_blocks(flat), (1, *sizes), tracks)
    width = prod(sizes)
    orders = (slot_order(edges, (1, *sizes))[:width] for edges in (border.entering, border.leaving))
    return arranged(block, *(by_track(order, tracks) for order in orders))


def joined(rows: Summary, count: int) -> Joined:
    """Every `count` rows as one run, row after row: what came so far times `T` and `M` of the next row, in one product."""
    source, transition, mark, gating = (taken_apart(array, count) for array in rows)
    edges, width = transition[0].shape[-1], source[0].shape[-2]
    past = jnp.concatenate([transition[0], source[0]], axis=-2)
    marks, lines = [mark[0]], [[gating[0]]]
    for row in range(1, count):
        passed, read = jnp.split(matmul(past, jnp.concatenate([transition[row], mark[row]], axis=-1)), [edges], axis=-1)
        entering, *before = jnp.split(read, [edges + width * k for k in range(row)], axis=-2)
        marks.append(entering)
        lines.append([*before, gating[row]])
        past = jnp.concatenate([passed, source[row]], axis=-2)
    whole, *written = jnp.split(past, [edges + width * k for k in range(count)], axis=-2)
    return Joined(whole, written, marks, lines)


def taken_apart(runs: Array, count: int) -> list[Array]:
    """`(*batch, run, ., .)`: the first, the second, ... of every `count` runs. A split, whose transpose is one concatenation,
    where that of slices is a sum of arrays filled up with zeros."""
    pieces = jnp.split(runs.reshape(*runs.shape[:-3], -1, count, *runs.shape[-2:]), count, axis=-3)
    return [jnp.squeeze(piece, -3) for piece in pieces]


def with_declared_nodes(rows: Summary, senses: Sequence[Sequence[int]], sizes: Sequence[int]) -> Summary:
    """Rows of every direction, `(direction, head, row, ., .)`, their nodes in declared order. Edges between rows stay in the
    directions' own order, for each alone numbers them. `senses` are those of the axes of a row, of sizes `sizes`."""

    def nodes(array: Array, axes: Sequence[int]) -> Array:
        lanes = [jnp.squeeze(lane, 0) for lane in jnp.split(array, len(senses))]
        for axis in axes:
            lanes = [_flipped(lane, sense, axis, sizes) for lane, sense in zip(lanes, senses, strict=True)]
        return jnp.stack(lanes)

    return Summary(nodes(rows.source, [2]), rows.transition, nodes(rows.mark, [3]), nodes(rows.gating, [2, 3]))


def _flipped(array: Array, senses: Sequence[int], axis: int, sizes: Sequence[int]) -> Array:
    split = array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :])
    return flip(split, senses, axis).reshape(array.shape)
