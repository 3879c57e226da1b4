"""Raster: a grid's tiles one after the other in raster order, states on the edges between them.

Inside a tile attention with the tile's gating matrix; across its border states, in matrix products as large as a tile allows.
What is held is one state for every line of the grid; a backward pass holds those along the first axis for each slab of tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.block_recurrence import line_counts
from stmlang.lower.grid import crop_border, pad_border, pad_grid, tiled, untiled
from stmlang.lower.operands import Operands, Scalars, lanes_of, scalars
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.strategies.raster.cost import unturned
from stmlang.strategies.raster.loop import States, in_segments, walk
from stmlang.strategies.raster.settings import Raster
from stmlang.strategies.raster.tile import Tile, TileGates, Turns, exchange, tile_gates


class SegmentInputs(NamedTuple):
    """What a segment is made of, with the first axis of the grid in front and the lanes behind: `(size, lane, *sizes, ...)`."""

    query: Array
    key: Array
    value: Array
    gates: Scalars


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    axes, settings = context.axes, cast(Raster, context.settings)
    assert axes is not None
    cut, segments = settings.cut(axes), settings.segments
    tile, tiles, target = cut.tile, cut.tiles, cut.sizes
    operands = pad_grid(operands, axes, target)
    lead, border = initial.shape[:2], pad_border(initial, axes, target)
    entering = _entering(lanes_of(jnp.squeeze(border, 3)), tiles, tile)
    inputs = _moved(jax.tree.map(lanes_of, SegmentInputs(*operands.inputs, scalars(operands))), 1, 0)

    turns = Turns(tile, *unturned(context.problem))
    leaving, outputs = in_segments(lambda states, inputs: _segment(states, inputs, turns), entering, inputs, segments)
    outputs = jnp.moveaxis(outputs, len(tiles), 0)
    outputs = untiled(outputs.reshape(*outputs.shape[: 1 + len(tiles)], *tile, outputs.shape[-1]), tiles, tile, 1)
    outputs = outputs[(slice(None), *(slice(0, size) for size in axes))]
    final = _leaving(leaving, tiles, tile)
    final = final.reshape(*lead, final.shape[1], 1, *final.shape[2:])
    return outputs.reshape(*lead, *outputs.shape[1:]), crop_border(final, axes, target)


def _moved(inputs: SegmentInputs, axis: int, to: int) -> SegmentInputs:
    def moved(array: Array) -> Array:
        return jnp.moveaxis(array, axis, to)

    return jax.tree.map(moved, inputs)


def _segment(states: States, inputs: SegmentInputs, turns: Turns) -> tuple[States, Array]:
    """Slabs of tiles: the states that leave them, and outputs `(*tiles, lane, node, value)`."""
    inputs, tile = _moved(inputs, 0, 1), turns.tile
    tiles = [size // side for size, side in zip(inputs.query.shape[1:-1], tile, strict=True)]
    query, key, value = (_by_tile(array, tiles, tile) for array in inputs[:3])
    by_tile = Tile(query, key, value, _gates(inputs.gates, tiles, turns))
    cross_tile = exchange(turns)
    return walk(lambda states, at: cross_tile(at, states), states, by_tile, recompute=True)


def _by_tile(array: Array, tiles: Sequence[int], tile: Sequence[int]) -> Array:
    """`(lane, *sizes, index)` to `(*tiles, lane, node, index)`."""
    split = jnp.moveaxis(tiled(array, tiles, tile, 1), 0, len(tiles))
    return split.reshape(*split.shape[: len(tiles) + 1], prod(tile), array.shape[-1])


def _gates(gates: Scalars, tiles: Sequence[int], turns: Turns) -> TileGates:
    """The matrices of all tiles, with `(*tiles, lane)` in front."""
    rank, lanes = len(tiles), gates.source.shape[0]

    def inside(array: Array) -> Array:
        split = jnp.moveaxis(tiled(array, tiles, turns.tile, 1), range(rank + 1), range(-rank - 1, 0))
        return split.reshape(*split.shape[: -rank - 1], -1)

    def outside(array: Array) -> Array:
        split = array.reshape(*array.shape[:-1], lanes, *tiles)
        return jnp.moveaxis(split, range(-rank - 1, 0), [rank, *range(rank)])

    return jax.tree.map(outside, tile_gates(Scalars(*(inside(gate) for gate in gates)), turns))


# --- the border ------------------------------------------------------------------------------------------------------


def _entering(border: Array, tiles: Sequence[int], tile: Sequence[int]) -> States:
    """Border states `(lane, slots, key, value)`, axis by axis as `(*tiles of the other axes, lane, edges, key, value)`."""
    states, start = list[Array](), 0
    for axis, count in enumerate(line_counts([a * b for a, b in zip(tiles, tile, strict=True)])):
        others, sides = ([*lengths[:axis], *lengths[axis + 1 :]] for lengths in (tiles, tile))
        lines = border[:, start : start + count]
        lines = lines.reshape(lines.shape[0], *(a * b for a, b in zip(others, sides, strict=True)), *lines.shape[2:])
        lines = jnp.moveaxis(tiled(lines, others, sides, 1), 0, len(others))
        states.append(lines.reshape(*others, lines.shape[len(others)], prod(sides), *lines.shape[-2:]))
        start += count
    return tuple(states)


def _leaving(states: States, tiles: Sequence[int], tile: Sequence[int]) -> Array:
    """The inverse of `_entering`."""
    lines = list[Array]()
    for axis, state in enumerate(states):
        others, sides = ([*lengths[:axis], *lengths[axis + 1 :]] for lengths in (tiles, tile))
        state = jnp.moveaxis(state, len(others), 0)
        state = untiled(state.reshape(state.shape[0], *others, *sides, *state.shape[-2:]), others, sides, 1)
        lines.append(state.reshape(state.shape[0], -1, *state.shape[-2:]))
    return jnp.concatenate(lines, 1)


LOWERING = direction_by_direction(no_tables, _run)
