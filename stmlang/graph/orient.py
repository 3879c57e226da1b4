"""Directions for undirected graphs: each edge leads from the end that comes first in an order of the nodes to the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never, get_args

import numpy as np

from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.incidence import Rows, rows
from stmlang.graph.refusal import refusal, shown, whole
from stmlang.source.suggest import did_you_mean
from stmlang.source.wording import listing

if TYPE_CHECKING:
    from jaxtyping import Int64, UInt64

Order = Literal["index", "degree", "bfs", "canonical", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)

ROUNDS = 64
"""The most rounds of refinement for the canonical order. A round tells apart what lies one edge further away."""


def checked_order(order: object) -> Order:
    """An order that is named. Raises SpecError (STM3506) for any other."""
    for known in ORDERS:
        if isinstance(order, str) and order == known:
            return known
    names = listing([f'"{name}"' for name in ORDERS])
    help = did_you_mean(order, ORDERS, 'order="{}"') or f"choose {names}"
    raise refusal("STM3506", f"there is no order {shown(order)}", help, f"the orders are {names}")


def checked_seed(seed: object) -> int:
    """A seed for a random order. Raises SpecError (STM3506) for what is none."""
    drawn = whole(seed)
    if drawn is None or drawn < 0:
        raise refusal("STM3506", f"no order can be drawn from the seed {shown(seed)}", "give a whole number of at least 0")
    return drawn


def orient(edges: Int64[np.ndarray, "edges 2"], node_count: int, order: Order = "index", seed: int = 0) -> DAG:
    """The DAG with one directed edge for each row of `edges`, in the same order; repeated rows stay parallel edges.

    * `index`: by number.
    * `degree`: the most edges first, then by number. Hubs become sources.
    * `bfs`: component by component, each from its least node, by distance from it, then by number.
    * `canonical`: the most edges first, then by what lies around a node, up to `ROUNDS` edges away, as far as colour refinement
      tells nodes apart, only then by number. So graphs that differ in their numbering alone are oriented alike, but for ties:
      nodes that change places under some symmetry, or that refinement takes for alike, as it does all nodes of a ring.
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
        case "canonical":
            return _refined(edges, node_count)
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
    """Indices by component, distance from the component's least node, and number."""
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


def _refined(edges: Int64[np.ndarray, "edges 2"], count: int) -> Int64[np.ndarray, " nodes"]:
    """Indices by degree, colour and number, the most edges first.

    A node's colour starts as its degree; each round makes it `mix(a mix(colour) + sum over neighbours of mix(colour))`. Sums of
    64-bit integers do not depend on their order, so colours depend on the graph and not on its numbering, the same on every
    machine. Rounds end when colours tell no more nodes apart than before.
    """
    grouped = rows(edges.T.reshape(-1), count)
    neighbour = edges[:, ::-1].T.reshape(-1)[grouped.item]
    degree = grouped.size
    colour, known = degree.astype(np.uint64), -1
    for _ in range(ROUNDS):
        distinct = _distinct(colour)
        if distinct in (known, count):
            break
        known, mixed = distinct, _mix(colour)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed[neighbour])])
        colour = _mix(mixed * _ODD + (sums[grouped.start[1:]] - sums[grouped.start[:-1]]))
    return _places(np.lexsort((colour, -degree)))


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _distinct(colour: UInt64[np.ndarray, " nodes"]) -> int:
    ordered = np.sort(colour)
    return int((ordered[1:] != ordered[:-1]).sum()) + (len(ordered) > 0)


def _mix(colour: UInt64[np.ndarray, " nodes"]) -> UInt64[np.ndarray, " nodes"]:
    """A bijection of 64-bit integers without a pattern: the step of the generator SplitMix64."""
    mixed = colour + _ODD
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
