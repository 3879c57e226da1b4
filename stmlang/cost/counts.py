"""How big a topology is: the numbers that costs are made of. Python integers, so that nothing wraps around."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.levels import node_levels
from stmlang.graph.limits import LARGEST

if TYPE_CHECKING:
    from jaxtyping import Int64


@dataclass(frozen=True, slots=True)
class Counts:
    """`levels` is the number of steps of a level-synchronous sweep, `width` the most nodes in one level, `step_edges` and
    `step_line_edges` the most outgoing edges and line edges in one level, `slots` the most edge states alive at once."""

    nodes: int
    edges: int
    line_edges: int
    levels: int
    width: int
    step_edges: int
    step_line_edges: int
    slots: int
    entering: int


def room_counts(room: Capacity) -> Counts:
    """What is known of graphs that come at run time: how much room they have, levels taken to be of one width."""
    widths = (-(-size // room.levels) for size in (room.nodes, room.edges, room.line_edges))
    return Counts(room.nodes, room.edges, room.line_edges, room.levels, *widths, slots=room.edges, entering=0)


def regular_counts(axes: tuple[int, ...]) -> Counts:
    """In closed form: wavefronts are the levels, `sum (n - 1) + 1` of them."""
    nodes, rank = prod(axes), len(axes)
    entering = sum(prod(axes[:a] + axes[a + 1 :]) for a in range(rank))
    levels = sum(axes) - rank + 1 if nodes else 0
    width = widest_wavefront(axes)
    return Counts(
        nodes,
        rank * nodes + entering,
        rank * rank * nodes,
        levels,
        width,
        rank * width,
        rank * rank * width,
        entering,
        entering,
    )


def widest_wavefront(axes: tuple[int, ...]) -> int:
    """The most nodes of a grid whose coordinates have one sum: the largest coefficient of `prod (1 + x + ... + x^(n-1))`.

    Multiplying by the longest axis' factor takes sums over a window, so the largest coefficient is the largest window sum of
    the others' product; that one is short whenever the grid has fewer than 2^31 nodes.
    """
    if prod(axes) == 0:
        return 0
    *rest, longest = sorted(axes)
    if prod(axes) > LARGEST:
        return prod(rest)
    wave = np.ones(1, np.int64)
    for size in rest:
        wave = _window_sums(wave, size)
    return int(_window_sums(wave, min(longest, len(wave))).max())


def _window_sums(values: Int64[np.ndarray, " sums"], window: int) -> Int64[np.ndarray, " sums"]:
    """`values` convolved with `window` ones."""
    total = np.concatenate([np.zeros(window, np.int64), np.cumsum(values), np.full(window - 1, values.sum())])
    return total[window:] - total[:-window]


def ragged_counts(dag: DAG) -> Counts:
    """Counted. An edge's state lives from the level of its tail to that of its head."""
    nodes = dag.node_count
    inner_tail, inner_head = dag.tail[dag.tail != OPEN], dag.head[dag.head != OPEN]
    outgoing = np.bincount(inner_tail, minlength=nodes).astype(np.int64)
    incoming = np.bincount(inner_head, minlength=nodes).astype(np.int64)
    level = np.asarray(node_levels(dag), np.int64)
    levels = int(level.max()) + 1 if nodes else 0

    def widest(weight: Int64[np.ndarray, " nodes"]) -> int:
        return int(np.bincount(level, weight, minlength=1).max()) if nodes else 0

    born = np.where(dag.tail == OPEN, 0, level[dag.tail] + 1) if nodes else np.zeros(dag.edge_count, np.int64)
    dies = np.where(dag.head == OPEN, levels, level[dag.head]) if nodes else np.zeros(dag.edge_count, np.int64)
    change = np.bincount(born, minlength=levels + 2) - np.bincount(dies + 1, minlength=levels + 2)
    slots = int(np.cumsum(change).max()) if dag.edge_count else 0
    return Counts(
        nodes=nodes,
        edges=dag.edge_count,
        line_edges=int((outgoing * incoming).sum()),
        levels=levels,
        width=widest(np.ones(nodes, np.int64)),
        step_edges=widest(outgoing),
        step_line_edges=widest(outgoing * incoming),
        slots=slots,
        entering=len(dag.entering),
    )


@dataclass(frozen=True, slots=True)
class Cut:
    """A DAG cut into `blocks` intervals of `size` nodes of its level order: each block has at most `boundary` entering and at
    most `boundary` leaving edges."""

    size: int
    blocks: int
    boundary: int


def interval_cut(dag: DAG, order: Int64[np.ndarray, " nodes"], size: int) -> Cut:
    """Cut a topological order into intervals, which makes every block convex and their order topological too."""
    nodes = dag.node_count
    blocks = -(-nodes // size)
    block = np.empty(nodes + 1, np.int64)
    block[order] = np.arange(nodes) // size
    block[OPEN] = -1
    tail, head = block[dag.tail], block[dag.head]
    crossing = tail != head
    tail, head = tail[crossing], head[crossing]
    leaving = np.bincount(tail[tail >= 0], minlength=1).max()
    entering = np.bincount(head[head >= 0], minlength=1).max()
    return Cut(size, blocks, int(max(leaving, entering)))
