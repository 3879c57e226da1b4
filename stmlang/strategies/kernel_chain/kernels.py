"""The kernels: states from chunk to chunk, what a chunk reads, and what a chunk is due.

With `q`, `k` and `v` the rows of a chunk of 64 nodes, `L` the decays between two of its nodes, `into` and `out` queries and
keys times the decays from its start and to its end, and C the state that enters it,

    h  = ((q k^T) o L) v + into C            C' = through C + out^T v

and with c the cotangent of h, D that of C', `S = (q k^T) o L` and `R = (c v^T) o L`, what is due is

    dq = R k,   dk = R^T q,   dv = S^T c + out D,   dinto = c C^T,   dout = v D^T
    dL = (c v^T) o (q k^T),   dthrough = <C, D>,    dC = through D + into^T c

The last line is the first kernel again, on chunks in the other order. All tiles are 64 by 64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array, BFloat16, Float32

from stmlang.lower.kernels import (
    ROWS,
    STAGES,
    as_column,
    as_tile,
    copied,
    fetch_all,
    launch,
    parts,
    send,
    streamed,
    tiles,
    times,
    times_transposed,
    weighted,
)

BF16, F32 = jnp.bfloat16, jnp.float32
Tiles = BFloat16[Array, "lane chunk part*64 64"]
"""Rows of a chunk, their parts below each other."""


class Chunks(NamedTuple):
    """What the kernels know of the chunks of all lanes."""

    query: Tiles
    into: Tiles
    key: Tiles
    out: Tiles
    value: Tiles
    inside: Float32[Array, "lane chunk 64 64"]


def states(
    first: Tiles,
    second: Tiles,
    through: Float32[Array, "lane chunk 64"],
    start: Float32[Array, "lane 64 64"],
    *,
    backwards: bool,
) -> tuple[Array, Array]:
    """`X' = through X + first^T second` from chunk to chunk, in order or `backwards`: every chunk's X, and the last X'."""
    lanes, chunks, rows, _ = first.shape
    count = rows // ROWS

    def body(a_ref: Any, b_ref: Any, through_ref: Any, start_ref: Any, before_ref: Any, after_ref: Any, *scratch: Any) -> None:
        a, b, through, held, arrived, ready = scratch
        lane = lax.axis_index("lane")

        def place(number: Any) -> Any:
            return jnp.int32(chunks - 1) - number if backwards else number

        def fetch(number: Any, slot: Any) -> None:
            chunk = place(number)
            for ref, tile in ((a_ref, a), (b_ref, b), (through_ref, through)):
                plgpu.copy_gmem_to_smem(ref.at[lane, chunk], tile.at[slot], arrived.at[slot])

        def step(number: Any, slot: Any, state: Array) -> Array:
            send(held, state, before_ref.at[lane, place(number)])
            added = times(count, a.at[slot], b.at[slot], first_turned=True)
            return state * as_column(through[slot], ROWS) + added

        plgpu.copy_gmem_to_smem(start_ref.at[lane], held, ready)
        plgpu.barrier_wait(ready)
        send(held, streamed(chunks, arrived, fetch, step, as_tile(held[...])), after_ref.at[lane])

    return launch(
        body,
        "chain_states",
        {"lane": lanes},
        (
            jax.ShapeDtypeStruct((lanes, chunks, ROWS, ROWS), F32),
            jax.ShapeDtypeStruct((lanes, ROWS, ROWS), F32),
        ),
        [
            _operand(STAGES, rows),
            _operand(STAGES, rows),
            plgpu.SMEM((STAGES, ROWS), F32),
            _table(),
            plgpu.Barrier(num_arrivals=3, num_barriers=STAGES),
            plgpu.Barrier(),
        ],
        first,
        second,
        through,
        start,
    )


def outputs(chunks: Chunks, entering: Float32[Array, "lane chunk 64 64"]) -> Array:
    """`h`, `(lane, chunk, 64, 64)`."""
    lanes, count, rows, _ = chunks.query.shape
    number = rows // ROWS

    def body(*refs: Any) -> None:
        q_ref, into_ref, k_ref, v_ref, inside_ref, entering_ref, h_ref, q, into, k, v, inside, state, split, arrived = refs
        at = lax.axis_index("lane"), lax.axis_index("chunk")
        sources = ((q_ref, q), (into_ref, into), (k_ref, k), (v_ref, v), (inside_ref, inside), (entering_ref, state))
        fetch_all([(ref.at[at], held) for ref, held in sources], arrived)
        h = weighted(number, times_transposed(number, q, k) * as_tile(inside[...]), v)
        _split(state, split, number)
        send(state, h + times(number, into, split), h_ref.at[at])

    return launch(
        body,
        "chain_outputs",
        {"lane": lanes, "chunk": count},
        jax.ShapeDtypeStruct((lanes, count, ROWS, ROWS), F32),
        [*(_operand(rows) for _ in range(4)), _table(), _table(), _operand(rows), plgpu.Barrier(num_arrivals=6)],
        chunks.query,
        chunks.into,
        chunks.key,
        chunks.value,
        chunks.inside,
        entering,
    )


class Due(NamedTuple):
    """What chunks are due, tiles of float32; `through` row by row of the state."""

    query: Float32[Array, "lane chunk 64 64"]
    into: Float32[Array, "lane chunk 64 64"]
    key: Float32[Array, "lane chunk 64 64"]
    out: Float32[Array, "lane chunk 64 64"]
    value: Float32[Array, "lane chunk 64 64"]
    inside: Float32[Array, "lane chunk 64 64"]
    through: Float32[Array, "lane chunk 64"]


def due(chunks: Chunks, cotangent: Tiles, entering: Array, leaving: Array) -> Due:
    """What every chunk is due, from the states that enter it and the cotangents of those that leave it."""
    lanes, count, rows, _ = chunks.query.shape
    number = rows // ROWS

    def body(*refs: Any) -> None:
        q_ref, k_ref, out_ref, v_ref, c_ref, inside_ref, entering_ref, leaving_ref, *others = refs
        dues, (q, k, out, v, c, inside, state, later, split, rest, line, arrived) = Due(*others[:7]), others[7:]
        at = lax.axis_index("lane"), lax.axis_index("chunk")
        sources = (q_ref, q), (k_ref, k), (out_ref, out), (v_ref, v), (c_ref, c)
        tables = (inside_ref, inside), (entering_ref, state), (leaving_ref, later)
        fetch_all([(ref.at[at], held) for ref, held in (*sources, *tables)], arrived)
        line[...] = (as_tile(state[...]) * as_tile(later[...])).sum(1)
        copied(line, dues.through.at[at])
        # Each table is read for the last time before its place is taken by a result.
        scores, reverse, decays = times_transposed(number, q, k), times_transposed(number, c, v), as_tile(inside[...])
        send(inside, scores * reverse, dues.inside.at[at])
        _split(state, split, number)
        send(state, times_transposed(number, c, split), dues.into.at[at])
        _split(later, split, number)
        send(state, times_transposed(number, v, split), dues.out.at[at])
        _store(rest, scores * decays, number)
        sent = times(number, out, split)
        sent = sent + times(number, rest, c, first_turned=True)
        send(state, sent, dues.value.at[at])
        weights = reverse * decays
        _store(rest, weights, number)
        send(state, times(number, rest, k), dues.query.at[at])
        met = times(number, rest, q, first_turned=True)
        send(state, met, dues.key.at[at])

    tile, row = (jax.ShapeDtypeStruct((lanes, count, *shape), F32) for shape in ((ROWS, ROWS), (ROWS,)))
    found = launch(
        body,
        "chain_due",
        {"lane": lanes, "chunk": count},
        (*[tile] * 6, row),
        [
            *(_operand(rows) for _ in range(5)),
            *(_table() for _ in range(3)),
            _operand(rows),
            _operand(rows),
            plgpu.SMEM((ROWS,), F32),
            plgpu.Barrier(num_arrivals=8),
        ],
        chunks.query,
        chunks.key,
        chunks.out,
        chunks.value,
        cotangent,
        chunks.inside,
        entering,
        leaving,
    )
    return Due(*found)


# --- what they have in common ----------------------------------------------------------------------------------------


def _operand(*front: int) -> Any:
    """Shared memory for factors of products."""
    return tiles(*front, ROWS, dtype=BF16, swizzle=128)


def _table() -> Any:
    """Shared memory for a tile of float32."""
    return tiles(ROWS, ROWS, dtype=F32, swizzle=128)


def _store(held: Any, tile: Array, count: int) -> None:
    """A tile in registers as parts in shared memory."""
    for number, part in enumerate(parts(tile, count)):
        held[pl.ds(number * ROWS, ROWS)] = part
    plgpu.commit_smem()


def _split(table: Any, held: Any, count: int) -> None:
    _store(held, as_tile(table[...]), count)
