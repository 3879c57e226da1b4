"""Longest-path levels, the order they give, and a witness where there is none.

The level of a node is the number of nodes before it on the longest path that ends there. All nodes of a level can be computed
at once, and no schedule has fewer steps than there are levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import Rows, rows
from stmlang.graph.once import once

if TYPE_CHECKING:
    from jaxtyping import Int64

NARROW = 64
"""Frontiers below this many nodes are followed one node at a time: there numpy's overhead of a call costs more."""


def node_levels(dag: DAG) -> Int64[np.ndarray, " nodes"]:
    """The level of each node, from 0. Raises ValueError if the graph has a cycle, which no `DAG` may have."""
    if not acyclic(dag):
        raise ValueError("a DAG must be acyclic, and this one has a cycle")
    return _levels(dag)


@once
def acyclic(dag: DAG) -> bool:
    """Whether a DAG is what it has to be. Only one that was put together by hand may not be."""
    return int(_levels(dag).min(initial=0)) >= 0


@once
def _levels(dag: DAG) -> Int64[np.ndarray, " nodes"]:
    """Levels, -1 for nodes on cycles and behind them: part by part, so that graphs that stand in many batches are gone through
    once."""
    nodes = sum(subgraph.node_count for subgraph in dag.parts)
    edges = sum(subgraph.edge_count for subgraph in dag.parts)
    tail, head = (np.where(end[edges:] < 0, OPEN, end[edges:] - nodes) for end in (dag.tail, dag.head))
    return np.concatenate([*(_levels(subgraph) for subgraph in dag.parts), peel(tail, head, dag.node_count - nodes)])


def latest_levels(dag: DAG) -> Int64[np.ndarray, " nodes"]:
    """The highest level that each node can have while the number of levels stays the same.

    In a tree, leaves wait until their parent is about to need them, so that few states are alive at a time.
    """
    from_end = node_levels(dag.reversed())
    return int(from_end.max(initial=0)) - from_end


def edge_levels(dag: DAG, levels: Int64[np.ndarray, " nodes"] | None = None) -> Int64[np.ndarray, " edges"]:
    """The level from which an edge's state exists: one more than its tail's, 0 for edges from outside.

    A node may read its incoming edges at its own level, so a node's level is the largest of its incoming edges' (0 if none),
    and levels increase along every line edge.
    """
    known = node_levels(dag) if levels is None else levels
    return np.append(known, -1)[dag.tail] + 1


def topological_order(dag: DAG) -> Int64[np.ndarray, " nodes"]:
    """The nodes by level, then number."""
    return np.argsort(node_levels(dag), kind="stable")


def find_cycle(tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], node_count: int) -> tuple[int, ...] | None:
    """A cycle as edge numbers, each edge starting where the one before ends, or None. Negative ends are open.

    Follows least predecessors to some cycle, then returns a shortest one through that cycle's least node.
    """
    levels = peel(tail, head, node_count)
    behind = np.flatnonzero((tail >= 0) & (head >= 0))
    behind = behind[(levels[tail[behind]] < 0) & (levels[head[behind]] < 0)]
    if not behind.size:
        return None
    # Every node without a level has a predecessor without one, so walking backwards never ends, hence meets itself.
    entering: dict[int, int] = {}
    for edge in behind[::-1].tolist():
        entering[int(head[edge])] = int(tail[edge])
    node, met = int(head[behind[0]]), list[int]()
    step_of: dict[int, int] = {}
    while node not in step_of:
        step_of[node] = len(met)
        met.append(node)
        node = entering[node]
    return _shortest_cycle(tail, head, behind, min(met[step_of[node] :]))


def _shortest_cycle(
    tail: Int64[np.ndarray, " edges"],
    head: Int64[np.ndarray, " edges"],
    candidates: Int64[np.ndarray, " candidates"],
    start: int,
) -> tuple[int, ...]:
    """A shortest cycle through `start` along candidate edges, by breadth-first search; the caller knows that one exists."""
    leaving: dict[int, list[int]] = {}
    for edge in candidates.tolist():
        leaving.setdefault(int(tail[edge]), []).append(edge)
    came_by: dict[int, int] = {}
    queue = [start]
    for node in queue:
        for edge in leaving.get(node, ()):
            target = int(head[edge])
            if target not in came_by:
                came_by[target] = edge
                queue.append(target)
        if start in came_by:
            break
    path = [came_by[start]]
    while int(tail[path[-1]]) != start:
        path.append(came_by[int(tail[path[-1]])])
    return tuple(reversed(path))


def peel(tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], count: int) -> Int64[np.ndarray, " nodes"]:
    """Longest-path levels by Kahn's algorithm, a whole frontier at a time; -1 for nodes on cycles and behind them.

    Time is linear in nodes and edges, plus a constant number of numpy calls for each frontier that is not narrow.
    """
    closed = (tail >= 0) & (head >= 0)
    heads = head[closed]
    out = rows(tail[closed], count)
    out = Rows(out.start, heads[out.item])
    waiting = np.bincount(heads, minlength=count).astype(np.int64)
    levels = np.full(count, -1, np.int64)
    frontier, level = np.flatnonzero(waiting == 0), 0
    while frontier.size:
        if frontier.size < NARROW:
            frontier, level = _peel_narrow(out, waiting, levels, frontier, level)
            continue
        levels[frontier] = level
        reached = out.of(frontier)
        np.subtract.at(waiting, reached, 1)
        frontier, level = np.unique(reached[waiting[reached] == 0]), level + 1
    return levels


def _peel_narrow(
    out: Rows,
    waiting: Int64[np.ndarray, " nodes"],
    levels: Int64[np.ndarray, " nodes"],
    frontier: Int64[np.ndarray, " frontier"],
    level: int,
) -> tuple[Int64[np.ndarray, " frontier"], int]:
    """Goes on, node by node, while frontiers stay narrow; updates `waiting` and `levels`, returns the next frontier."""
    start, item = out.start.data, out.item.data
    left, level_of = waiting.data, levels.data
    current: list[int] = frontier.tolist()
    while current and len(current) < NARROW:
        following: list[int] = []
        for node in current:
            level_of[node] = level
            for at in range(start[node], start[node + 1]):
                target = item[at]
                left[target] -= 1
                if not left[target]:
                    following.append(target)
        current, level = following, level + 1
    return np.asarray(current, np.int64), level
