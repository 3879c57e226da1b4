"""A grid's nodes, and the tables of its walks, as the tiles that kernels work on, and back.

A tile of targets is `rows` lines by `width` places, 64 nodes; one of sources is `width` places of one line. So for such a pair
the mask is, term by term, a table of `(place, place)` repeated for every line of targets, times one number for each target.
Grids are filled up with zeros, which no table lets through.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float32

from stmlang.lower.kernels import ROWS, stacked
from stmlang.lower.one_turn import Walks
from stmlang.strategies.kernel_separable.settings import GridTiles

DEPTH = 64
"""Keys and values are filled up to a multiple: they are rows of the products in which sources are due what they sent."""


class Masks(NamedTuple):
    """The mask between a tile of sources and one of targets, a sum over terms: those of the walks, and within a line the last.

    `mask[(y, x), x0] = sum over term of within[term, x, x0] between[term, (y, x)]`.
    """

    within: Float32[Array, "head source block term width width"]
    between: Float32[Array, "head line target term 64"]


def filled(array: Array, axis: int, multiple: int) -> Array:
    """An axis filled up with zeros to a multiple."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % multiple)
    return jnp.pad(array, widths)


def targets(grid: GridTiles, array: Array, count: int) -> Array:
    """`(head, node, index)` as the parts of tiles of targets."""
    return _parts_below(_target_tiles(grid, filled(array, 2, DEPTH)), count)


def sources(grid: GridTiles, array: Array, count: int) -> Array:
    """`(head, node, index)` as the parts of tiles of sources."""
    array = filled(array, 2, DEPTH)
    lined = filled(array.reshape(array.shape[0], grid.lines, grid.size, -1), 2, grid.width)
    return _parts_below(lined.reshape(array.shape[0], grid.sources, grid.width, -1), count)


def _parts_below(tiled: Array, count: int) -> Array:
    """`(head, tile, row, index)` in parts, `(head, tile, part row, index)`."""
    split = jnp.moveaxis(stacked(tiled, count), 0, 2)
    return split.reshape(*tiled.shape[:2], -1, tiled.shape[-1])


def _target_tiles(grid: GridTiles, array: Array) -> Array:
    """`(head, node, index)` as `(head, target, 64, index)`."""
    heads, _, depth = array.shape
    lined = filled(filled(array.reshape(heads, grid.lines, grid.size, depth), 2, grid.width), 1, grid.rows)
    split = lined.reshape(heads, grid.groups, grid.rows, grid.blocks, grid.width, depth)
    return jnp.swapaxes(split, 2, 3).reshape(heads, grid.targets, ROWS, depth)


def of_targets(grid: GridTiles, tiled: Array, depth: int) -> Array:
    """`(.., target, 64, index)` as `(.., node, index)`, so many of the index."""
    front = tiled.shape[:-3]
    split = tiled.reshape(*front, grid.groups, grid.blocks, grid.rows, grid.width, tiled.shape[-1])
    lined = jnp.swapaxes(split, -4, -3).reshape(*front, grid.groups * grid.rows, grid.blocks * grid.width, tiled.shape[-1])
    return lined[..., : grid.lines, : grid.size, :depth].reshape(*front, grid.nodes, depth)


def of_sources(grid: GridTiles, tiled: Array, depth: int) -> Array:
    """What tiles of sources are due, `(head, source, block, index, width)`, summed over blocks, as `(head, node, index)`."""
    nodes = jnp.swapaxes(tiled.sum(2), -1, -2).reshape(tiled.shape[0], grid.lines, grid.blocks * grid.width, -1)
    return nodes[:, :, : grid.size, :depth].reshape(tiled.shape[0], grid.nodes, depth)


def masks(grid: GridTiles, gates: Walks) -> Masks:
    """The tables of walks as tiles."""
    turned, level, across = (table.astype(jnp.float32) for table in gates)
    within = jnp.concatenate([turned, level.sum(0)[None]])
    within = filled(filled(within, 3, grid.width), 4, grid.width)
    terms, heads = within.shape[:2]
    within = within.reshape(terms, heads, grid.lines, grid.blocks, grid.width, grid.blocks, grid.width)
    within = jnp.transpose(within, (1, 2, 3, 5, 0, 6, 4))
    own = jnp.broadcast_to(jnp.eye(grid.lines, dtype=jnp.float32)[..., None], across.shape[1:])
    between = jnp.concatenate([jnp.where(_reached(grid, len(across)), across, 0), own[None]])
    between = between.reshape(terms * heads * grid.lines, grid.nodes, 1)
    between = _target_tiles(grid, between).reshape(terms, heads, grid.lines, grid.targets, ROWS)
    return Masks(
        within.reshape(heads, grid.sources, grid.blocks, terms, grid.width, grid.width), jnp.transpose(between, (1, 2, 3, 0, 4))
    )


def of_within(grid: GridTiles, due: Array, gates: Walks) -> tuple[Array, Array]:
    """What `turned` and `level` are due, from `(head, source, block, term, 64, width)`."""
    heads, terms = due.shape[0], due.shape[3]
    split = due.reshape(heads, grid.lines, grid.blocks, grid.blocks, terms, grid.rows, grid.width, grid.width).sum(5)
    lined = jnp.transpose(split, (4, 0, 1, 2, 6, 3, 5))
    lined = lined.reshape(terms, heads, grid.lines, grid.blocks * grid.width, -1)[..., : grid.size, : grid.size]
    return lined[:-1], jnp.broadcast_to(lined[-1], gates.level.shape)


def of_between(grid: GridTiles, due: Array) -> Array:
    """What `across` is due where its walks lead, from `(head, source, target, term, 64)`."""
    heads, terms = due.shape[0], due.shape[3]
    summed = due.reshape(heads, grid.lines, grid.blocks, grid.targets, terms, ROWS).sum(2)
    nodes = of_targets(grid, jnp.transpose(summed, (3, 0, 1, 2, 4))[..., None], 1)
    lined = nodes.reshape(terms, heads, grid.lines, grid.lines, grid.size)
    return jnp.where(_reached(grid, terms), lined, 0)


def _reached(grid: GridTiles, walks: int) -> Array:
    """Which lines walks lead to, `(walk, 1, y0, y, 1)`: the first half to later ones, the second to earlier ones. A direction
    without a partner is walked in both halves."""
    line = jnp.arange(grid.lines)
    ahead = line[None, :] - line[:, None]
    senses = jnp.repeat(jnp.asarray([1, -1]), walks // 2)
    return (senses[:, None, None] * ahead > 0)[:, None, :, :, None]
