"""Chunkwise: tiles become blocks by merging, and the recurrence runs over the blocks.

Inside a tile: masked attention with the tile's gating matrix. Between tiles: states on the tile borders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from stmlang.cost.tiles import Tiling, tiling
from stmlang.graph.levels import topological_order
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.attention import masked_attention
from stmlang.lower.block_recurrence import Sweep, assign_slots, grid_sweep, run_sweep
from stmlang.lower.grid import crop_border, node_blocks, pad_border, pad_grid, tiled, untiled
from stmlang.lower.merge import Border, Level, box_border, level_by_track, merge_grid, wire_level
from stmlang.lower.merge_tree import Leaves, leaf_blocks, leaf_tables, leaves_by_track, merge_tree
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import Operands, lanes_of, scalars
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary, leaving_states, read
from stmlang.lower.tables import PAD, Indices, padded, select
from stmlang.strategies.chunkwise.settings import Chunkwise


class Intervals(NamedTuple):
    """A DAG cut into intervals of a topological order: `order[place]` is a node (or absent), `place[node]` its place;
    `slots` numbers the slots,
    and `entering`, `leaving` are those of the edges that enter and leave the DAG."""

    leaves: Leaves
    levels: list[Level]
    order: Int[Indices, " place"]
    place: Int[Indices, " node"]
    sweep: Sweep
    slots: Int[Indices, " slot"]
    entering: Int[Indices, " entering"]
    leaving: Int[Indices, " leaving"]


def _settings(context: LoweringContext) -> Chunkwise:
    return cast(Chunkwise, context.settings)


def _tables(context: LoweringContext) -> Tables:
    if context.axes is not None:
        cut = _cut(context, context.axes)
        return grid_sweep(cut.sizes, cut.tile, box_border(cut.tile))
    return _intervals(context)


def _cut(context: LoweringContext, axes: Sequence[int]) -> Tiling:
    tile = _settings(context).tile
    assert tile is not None
    return tiling(axes, tile)


def _intervals(context: LoweringContext) -> Intervals:
    dag, settings, tracks = context.dag, _settings(context), context.problem.track
    count, block = settings.blocks(dag.node_count), settings.block
    assert block is not None
    order = topological_order(dag)
    leaves, borders = leaf_tables(dag, order, count * block)
    levels: list[Level] = []
    while block > 1:
        level, borders = wire_level(borders)
        levels.append(level_by_track(level, tracks))
        block //= 2
    place = np.empty(dag.node_count, np.int32)
    place[order] = np.arange(dag.node_count)
    filled = np.full(len(leaves.into), PAD, np.int32)
    filled[: dag.node_count] = order
    sweep, slot, slots = _interval_sweep(borders, dag.entering.tolist())
    open_edges = (np.asarray([slot[edge] for edge in edges.tolist()], np.int32) for edges in (dag.entering, dag.leaving))
    return Intervals(
        leaves_by_track(leaves, tracks), levels, filled, place, sweep, np.arange(slots, dtype=np.int32), *open_edges
    )


def _interval_sweep(borders: Sequence[Border], entering: Sequence[int]) -> tuple[Sweep, dict[int, int], int]:
    """One block after the other."""
    reads = [cast(tuple[int, ...], border.entering) for border in borders]
    writes = [cast(tuple[int, ...], border.leaving) for border in borders]
    slot, slots = assign_slots(reads, writes, entering)
    enter, leave = (padded([[slot[edge] for edge in row] for row in rows])[:, None, :] for rows in (reads, writes))
    number = np.arange(len(borders), dtype=np.int32)
    return Sweep(number[:, None], number, enter, leave), slot, slots


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    if context.axes is not None:
        return _run_grid(context, tables, operands, initial, context.axes)
    return _run_intervals(context, tables, operands, initial)


def _run_grid(
    context: LoweringContext, tables: Sweep, operands: Operands, initial: Array, axes: Sequence[int]
) -> tuple[Array, Array]:
    cut = _cut(context, axes)
    tile, tiles, target = cut.tile, cut.tiles, cut.sizes
    operands = pad_grid(operands, axes, target)
    tracks = context.problem.track
    nodes = Summary(*(tiled(gate, tiles, tile, 2) for gate in node_blocks(scalars(operands, tracks))))
    block, _ = merge_grid(nodes, tile, tracks)
    blocks = Summary(*(gate.reshape(*gate.shape[:2], -1, *gate.shape[-2:]) for gate in block))

    def tile_nodes(array: Array) -> Array:
        array = tiled(array, tiles, tile, 2)
        return array.reshape(*array.shape[:2], int(np.prod(tiles)), int(np.prod(tile)), array.shape[-1])

    inputs = (tile_nodes(operands.query), tile_nodes(operands.key), tile_nodes(operands.value))
    slots = pad_border(initial, axes, target)
    outputs, final = _sweep(tables, blocks, inputs, slots)
    outputs = untiled(outputs.reshape(*outputs.shape[:2], *tiles, *tile, outputs.shape[-1]), tiles, tile, 2)
    window = tuple(slice(0, size) for size in axes)
    return outputs[(slice(None), slice(None), *window)], crop_border(final, axes, target)


def _run_intervals(context: LoweringContext, tables: Intervals, operands: Operands, initial: Array) -> tuple[Array, Array]:
    gates = scalars(operands, context.problem.track, ragged=True)
    blocks = merge_tree(leaf_blocks(gates, tables.leaves), tables.levels)
    count, size = blocks.gating.shape[-3], blocks.gating.shape[-1]

    def block_nodes(array: Array) -> Array:
        return select(array, tables.order, 2).reshape(*array.shape[:2], count, size, array.shape[-1])

    inputs = (block_nodes(operands.query), block_nodes(operands.key), block_nodes(operands.value))
    slots = jnp.zeros((*initial.shape[:2], len(tables.slots), *initial.shape[3:]), initial.dtype)
    slots = alike(slots, initial).at[:, :, tables.entering].set(initial)
    outputs, final = _sweep(tables.sweep, blocks, inputs, slots)
    outputs = outputs.reshape(*outputs.shape[:2], count * size, outputs.shape[-1])
    return jnp.take(outputs, tables.place, axis=2), jnp.take(final, tables.leaving, axis=2)


def _sweep(tables: Sweep, blocks: Summary, inputs: tuple[Array, Array, Array], slots: Array) -> tuple[Array, Array]:
    """Outputs `(direction, head, block, node, value)` and final slots."""
    query, key, value = inputs
    inside = masked_attention(query, key, value, blocks.gating)
    arrays = (blocks.source, blocks.transition, blocks.mark, query, key, value)

    def lane(arrays: tuple[Array, ...], slots: Array) -> tuple[Array, Array]:
        return run_sweep(tables, arrays, _step, slots)

    swept, final = jax.vmap(lane)(*jax.tree.map(lanes_of, (arrays, slots)))
    return inside + swept.reshape(inside.shape), final.reshape(slots.shape)


def _step(arrays: tuple[Array, ...], entering: Array) -> tuple[Array, Array]:
    source, transition, mark, query, key, value = arrays
    state = entering.reshape(entering.shape[0], -1, *entering.shape[3:])
    leaving = leaving_states(source, transition, key, value, state)
    return leaving.reshape(leaving.shape[0], -1, *entering.shape[2:]), read(mark, query, state)


LOWERING = direction_by_direction(_tables, _run)
