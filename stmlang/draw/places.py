"""Where nodes are drawn: those of chains and grids by their axes, those of other graphs by level."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Bool, Float, Int64

from stmlang.graph.dag import DAG
from stmlang.graph.levels import node_levels
from stmlang.scan.scan import Direction

MOST_ALONG = 16
"""Nodes of an axis that are drawn, at most: of a longer one the first and the last."""
LAST = 3
MOST_SLICES = 4
MOST_NODES = 400
"""Of a graph that is no grid; of a larger one only counts are drawn."""
SWEEPS = 6
"""How often the nodes of each level are sorted anew by where their neighbours are."""


@dataclass(frozen=True, eq=False)
class Places:
    """The numbers of the nodes that are drawn, and for each its place `(x, y)`, y downwards, in units of the distance of
    neighbours. `shortened` if some nodes are left out."""

    node: Int64[np.ndarray, " drawn"]
    at: Float[np.ndarray, "drawn 2"]
    shortened: bool

    def among(self, nodes: Int64[np.ndarray, " nodes"]) -> tuple[Int64[np.ndarray, " nodes"], Bool[np.ndarray, " nodes"]]:
        """For each node number its position in `node`, and whether it is drawn at all."""
        position = np.searchsorted(self.node, nodes)
        position = np.minimum(position, len(self.node) - 1)
        return position, self.node[position] == nodes


def along(size: int, most: int = MOST_ALONG) -> tuple[list[int], list[float]]:
    """Which indices of an axis are drawn, and where: all, or the first and the last of them behind a gap."""
    if size <= most:
        return list(range(size)), [float(place) for place in range(size)]
    head = most - LAST - 1
    return [*range(head), *range(size - LAST, size)], [*map(float, range(head)), *(head + 1.0 + place for place in range(LAST))]


def grid_places(axes: tuple[int, ...]) -> Places:
    """Of a chain or grid: the last axis runs to the right, the one before it downwards, and further axes in front are slices
    side by side."""
    *outer, rows, cols = (1, *axes) if len(axes) == 1 else axes
    row_index, row_place = along(rows)
    col_index, col_place = along(cols)
    slices, _ = along(prod(outer), MOST_SLICES)
    width = (col_place[-1] if col_place else 0.0) + 2.5
    node = [(number * rows + row) * cols + col for number in slices for row in row_index for col in col_index]
    at = [(shift * width + x, y) for shift in range(len(slices)) for y in row_place for x in col_place]
    return Places(np.asarray(node, np.int64), np.asarray(at, float).reshape(-1, 2), len(node) < prod(axes))


def layered_places(dag: DAG) -> Places:
    """Of any graph: levels from left to right, the nodes of a level below each other so that edges cross little."""
    levels = node_levels(dag)
    order = np.zeros(dag.node_count)
    closed = (dag.tail >= 0) & (dag.head >= 0)
    tail, head = dag.tail[closed], dag.head[closed]
    for level in range(int(levels.max(initial=0)) + 1):
        members = np.flatnonzero(levels == level)
        order[members] = np.arange(len(members)) - (len(members) - 1) / 2
    for sweep in range(SWEEPS):
        _sort_levels(levels, order, (tail, head) if sweep % 2 else (head, tail))
    at = np.stack([1.6 * levels.astype(float), order], axis=1)
    return Places(np.arange(dag.node_count), at, False)


def _sort_levels(
    levels: Int64[np.ndarray, " nodes"],
    order: Float[np.ndarray, " nodes"],
    edges: tuple[Int64[np.ndarray, " edges"], Int64[np.ndarray, " edges"]],
) -> None:
    """The nodes of every level by the mean place of their neighbours at the far ends of edges `(near, far)`."""
    near, far = edges
    for level in range(int(levels.max(initial=0)) + 1):
        members = np.flatnonzero(levels == level)
        total = np.bincount(near, weights=order[far], minlength=len(levels))[members]
        count = np.bincount(near, minlength=len(levels))[members]
        wish = np.where(count > 0, total / np.maximum(count, 1), order[members])
        order[members[np.argsort(wish, kind="stable")]] = np.arange(len(members)) - (len(members) - 1) / 2


def senses_text(dag: DAG, direction: Direction) -> str:
    """`rows +  cols -`: a direction as it is written beside a picture."""
    pairs = zip(dag.ports, direction.senses, strict=True)
    return "  ".join(f"{port} {'+' if sense > 0 else '-'}" for port, sense in pairs)
