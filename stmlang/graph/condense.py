"""Strongly connected components: the nodes that lie on cycles together."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from stmlang.graph.incidence import rows
from stmlang.graph.levels import peel


def strong_components(
    tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], node_count: int
) -> Int64[np.ndarray, " nodes"]:
    """The number of each node's component. Components are numbered by their least nodes: without a cycle they are the nodes.

    With every component made one node, and edges inside of one left out, the graph is acyclic. Only nodes between cycles are
    looked at one by one: whatever has an end without a cycle in front of it or behind it is a component of its own.
    """
    member = np.arange(node_count)
    core = np.flatnonzero((peel(tail, head, node_count) < 0) & (peel(head, tail, node_count) < 0))
    if core.size:
        place = np.full(node_count, -1, np.int64)
        place[core] = np.arange(len(core))
        inside = np.flatnonzero((place[tail] >= 0) & (place[head] >= 0))
        out = rows(place[tail[inside]], len(core))
        roots = _roots(out.start.tolist(), place[head[inside[out.item]]].tolist())
        member[core] = core[np.asarray(roots, np.int64)]
    least = np.full(node_count, node_count)
    np.minimum.at(least, member, np.arange(node_count))
    return np.unique(least[member], return_inverse=True)[1]


def _roots(start: list[int], target: list[int]) -> list[int]:
    """For each node some node of its component, the same for all of them, by Tarjan's depth-first search without recursion.

    Edges of node `n` lead to `target[start[n] : start[n + 1]]`.
    """
    count = len(start) - 1
    found, low, root = [0] * count, [0] * count, [-1] * count
    following, clock = start[:-1], 0
    waiting = list[int]()  # nodes whose component is not complete, in the order in which they were found
    for first in range(count):
        path = [] if found[first] else [first]
        while path:
            node = path[-1]
            if not found[node]:
                clock += 1
                found[node] = low[node] = clock
                waiting.append(node)
            if following[node] < start[node + 1]:
                ahead = target[following[node]]
                following[node] += 1
                if not found[ahead]:
                    path.append(ahead)
                elif root[ahead] < 0:
                    low[node] = min(low[node], found[ahead])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if low[node] == found[node]:
                place = len(waiting) - 1
                while waiting[place] != node:
                    place -= 1
                for member in waiting[place:]:
                    root[member] = node
                del waiting[place:]
    return root
