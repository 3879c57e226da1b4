"""Masked attention whose mask depends on where the source lies from the target: a Toeplitz matrix along every axis of a grid.

Such a mask is given as its `profile`, `(*batch, 2 size - 1, ...)`: at `source - target + size - 1` along each axis. Matrices
are cut out of it by broadcasts, reshapes and slices: the transpose of a cut, the gradient with respect to the profile, is then
made of sums, and no scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from stmlang.lower.attention import masked_attention, streamed_attention
from stmlang.lower.grid import tiled, untiled
from stmlang.lower.no_fusion import apart
from stmlang.lower.operands import flip
from stmlang.lower.tables import Indices
from stmlang.scan.scan import Direction


def profile(response: Float[Array, "direction head *sizes"], directions: Sequence[Direction]) -> Array:
    """The profile of each direction, `(direction, head, ...)`, from its response at offsets `target - source` in its own
    coordinates."""
    profiles: list[Array] = []
    for array, direction in zip(response, directions, strict=True):
        backward = [-sense for sense in direction.senses]
        ahead = [
            (0, size - 1) if sense > 0 else (size - 1, 0) for size, sense in zip(array.shape[1:], direction.senses, strict=True)
        ]
        profiles.append(jnp.pad(flip(array, backward, 1), [(0, 0), *ahead]))
    return jnp.stack(profiles)


def toeplitz(window: Array, tile: Sequence[int], sizes: Sequence[int]) -> Array:
    """`(*batch, *tile, *sizes)`: the mask of a tile of targets from its window of the profile, `size + tile - 1` along each
    axis."""
    return _entries_of(tuple(tile), tuple(sizes))(window)


@cache
def _entries_of(tile: tuple[int, ...], sizes: tuple[int, ...]) -> Callable[[Array], Array]:
    """Made apart from what reads them, which would make each again for every member of a batch."""
    return apart(partial(_entries, tile, sizes))


def _entries(tile: Sequence[int], sizes: Sequence[int], window: Array) -> Array:
    rank = len(tile)
    batch = window.ndim - rank
    for axis, (side, size) in enumerate(zip(tile, sizes, strict=True)):
        window = _shifted_rows(window, batch + 2 * axis, side, size)
    targets, sources = ([batch + 2 * axis + side for axis in range(rank)] for side in (0, 1))
    return jnp.transpose(window, [*range(batch), *targets, *sources])


def _shifted_rows(window: Array, axis: int, rows: int, size: int) -> Array:
    """An axis of `size + rows - 1` as two, `rows` and `size`: row a is the window from `rows - 1 - a` on."""
    lead, tail = window.shape[:axis], window.shape[axis + 1 :]
    repeated = jnp.broadcast_to(jnp.expand_dims(window, axis), (*lead, rows, *window.shape[axis:]))
    if rows == 1:
        return repeated
    # Rows of one number less, laid over the same numbers, begin one place earlier each.
    length = size + rows - 2
    flat = repeated.reshape(*lead, rows * (length + 1), *tail)
    flat = lax.slice_in_dim(flat, rows - 1, rows - 1 + rows * length, axis=axis)
    return lax.slice_in_dim(flat.reshape(*lead, rows, length, *tail), 0, size, axis=axis + 1)


class Tiles(NamedTuple):
    """Where the window of each tile begins in the profile, filled up in front to whole tiles."""

    start: Int[Indices, "tile axis"]


def tile_tables(sizes: Sequence[int], tile: Sequence[int]) -> Tiles:
    """The tables of `attend_tiles`."""
    counts = [-(-size // side) for size, side in zip(sizes, tile, strict=True)]
    places = np.stack(np.unravel_index(np.arange(prod(counts)), counts), axis=-1)
    return Tiles(((np.asarray(counts) - 1 - places) * np.asarray(tile)).astype(np.int32))


def attend_whole(profile: Array, query: Array, key: Array, value: Array) -> Array:
    """`h[n] = sum over m of profile[m - n] (q[n] . k[m]) v[m]`, the whole mask at hand.

    `profile`: `(direction, head, ...)`; the others `(head, *sizes, index)`, the result `(direction, head, *sizes, value)`.
    """
    sizes = query.shape[1:-1]
    mask = _matrix(profile, sizes, sizes)
    h = masked_attention(_flat(query)[None], _flat(key)[None], _flat(value)[None], mask, by_target=True)
    return h.reshape(*profile.shape[:2], *sizes, h.shape[-1])


def attend_tiles(tables: Tiles, tile: Sequence[int], profile: Array, query: Array, key: Array, value: Array) -> Array:
    """The same with one tile of targets at a time: memory grows with the number of nodes. The backward pass makes every tile's
    mask and products once more."""
    sizes = query.shape[1:-1]
    counts = [-(-size // side) for size, side in zip(sizes, tile, strict=True)]
    extra = [count * side - size for count, side, size in zip(counts, tile, sizes, strict=True)]
    filled = jnp.pad(profile, [(0, 0), (0, 0), *((more, 0) for more in extra)])
    width = [*profile.shape[:2], *(size + side - 1 for size, side in zip(sizes, tile, strict=True))]
    queries = tiled(jnp.pad(query, [(0, 0), *((0, more) for more in extra), (0, 0)]), counts, tile, 1)
    queries = jnp.moveaxis(queries.reshape(query.shape[0], prod(counts), prod(tile), query.shape[-1]), 1, 0)

    def weigh(start: Array, scores: Array) -> Array:
        window = lax.dynamic_slice(filled, [jnp.int32(0), jnp.int32(0), *start], width)
        return scores * _matrix(window, tile, sizes)

    h = streamed_attention(queries[:, None], _flat(key)[None], _flat(value)[None], tables.start, weigh, by_target=True)
    h = jnp.moveaxis(h, 0, 2).reshape(*profile.shape[:2], *counts, *tile, h.shape[-1])
    return untiled(h, counts, tile, 2)[(..., *(slice(0, size) for size in sizes), slice(None))]


def _matrix(window: Array, tile: Sequence[int], sizes: Sequence[int]) -> Array:
    """The mask of a tile as a matrix, `(direction, head, target, source)`."""
    return toeplitz(window, tile, sizes).reshape(*window.shape[:2], prod(tile), prod(sizes))


def _flat(array: Array) -> Array:
    return array.reshape(array.shape[0], -1, array.shape[-1])
