"""The kernels: attention with a mask of tables, what targets are due, and what sources are due.

All three make the scores and the mask of one tile of sources with one tile of targets at a time, in registers:

    h[n] = sum over m of S[n, m] G[m, n] v[m],     S[n, m] = q[n] . k[m]

With c the cotangent of h and R[n, m] = c[n] . v[m], what is due is

    dq[n] = sum over m of R G k[m],   dk[m] = sum over n of R G q[n],   dv[m] = sum over n of S G c[n],   dG = R S

and the two factors of a term of G are each due dG times the other, summed over the lines of targets and the places of sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxtyping import Array

from stmlang.lower.kernels import (
    ROWS,
    STAGES,
    as_column,
    as_tile,
    copied,
    empty_tile,
    launch,
    parts,
    streamed,
    tiles,
    times,
    times_transposed,
    weighted,
)
from stmlang.strategies.kernel_separable.settings import GridTiles
from stmlang.strategies.kernel_separable.tiles import Masks

BF16, F32 = jnp.bfloat16, jnp.float32


class Sizes(NamedTuple):
    """Of what a kernel is given: parts of a number, heads, terms of the mask, padded sizes of keys and values."""

    parts: int
    heads: int
    terms: int
    key: int
    value: int


def sizes_of(query: Array, value: Array, mask: Masks) -> Sizes:
    return Sizes(query.shape[2] // ROWS, query.shape[0], mask.within.shape[3], query.shape[-1], value.shape[-1])


def attention(grid: GridTiles, query: Array, key: Array, value: Array, mask: Masks) -> Array:
    """`h`, `(head, target, 64, value)`."""
    sizes, width = sizes_of(query, value, mask), grid.width

    def body(q_ref: Any, *refs: Any) -> None:
        h_ref, q, k, v, within, between, h, arrived, ready = refs[4:]
        head, target = lax.axis_index("head"), lax.axis_index("target")
        fetch = _fetching_sources(grid, sizes.terms, (head, target), refs[:4], (k, v, within, between), arrived)

        def step(source: Any, slot: Any, total: Array) -> Array:
            del source
            scores = times_transposed(sizes.parts, q, k.at[slot])
            weights = scores * _mask(within.at[slot], between.at[slot], sizes.terms, width)
            return total + weighted(sizes.parts, weights, v.at[slot])

        plgpu.copy_gmem_to_smem(q_ref.at[head, target], q, ready)
        plgpu.barrier_wait(ready)
        h[...] = streamed(grid.sources, arrived, fetch, step, empty_tile(ROWS, sizes.value))
        copied(h, h_ref.at[head, target])

    return launch(
        body,
        "separable_attention",
        {"head": sizes.heads, "target": grid.targets},
        jax.ShapeDtypeStruct((sizes.heads, grid.targets, ROWS, sizes.value), F32),
        [
            _operand(grid, sizes.parts * ROWS, sizes.key),
            _operand(grid, STAGES, sizes.parts * width, sizes.key),
            _operand(grid, STAGES, sizes.parts * width, sizes.value),
            _table(STAGES, sizes.terms, ROWS, width),
            plgpu.SMEM((STAGES, sizes.terms, ROWS), F32),
            _table(ROWS, sizes.value),
            plgpu.Barrier(num_arrivals=3 + sizes.terms * grid.rows, num_barriers=STAGES),
            plgpu.Barrier(),
        ],
        query,
        key,
        value,
        *mask,
    )


def due_targets(grid: GridTiles, query: Array, cotangent: Array, key: Array, value: Array, mask: Masks) -> tuple[Array, Array]:
    """`dq`, `(head, target, 64, key)`, and what `between` is due, `(head, source, target, term, 64)`, for terms of walks."""
    sizes, width = sizes_of(query, value, mask), grid.width
    walks = sizes.terms - 1

    def body(q_ref: Any, c_ref: Any, *refs: Any) -> None:
        dq_ref, due_ref, q, c, k, v, within, between, dq, due, arrived, ready = refs[4:]
        head, target = lax.axis_index("head"), lax.axis_index("target")
        fetch = _fetching_sources(grid, sizes.terms, (head, target), refs[:4], (k, v, within, between), arrived)

        def step(source: Any, slot: Any, total: Array) -> Array:
            scores, reverse = times_transposed(sizes.parts, q, k.at[slot]), times_transposed(sizes.parts, c, v.at[slot])
            change = scores * reverse
            plgpu.wait_smem_to_gmem(STAGES - 1, wait_read_only=True)
            for term in range(walks):
                due[slot, term] = (change * as_tile(within[slot, term])).sum(1)
            _send_later(due.at[slot], due_ref.at[head, source, target])
            weights = reverse * _mask(within.at[slot], between.at[slot], sizes.terms, width)
            return total + weighted(sizes.parts, weights, k.at[slot])

        plgpu.copy_gmem_to_smem(q_ref.at[head, target], q, ready)
        plgpu.copy_gmem_to_smem(c_ref.at[head, target], c, ready)
        plgpu.barrier_wait(ready)
        dq[...] = streamed(grid.sources, arrived, fetch, step, empty_tile(ROWS, sizes.key))
        copied(dq, dq_ref.at[head, target])

    return launch(
        body,
        "separable_due_targets",
        {"head": sizes.heads, "target": grid.targets},
        (
            jax.ShapeDtypeStruct((sizes.heads, grid.targets, ROWS, sizes.key), F32),
            jax.ShapeDtypeStruct((sizes.heads, grid.sources, grid.targets, walks, ROWS), F32),
        ),
        [
            _operand(grid, sizes.parts * ROWS, sizes.key),
            _operand(grid, sizes.parts * ROWS, sizes.value),
            _operand(grid, STAGES, sizes.parts * width, sizes.key),
            _operand(grid, STAGES, sizes.parts * width, sizes.value),
            _table(STAGES, sizes.terms, ROWS, width),
            plgpu.SMEM((STAGES, sizes.terms, ROWS), F32),
            _table(ROWS, sizes.key),
            plgpu.SMEM((STAGES, walks, ROWS), F32),
            plgpu.Barrier(num_arrivals=3 + sizes.terms * grid.rows, num_barriers=STAGES),
            plgpu.Barrier(num_arrivals=2),
        ],
        query,
        cotangent,
        key,
        value,
        *mask,
    )


def due_sources(
    grid: GridTiles, query: Array, cotangent: Array, key: Array, value: Array, mask: Masks
) -> tuple[Array, Array, Array]:
    """`dk` and `dv`, `(head, source, block, index, width)`, and what `within` is due, `(head, source, block, term, 64, width)`,
    each for one block of targets along their lines."""
    sizes, width = sizes_of(query, value, mask), grid.width

    def body(*refs: Any) -> None:
        _gather(grid, sizes, *refs)

    front = sizes.heads, grid.sources, grid.blocks
    return launch(
        body,
        "separable_due_sources",
        {"head": sizes.heads, "source": grid.sources, "block": grid.blocks},
        (
            jax.ShapeDtypeStruct((*front, sizes.key, width), F32),
            jax.ShapeDtypeStruct((*front, sizes.value, width), F32),
            jax.ShapeDtypeStruct((*front, sizes.terms, ROWS, width), F32),
        ),
        [
            _operand(grid, STAGES, sizes.parts * ROWS, sizes.key),
            _operand(grid, STAGES, sizes.parts * ROWS, sizes.value),
            _operand(grid, sizes.parts * width, sizes.key),
            _operand(grid, sizes.parts * width, sizes.value),
            _table(sizes.terms, ROWS, width),
            plgpu.SMEM((STAGES, sizes.terms, ROWS), F32),
            _operand(grid, sizes.parts * ROWS, width),
            _operand(grid, sizes.parts * ROWS, width),
            _table(sizes.key, width),
            _table(sizes.value, width),
            plgpu.Barrier(num_arrivals=3, num_barriers=STAGES),
            plgpu.Barrier(num_arrivals=2 + sizes.terms * grid.rows),
        ],
        query,
        cotangent,
        key,
        value,
        *mask,
    )


def _gather(
    grid: GridTiles,
    sizes: Sizes,
    q_ref: Any,
    c_ref: Any,
    k_ref: Any,
    v_ref: Any,
    within_ref: Any,
    between_ref: Any,
    *others: Any,
) -> None:
    """The body of `due_sources`: goes over the groups of lines with targets."""
    dk_ref, dv_ref, due_ref, q, c, k, v, within, between, weights, reverses, dk, dv, arrived, ready = others
    place = head, source, block = tuple(lax.axis_index(name) for name in ("head", "source", "block"))
    line, width = lax.div(source, jnp.int32(grid.blocks)), grid.width

    def fetch(group: Any, slot: Any) -> None:
        barrier, target = arrived.at[slot], group * jnp.int32(grid.blocks) + block
        plgpu.copy_gmem_to_smem(q_ref.at[head, target], q.at[slot], barrier)
        plgpu.copy_gmem_to_smem(c_ref.at[head, target], c.at[slot], barrier)
        plgpu.copy_gmem_to_smem(between_ref.at[head, line, target], between.at[slot], barrier)

    def step(group: Any, slot: Any, carry: tuple[Array, Array, list[Array]]) -> tuple[Array, Array, list[Array]]:
        del group
        due_key, due_value, due_within = carry
        scores, reverse = times_transposed(sizes.parts, q.at[slot], k), times_transposed(sizes.parts, c.at[slot], v)
        mask, change = _mask(within, between.at[slot], sizes.terms, width), scores * reverse
        due_within = [total + change * as_column(between[slot, term], width) for term, total in enumerate(due_within)]
        for held, tile in ((weights, scores * mask), (reverses, reverse * mask)):
            for number, part in enumerate(parts(tile, sizes.parts)):
                held[pl.ds(number * ROWS, ROWS)] = part
        plgpu.commit_smem()
        due_key = due_key + _gathered(sizes.parts, q.at[slot], reverses)
        due_value = due_value + _gathered(sizes.parts, c.at[slot], weights)
        return due_key, due_value, due_within

    plgpu.copy_gmem_to_smem(k_ref.at[head, source], k, ready)
    plgpu.copy_gmem_to_smem(v_ref.at[head, source], v, ready)
    _fetch_within(grid, sizes.terms, within_ref.at[place], within, ready)
    plgpu.barrier_wait(ready)
    start = empty_tile(sizes.key, width), empty_tile(sizes.value, width), [empty_tile(ROWS, width) for _ in range(sizes.terms)]
    dk[...], dv[...], due_within = streamed(grid.groups, arrived, fetch, step, start)
    for term, total in enumerate(due_within):
        within[term] = total
    plgpu.commit_smem()
    for held, ref in ((dk, dk_ref), (dv, dv_ref), (within, due_ref)):
        plgpu.copy_smem_to_gmem(held, ref.at[place])
    plgpu.wait_smem_to_gmem(0)


# --- what the three have in common -----------------------------------------------------------------------------------


def _operand(grid: GridTiles, *shape: int) -> Any:
    """Shared memory for factors of products. All have the swizzle that sums over `width` places ask for."""
    return tiles(*shape, dtype=BF16, swizzle=2 * grid.width)


def _table(*shape: int) -> Any:
    """Shared memory for tiles of float32."""
    return tiles(*shape, dtype=F32, swizzle=min(128, 4 * shape[-1]))


def _fetching_sources(
    grid: GridTiles, terms: int, place: tuple[Any, Any], refs: Sequence[Any], held: Sequence[Any], arrived: Any
) -> Callable[[Any, Any], None]:
    """Fetches tiles of sources for one of targets, by `(head, target)`: keys, values, and the tables between the two."""
    (head, target), blocks = place, jnp.int32(grid.blocks)
    k_ref, v_ref, within_ref, between_ref = refs

    def fetch(source: Any, slot: Any) -> None:
        barrier, (k, v, within, between) = arrived.at[slot], (tile.at[slot] for tile in held)
        plgpu.copy_gmem_to_smem(k_ref.at[head, source], k, barrier)
        plgpu.copy_gmem_to_smem(v_ref.at[head, source], v, barrier)
        plgpu.copy_gmem_to_smem(between_ref.at[head, lax.div(source, blocks), target], between, barrier)
        _fetch_within(grid, terms, within_ref.at[head, source, lax.rem(target, blocks)], within, barrier)

    return fetch


def _fetch_within(grid: GridTiles, terms: int, tables: Any, within: Any, barrier: Any) -> None:
    """Every term's table of places, for every line of targets once. Each is a copy of its own, since what a copy fills lies
    together."""
    for term in range(terms):
        for row in range(grid.rows):
            plgpu.copy_gmem_to_smem(tables.at[term], within.at[term, pl.ds(row * grid.width, grid.width)], barrier)


def _mask(within: Any, between: Any, terms: int, width: int) -> Array:
    products = [as_tile(within[term]) * as_column(between[term], width) for term in range(terms)]
    return sum(products[1:], start=products[0])


def _gathered(count: int, targets: Any, weights: Any) -> Array:
    """Targets by weights in shared memory, `(index, source)`."""
    return times(count, targets, weights, first_turned=True)


def _send_later(held: Any, ref: Any) -> None:
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(held, ref)
