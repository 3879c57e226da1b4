"""Nodes of runs, and the tables of their gates, as the tiles that kernels work on, and back.

A tile is 64 nodes of one first run. Runs are filled up with zeros, which no table lets through, and so are indices and edges.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.contractions import transposed
from stmlang.lower.kernels import ROWS, stacked
from stmlang.strategies.kernel_rows.settings import RunTiles, padded


def tiled(runs: RunTiles, array: Array, count: int) -> Array:
    """`(.., run, node, index)` in tiles as so many parts, which lie below each other: `(.., tile, part*64, index)`."""
    split = jnp.moveaxis(stacked(_laid(runs, array), count), 0, -3)
    return split.reshape(*split.shape[:-3], -1, split.shape[-1])


def _laid(runs: RunTiles, array: Array) -> Array:
    """`(.., run, node, index)` as `(.., tile, 64, index)`."""
    array = _filled(array[..., : runs.used, :, :], runs.blocks * ROWS, padded(array.shape[-1]))
    return array.reshape(*array.shape[:-3], runs.tiles, ROWS, array.shape[-1])


def _filled(array: Array, rows: int, columns: int) -> Array:
    """The last two axes filled up with zeros."""
    missing = (0, rows - array.shape[-2]), (0, columns - array.shape[-1])
    return jnp.pad(array, [(0, 0)] * (array.ndim - 2) + [*missing])


def levels_tiled(runs: RunTiles, table: Array, count: int) -> Array:
    """The table of sources or of marks as tiles, `(head, level, tile, part*64, edge)`. Where there are no levels, one of zeros:
    a kernel takes no empty array."""
    table = table if runs.levels else jnp.zeros((table.shape[0], 1, *table.shape[2:]), table.dtype)
    return tiled(runs, table, count)


def of_tiles(runs: RunTiles, tiles: Array, like: Array) -> Array:
    """`(.., tile, 64, index)` as an array of the shape and type of `like`, `(.., run, node, index)`."""
    array = tiles.reshape(*tiles.shape[:-3], runs.used, runs.blocks * ROWS, tiles.shape[-1])
    array = array[..., : runs.run, : like.shape[-1]]
    return _all_runs(array, -3, like)


def of_levels(runs: RunTiles, tiles: Array, like: Array) -> Array:
    """What the table of sources or of marks is due, likewise."""
    return of_tiles(runs, tiles[:, : runs.levels], like)


def inside_tiled(runs: RunTiles, inside: Array) -> Array:
    """`(head, run, row, column)` as `(head, tile, block, 64, 64)`: every tile of rows with every one of columns of its run."""
    size = runs.blocks * ROWS
    inside = _filled(inside[:, : runs.used].astype(jnp.float32), size, size)
    split = inside.reshape(-1, runs.used, runs.blocks, ROWS, runs.blocks, ROWS)
    return jnp.swapaxes(split, 3, 4).reshape(-1, runs.tiles, runs.blocks, ROWS, ROWS)


def of_inside(runs: RunTiles, tiles: Array, like: Array) -> Array:
    """What the inside of runs is due, by tiles of targets, the source first."""
    split = jnp.swapaxes(tiles.reshape(-1, runs.used, runs.blocks, runs.blocks, ROWS, ROWS), 3, 4)
    whole = split.reshape(-1, runs.used, runs.blocks * ROWS, runs.blocks * ROWS)[..., : runs.run, : runs.run]
    return _all_runs(transposed(whole), 1, like)


def _all_runs(array: Array, axis: int, like: Array) -> Array:
    """Those included that hold no nodes, and are due nothing."""
    missing = [(0, 0)] * array.ndim
    missing[axis] = (0, like.shape[axis] - array.shape[axis])
    return jnp.pad(array, missing).astype(like.dtype)
