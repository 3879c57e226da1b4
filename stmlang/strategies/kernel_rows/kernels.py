"""The kernels: attention between runs of rows, and what one side of it is due.

Both go from a tile of 64 nodes of one run over the tiles that it meets: those of its own run, with a table of their gates, and
then, level by level, those of the run beside its own, which is twice as long each time. Of a level every node of one side has a
row of S and every one of the other a row of M, each with a number for every edge between the two runs, so that

    h[n] = sum over m of A[n, m] G[n, m] v[m],     A[n, m] = q[n] . k[m],     G[n, m] = M[n] . S[m]

With c the cotangent of h and B[n, m] = c[n] . v[m], what targets n are due is

    dq[n] = sum over m of B G k[m],     dM[n] = sum over m of A B S[m],     dG = A B

and what sources are due is the same with the two sides exchanged, and `dv[m] = sum over n of A G c[n]`. So the adjoint is one
kernel, run for each side. Scores and gates are in registers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array, BFloat16, Float32

from stmlang.lower.kernels import (
    ROWS,
    STAGES,
    as_tile,
    empty_tile,
    fetch_all,
    launch,
    send,
    streamed,
    tiles,
    times_transposed,
    weighted,
)
from stmlang.strategies.kernel_rows.settings import RunTiles

BF16, F32 = jnp.bfloat16, jnp.float32


class Side(NamedTuple):
    """Tiles of targets: queries, cotangents and marks; or of sources: keys, values and sources. Their rows are parts below each
    other. Of references, those to one of the three each."""

    first: BFloat16[Array, "head tile part*64 key"]
    second: BFloat16[Array, "head tile part*64 value"]
    table: BFloat16[Array, "head level tile part*64 edge"]


class Senses(NamedTuple):
    """Whether tiles of the second of two runs meet those of the first, `ahead`, and those of the first the second, `back`."""

    ahead: bool
    back: bool


class Due(NamedTuple):
    """What a side is due; `rest` is what the inside of runs is due, of targets, or the second rows, of sources."""

    first: Float32[Array, "head tile 64 key"]
    table: Float32[Array, "head level tile 64 edge"]
    rest: Array


Inside = Float32[Array, "head tile block 64 64"]
"""Gates between a tile and those of its own run."""


Step = Callable[[Any, Any, Any], Any]


def attention(
    runs: RunTiles, senses: Senses, query: Array, mark: Array, sources: Side, inside: Inside
) -> Float32[Array, "head tile 64 value"]:
    """`h`; `inside` has targets first."""
    (heads, _, rows, key), value, edges = query.shape, sources.second.shape[-1], mark.shape[-1]
    count = rows // ROWS

    def body(q_ref: Any, mark_ref: Any, *refs: Any) -> None:
        h_ref, q, mark, k, v, source, inside, h, arrived, ready = refs[4:]
        at = head, tile = lax.axis_index("head"), lax.axis_index("tile")

        def own(number: Any, slot: Any, total: Array) -> Array:
            del number
            return total + weighted(count, times_transposed(count, q, k.at[slot]) * as_tile(inside[...]), v.at[slot])

        def across(number: Any, slot: Any, total: Array) -> Array:
            del number
            weights = times_transposed(count, q, k.at[slot]) * times_transposed(count, mark, source.at[slot])
            return total + weighted(count, weights, v.at[slot])

        fetch_all(((q_ref.at[at], q),), ready)
        meet = _meeting(runs, senses, at, refs[:4], (k, v, source, inside), arrived)
        total = meet(None, own, empty_tile(ROWS, value))
        for level in range(runs.levels):
            fetch_all(((mark_ref.at[head, level, tile], mark),), ready)
            total = meet(level, across, total)
        send(h, total, h_ref.at[at])

    return launch(
        body,
        "rows_attention",
        {"head": heads, "tile": runs.tiles},
        jax.ShapeDtypeStruct((heads, runs.tiles, ROWS, value), F32),
        [
            _operand(rows, key),
            _operand(rows, edges),
            *(_operand(STAGES, rows, size) for size in (key, value, edges)),
            _table(ROWS, ROWS),
            _table(ROWS, value),
            plgpu.Barrier(num_arrivals=3, num_barriers=STAGES),
            plgpu.Barrier(),
        ],
        query,
        mark,
        *sources,
        inside,
    )


def due(runs: RunTiles, senses: Senses, own: Side, other: Side, inside: Inside, *, of_sources: bool) -> Due:
    """What one side is due; `inside` has its own rows first."""
    heads, _, rows, key = own.first.shape
    value, edges = own.second.shape[-1], own.table.shape[-1]
    widths = tuple(dict.fromkeys((key, value, edges) if of_sources else (key, edges)))
    rest = (ROWS, value) if of_sources else (runs.blocks, ROWS, ROWS)
    found = launch(
        partial(_due, runs, senses, of_sources, widths),
        "rows_due_sources" if of_sources else "rows_due_targets",
        {"head": heads, "tile": runs.tiles},
        (
            jax.ShapeDtypeStruct((heads, runs.tiles, ROWS, key), F32),
            jax.ShapeDtypeStruct((*own.table.shape[:3], ROWS, edges), F32),
            jax.ShapeDtypeStruct((heads, runs.tiles, *rest), F32),
        ),
        [
            *(_operand(rows, size) for size in (key, value, edges)),
            *(_operand(STAGES, rows, size) for size in (key, value, edges)),
            _table(ROWS, ROWS),
            *(_table(ROWS, width) for width in widths),
            plgpu.Barrier(num_arrivals=3, num_barriers=STAGES),
            plgpu.Barrier(num_arrivals=2),
            plgpu.Barrier(),
        ],
        *own,
        *other,
        inside,
    )
    return Due(*found)


def _due(runs: RunTiles, senses: Senses, of_sources: bool, widths: tuple[int, ...], *refs: Any) -> None:
    """The body of `due`; `widths` are those of what is held before it is sent."""
    own_refs, dues, own, other = Side(*refs[:3]), Due(*refs[7:10]), Side(*refs[10:13]), Side(*refs[13:16])
    inside, *results, arrived, ready, marked = refs[16:]
    count, held = own.first.shape[0] // ROWS, dict(zip(widths, results, strict=True))
    at = head, tile = lax.axis_index("head"), lax.axis_index("tile")

    def gathered(slot: Any, gates: Array, totals: list[Array]) -> tuple[Array, list[Array]]:
        """What gates are due, and what tiles are, and were."""
        first, second = other.first.at[slot], other.second.at[slot]
        scores, reverse = times_transposed(count, own.first, first), times_transposed(count, own.second, second)
        asked = [(reverse, first), (scores, second)][: len(totals)]
        added = [weighted(count, numbers * gates, rows) for numbers, rows in asked]
        return scores * reverse, [total + more for total, more in zip(totals, added, strict=True)]

    def inner(number: Any, slot: Any, totals: list[Array]) -> list[Array]:
        change, totals = gathered(slot, as_tile(inside[...]), totals)
        if not of_sources:
            send(inside, change, dues.rest.at[head, tile, number])
        return totals

    def across(number: Any, slot: Any, carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        del number
        totals, passed = carry
        change, totals = gathered(slot, times_transposed(count, own.table, other.table.at[slot]), totals)
        return totals, passed + weighted(count, change, other.table.at[slot])

    fetch_all(((own_refs.first.at[at], own.first), (own_refs.second.at[at], own.second)), ready)
    meet = _meeting(runs, senses, at, refs[3:7], (*other, inside), arrived)
    sizes = [tiles.shape[-1] for tiles in own]
    totals = meet(None, inner, [empty_tile(ROWS, size) for size in sizes[: 1 + of_sources]])
    for level in range(runs.levels):
        fetch_all(((own_refs.table.at[head, level, tile], own.table),), marked)
        totals, passed = meet(level, across, (totals, empty_tile(ROWS, sizes[2])))
        send(held[sizes[2]], passed, dues.table.at[head, level, tile])
    for total, size, ref in zip(totals, sizes, (dues.first, dues.rest), strict=False):
        send(held[size], total, ref.at[at])


def _meeting(
    runs: RunTiles, senses: Senses, at: tuple[Any, Any], refs: Any, held: Any, arrived: Any
) -> Callable[[int | None, Step, Any], Any]:
    """Goes over the tiles that one meets at a level, or, None, in its own run: `(level, step, start)`. References are to the
    other side, and last to the gates inside of runs."""
    (head, tile), (first, second, table, inside) = at, held
    own = lax.div(tile, jnp.int32(runs.blocks)) * jnp.int32(runs.blocks)

    def meet(level: int | None, step: Step, start: Any) -> Any:
        begin, count = (own, runs.blocks) if level is None else _beside(runs, senses, level, tile)

        def ahead(number: Any, slot: Any) -> None:
            other, barrier = begin + number, arrived.at[slot]
            plgpu.copy_gmem_to_smem(refs[0].at[head, other], first.at[slot], barrier)
            plgpu.copy_gmem_to_smem(refs[1].at[head, other], second.at[slot], barrier)
            if level is None:
                plgpu.copy_gmem_to_smem(refs[3].at[head, tile, number], inside, barrier)
            else:
                plgpu.copy_gmem_to_smem(refs[2].at[head, level, other], table.at[slot], barrier)

        # One tile of gates is held, as there are few of them.
        return streamed(count, arrived, ahead, step, start, stages=1 if level is None else STAGES)

    return meet


def _beside(runs: RunTiles, senses: Senses, level: int, tile: Any) -> tuple[Any, Any]:
    """The first tile, and how many there are, of the run beside a tile's own, both of `2^level` first runs."""
    length = jnp.int32(2**level)
    number = lax.div(lax.div(tile, jnp.int32(runs.blocks)), length)
    is_second = lax.rem(number, jnp.int32(2))
    start = (number + 1 - 2 * is_second) * length
    held = jnp.clip(runs.used - start, 0, length)
    meets = is_second * senses.ahead + (1 - is_second) * senses.back
    return start * runs.blocks, held * meets * runs.blocks


def _operand(*shape: int) -> Any:
    """Shared memory for factors of products."""
    return tiles(*shape, dtype=BF16, swizzle=min(128, 2 * shape[-1]))


def _table(*shape: int) -> Any:
    """Shared memory for tiles of float32."""
    return tiles(*shape, dtype=F32, swizzle=min(128, 4 * shape[-1]))
