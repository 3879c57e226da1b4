"""A hierarchy of merges: the nodes of a DAG in topological order as blocks, merged pair by pair, level by level.

With all levels merged the whole DAG is one block, its nodes and borders as they were declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from stmlang.graph.dag import DAG
from stmlang.graph.levels import topological_order
from stmlang.lower.block_recurrence import line_counts
from stmlang.lower.grid import node_blocks
from stmlang.lower.merge import Border, Level, level_by_track, merge_grid, merge_level, wire_level
from stmlang.lower.operands import Operands, Scalars, scalars
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary
from stmlang.lower.tables import PAD, Indices, by_track, padded, select


class Leaves(NamedTuple):
    """Single nodes as blocks, in topological order: which edges enter and leave each, and which line edge joins them."""

    into: Int[Indices, "block entering"]
    out: Int[Indices, "block leaving"]
    line: Int[Indices, "block entering leaving"]


class Tree(NamedTuple):
    """The tables of a hierarchy that ends in one block: its leaves, one level after the other, and where in it the nodes
    and the edges of the border stand, in declared order."""

    leaves: Leaves
    levels: list[Level]
    node: Int[Indices, " node"]
    entering: Int[Indices, " entering"]
    leaving: Int[Indices, " leaving"]


def leaf_tables(dag: DAG, order: np.ndarray, blocks: int) -> tuple[Leaves, list[Border]]:
    """The nodes of `order` as blocks, filled up to `blocks` with empty ones."""
    into: list[list[int]] = [[] for _ in range(blocks)]
    out: list[list[int]] = [[] for _ in range(blocks)]
    place = np.empty(dag.node_count, np.int64)
    place[order] = np.arange(dag.node_count)
    for edge, (tail, head) in enumerate(zip(dag.tail.tolist(), dag.head.tolist(), strict=True)):
        if head >= 0:
            into[place[head]].append(edge)
        if tail >= 0:
            out[place[tail]].append(edge)
    line = _line_table(dag, place, into, out)
    return Leaves(padded(into), padded(out), line), [Border(tuple(a), tuple(b)) for a, b in zip(into, out, strict=True)]


def leaves_by_track(leaves: Leaves, tracks: int) -> Leaves:
    """The same of blocks that have an edge for each track, and of line edges that are all pairs of tracks."""
    if tracks == 1:
        return leaves
    line = np.asarray(leaves.line)[:, :, None, :, None]
    track = np.arange(tracks, dtype=np.int32)
    pair = track * tracks + track[:, None, None]
    pairs = np.where(line == PAD, PAD, np.where(line == PAD, 0, line) * tracks**2 + pair)
    blocks, entering, leaving = leaves.line.shape
    into, out = (by_track(np.asarray(edges), tracks) for edges in (leaves.into, leaves.out))
    return Leaves(into, out, pairs.reshape(blocks, entering * tracks, leaving * tracks))


def _line_table(dag: DAG, place: np.ndarray, into: list[list[int]], out: list[list[int]]) -> np.ndarray:
    """Number of the line edge from each entering to each leaving edge of a node."""
    shape = (len(into), max((len(row) for row in into), default=0), max((len(row) for row in out), default=0))
    table = np.full(shape, PAD, np.int32)
    column_in, column_out = np.zeros(dag.edge_count, np.int64), np.zeros(dag.edge_count, np.int64)
    for rows, column in ((into, column_in), (out, column_out)):
        for row in rows:
            column[row] = np.arange(len(row))
    pairs = dag.line_edges
    if len(pairs):
        table[place[dag.head[pairs[:, 0]]], column_in[pairs[:, 0]], column_out[pairs[:, 1]]] = np.arange(len(pairs))
    return table


def leaf_blocks(gates: Scalars, leaves: Leaves) -> Summary:
    """Blocks `(direction, head, block, ., .)` from gates over edges and line edges."""
    source = select(gates.source, leaves.out, -1)[..., None, :]
    mark = select(gates.mark, leaves.into, -1)[..., :, None]
    return Summary(source, select(gates.transition, leaves.line, -1), mark, jnp.zeros((*source.shape[:-1], 1), source.dtype))


def merge_tree(blocks: Summary, levels: Sequence[Level]) -> Summary:
    """All merges of a hierarchy, level by level."""
    for level in levels:
        blocks = merge_level(blocks, level)
    return blocks


def slot_order(edges: tuple[Any, ...], axes: tuple[int, ...]) -> np.ndarray:
    """The places of a grid's border edges in the order of its slots: by port, then C order of the other axes."""
    offsets = np.concatenate([[0], np.cumsum(line_counts(axes))])
    slots: list[int] = []
    for port, node in edges:
        line = 0
        for axis, size in enumerate(axes):
            if axis != port:
                line = line * size + node[axis]
        slots.append(int(offsets[port]) + line)
    return np.argsort(np.asarray(slots, np.int64)).astype(np.int32)


def whole_tables(context: LoweringContext) -> Tables:
    """The tables of `whole_block`: a `Tree`, or none on a grid, whose merges are known by its sizes."""
    if context.axes is not None:
        return None
    dag, order, tracks = context.dag, topological_order(context.dag), context.problem.track
    depth = max(0, dag.node_count - 1).bit_length()
    leaves, borders = leaf_tables(dag, order, 2**depth)
    levels: list[Level] = []
    while len(borders) > 1:
        level, borders = wire_level(borders)
        levels.append(level_by_track(level, tracks))
    place = np.empty(dag.node_count, np.int32)
    place[order] = np.arange(dag.node_count)
    return Tree(
        leaves_by_track(leaves, tracks),
        levels,
        place,
        by_track(_positions(borders[0].entering, dag.entering), tracks),
        by_track(_positions(borders[0].leaving, dag.leaving), tracks),
    )


def _positions(edges: tuple[Any, ...], declared: np.ndarray) -> np.ndarray:
    position = {edge: k for k, edge in enumerate(edges)}
    return np.asarray([position[edge] for edge in declared.tolist()], np.int32)


def whole_block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    """A DAG as one block, with nodes in order of their number and borders in the order of the strategies' states, an edge for
    each track."""
    tracks = context.problem.track
    gates = scalars(operands, tracks, ragged=context.axes is None)
    if context.axes is not None:
        block, border = merge_grid(node_blocks(gates), context.axes, tracks)
        edges = (slot_order(edges, context.axes) for edges in (border.entering, border.leaving))
        return arranged(block, *(by_track(order, tracks) for order in edges))
    tree: Tree = tables
    block = merge_tree(leaf_blocks(gates, tree.leaves), tree.levels)
    block = Summary(*(jnp.squeeze(array, -3) for array in block))
    block = arranged(block, tree.entering, tree.leaving)
    return Summary(
        select(block.source, tree.node, -2),
        block.transition,
        select(block.mark, tree.node, -1),
        select(select(block.gating, tree.node, -1), tree.node, -2),
    )


def arranged(block: Summary, entering: Indices, leaving: Indices) -> Summary:
    """A block with its border edges in another order."""
    return block._replace(
        source=select(block.source, leaving, -1),
        transition=select(select(block.transition, leaving, -1), entering, -2),
        mark=select(block.mark, entering, -2),
    )
