"""P-mode grids by kernels: runs of rows meet in the edges between them, tile by tile on chip (see `kernels`).

A grid is a chain of rows, and runs of rows double in length (`stmlang.lower.row_runs`). What the nodes of one run read of those
of the run beside it is a product over the edges between the two, of a row of M for each target and a row of S for each source.
XLA makes these rows level by level, `width` numbers a node each; a kernel multiplies them where it needs the gate, meets it
with the score, and adds the values up. So neither scores nor gates are in memory, forward or backward, except the gates inside
of first runs, a tile or a few of numbers a node. The adjoint of the rows themselves is XLA's.

Second derivatives, and platforms that know no such kernels, take the same of XLA's operations, some targets at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.runs import Cut
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.attention import masked_attention
from stmlang.lower.contractions import transposed
from stmlang.lower.kernels import kernel_or, parts_of
from stmlang.lower.row_runs import Inputs, Runs, attended, by_runs, doubled, neighbours
from stmlang.lower.strategy import LoweringContext
from stmlang.strategies.kernel_rows import kernels
from stmlang.strategies.kernel_rows.kernels import Senses, Side
from stmlang.strategies.kernel_rows.settings import KernelRows, RunTiles
from stmlang.strategies.kernel_rows.tiles import inside_tiled, levels_tiled, of_inside, of_levels, of_tiles, tiled

TARGETS = 256
"""As many at a time where XLA's operations take a kernel's place."""


class Shape(NamedTuple):
    """What is fixed of the kernels of a scan: its tiles, in which senses runs are met, and the parts of a number."""

    runs: RunTiles
    senses: Senses
    parts: int


def _cut(context: LoweringContext) -> Cut:
    axes = context.axes
    assert axes is not None
    return cast(KernelRows, context.settings).cut(axes)


def _read(context: LoweringContext, inputs: Inputs, mask: Array, forward: Runs | None, backward: Runs | None) -> Array:
    """What all nodes read, `(lane, run, node, value)`."""
    senses = Senses(forward is not None, backward is not None)
    shape = Shape(RunTiles.of(_cut(context)), senses, parts_of(context.problem.dtype))
    source, mark = _levels(inputs.value.shape[1:3], forward, backward)
    return _attend(shape, *inputs, mask, source, mark)


# --- the rows of S and M -----------------------------------------------------------------------------------------------


def _levels(sizes: tuple[int, ...], forward: Runs | None, backward: Runs | None) -> tuple[Array, Array]:
    """For every node its rows of S and of M at all levels, `(lane, level, run, node, edge)`. The first of two runs writes to
    the second in the forward sense and reads in the backward one, the second the other way around."""
    some = forward if forward is not None else backward
    assert some is not None
    edges = max(runs.source.shape[1] * runs.source.shape[-1] for runs in (forward, backward) if runs is not None)
    shape = (some.source.shape[0], *sizes, edges)
    sources, marks = list[Array](), list[Array]()
    for _ in range(sizes[0].bit_length() - 1):
        ahead, back = neighbours(forward), neighbours(backward)
        written = None if ahead is None else ahead[0].source, None if back is None else back[1].source
        read = None if back is None else transposed(back[0].mark), None if ahead is None else transposed(ahead[1].mark)
        sources.append(_side_by_side(written, shape))
        marks.append(_side_by_side(read, shape))
        if len(sources) < sizes[0].bit_length() - 1:
            forward, backward = doubled(ahead, 1), doubled(back, -1)
    if not sources:
        nothing = jnp.zeros((shape[0], 0, *shape[1:]), some.source.dtype)
        return nothing, nothing
    return jnp.stack(sources, 1), jnp.stack(marks, 1)


def _side_by_side(halves: Sequence[Array | None], shape: tuple[int, ...]) -> Array:
    """`(lane, sense, pair, node, edge)` of the first and of the second runs of all pairs, as an array of such a shape, by first
    runs, senses behind each other."""

    def flat(half: Array) -> Array:
        half = jnp.moveaxis(half, 1, -2)
        half = half.reshape(*half.shape[:-2], -1)
        return jnp.pad(half, [(0, 0)] * (half.ndim - 1) + [(0, shape[-1] - half.shape[-1])])

    laid = [None if half is None else flat(half) for half in halves]
    like = next(half for half in laid if half is not None)
    return jnp.stack([jnp.zeros_like(like) if half is None else half for half in laid], 2).reshape(shape)


# --- attention ---------------------------------------------------------------------------------------------------------


def _attend(shape: Shape, *inputs: Array) -> Array:
    """`h` of queries, keys and values, of the gates inside of runs, sources first, and of the rows of S and of M, by kernels
    where there are some."""

    def forward(*inputs: Any) -> Array:
        return _forward(shape, inputs)

    def backward(cotangent: Array, *inputs: Any) -> Any:
        return _backward(shape, inputs, cotangent)

    def plain_backward(cotangent: Array, *inputs: Any) -> Any:
        return cast(Any, jax.vjp(_plain, *inputs)[1](cotangent))

    value, adjoint = kernel_or(forward, _plain), kernel_or(backward, plain_backward)

    def pull(inputs: Any, saved: tuple[()], cotangent: Array) -> Any:
        del saved
        return adjoint(cotangent, *inputs)

    def along(inputs: Any, tangents: Any) -> Array:
        return jax.jvp(_plain, inputs, tangents)[1]

    return with_adjoint(value, lambda *inputs: (value(*inputs), ()), pull, along=along)(*inputs)


def _sides(shape: Shape, inputs: Sequence[Array], second: Array) -> tuple[Side, Side]:
    """Targets, `second` beside their queries, and sources."""
    (runs, _, count), (query, key, value, _, source, mark) = shape, inputs
    return (
        Side(tiled(runs, query, count), tiled(runs, second, count), levels_tiled(runs, mark, count)),
        Side(tiled(runs, key, count), tiled(runs, value, count), levels_tiled(runs, source, count)),
    )


def _forward(shape: Shape, inputs: Sequence[Array]) -> Array:
    runs, value, inside = shape.runs, inputs[2], inputs[3]
    targets, sources = _sides(shape, inputs, value)
    gates = inside_tiled(runs, transposed(inside))
    return of_tiles(runs, kernels.attention(runs, shape.senses, targets.first, targets.table, sources, gates), value)


def _backward(shape: Shape, inputs: Sequence[Array], cotangent: Array) -> tuple[Array, ...]:
    (runs, senses, _), (query, key, value, inside, source, mark) = shape, inputs
    targets, sources = _sides(shape, inputs, cotangent)
    by_target, by_source = (inside_tiled(runs, gates) for gates in (transposed(inside), inside))
    read = kernels.due(runs, senses, targets, sources, by_target, of_sources=False)
    written = kernels.due(runs, Senses(senses.back, senses.ahead), sources, targets, by_source, of_sources=True)
    return (
        of_tiles(runs, read.first, query),
        of_tiles(runs, written.first, key),
        of_tiles(runs, written.rest, value),
        of_inside(runs, read.rest, inside),
        of_levels(runs, written.table, source),
        of_levels(runs, read.table, mark),
    )


def _plain(query: Array, key: Array, value: Array, inside: Array, source: Array, mark: Array) -> Array:
    """The same in XLA's operations."""
    h = masked_attention(query, key, value, inside)
    lanes, runs = h.shape[:2]
    for level in range(source.shape[1]):
        pairs = lanes, runs >> (level + 1), 2, query.shape[2] << level

        def halves(array: Array, pairs: tuple[int, ...] = pairs) -> Array:
            return array.reshape(*pairs, array.shape[-1])

        beside = [jnp.flip(halves(array), 2) for array in (key, value, source[:, level])]
        read = attended(halves(query), beside[0], beside[1], beside[2], transposed(halves(mark[:, level])), TARGETS)
        h = h + read.reshape(h.shape)
    return h


LOWERING = by_runs(_cut, _read)
