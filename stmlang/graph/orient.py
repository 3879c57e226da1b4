"""Directions for undirected graphs: each edge leads from the end that comes first in an order of the nodes to the other."""

from __future__ import annotations

from typing import Literal, assert_never

import numpy as np
from jaxtyping import Int64

from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.incidence import Rows, rows

Order = Literal["index", "degree", "bfs", "random"]


def orient(edges: Int64[np.ndarray, "edges 2"], node_count: int, order: Order = "index", seed: int = 0) -> DAG:
    """The DAG with one directed edge for each row of `edges`, in the same order; repeated rows stay parallel edges.

    * `index`: by number.
    * `degree`: the most edges first, then by number. Hubs become sources.
    * `bfs`: component by component, each from its least node, by distance from it, then by number.
    * `random`: an order drawn from `seed`, the same on every machine and version.

    A graph that lists every edge in both senses must be halved before. Raises ValueError for an edge from a node to itself or
    to a node that does not exist.
    """
    ends = np.asarray(edges, np.int64).reshape(-1, 2)
    if ends.size and not 0 <= int(ends.min()) <= int(ends.max()) < node_count:
        raise ValueError(f"edges must join nodes 0 ... {node_count - 1}")
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if loops.size:
        raise ValueError(f"edge {int(loops[0])} joins node {int(ends[loops[0], 0])} to itself, so it has no direction")
    rank = node_rank(ends, node_count, order, seed)
    swap = rank[ends[:, 0]] > rank[ends[:, 1]]
    return ragged_dag(node_count, np.where(swap, ends[:, 1], ends[:, 0]), np.where(swap, ends[:, 0], ends[:, 1]))


def node_rank(edges: Int64[np.ndarray, "edges 2"], node_count: int, order: Order, seed: int) -> Int64[np.ndarray, " nodes"]:
    """The place of each node in an order named as in `orient`."""
    match order:
        case "index":
            return np.arange(node_count)
        case "degree":
            return _places(np.argsort(-np.bincount(edges.reshape(-1), minlength=node_count), kind="stable"))
        case "bfs":
            return _breadth_first(edges, node_count)
        case "random":
            # The raw stream of a bit generator is fixed for good, that of `Generator.permutation` is not.
            return _places(np.argsort(np.random.PCG64(seed).random_raw(node_count), kind="stable"))
        case _:
            assert_never(order)


def _places(order: Int64[np.ndarray, " nodes"]) -> Int64[np.ndarray, " nodes"]:
    """The place of each node in a list of all nodes."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place


def _breadth_first(edges: Int64[np.ndarray, "edges 2"], count: int) -> Int64[np.ndarray, " nodes"]:
    """Places by component, distance from the component's least node, and number."""
    grouped = rows(edges.T.reshape(-1), count)
    neighbours = Rows(grouped.start, edges[:, ::-1].T.reshape(-1)[grouped.item])
    place = np.full(count, -1, np.int64)
    reached_yet, placed = place.data, 0  # the same memory, quicker to ask about one node
    for root in range(count):
        if reached_yet[root] >= 0:
            continue
        frontier = np.asarray([root], np.int64)
        while frontier.size:
            place[frontier] = np.arange(placed, placed + len(frontier))
            placed += len(frontier)
            reached = neighbours.of(frontier)
            frontier = np.unique(reached[place[reached] < 0])
    return place
