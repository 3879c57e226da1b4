"""Undirected edges held against what `listing` says of them: each in one sense, or each in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.convert.given import GivenGraph, Listing
from stmlang.graph.refusal import refusal

if TYPE_CHECKING:
    from jaxtyping import Int64

NEVER = np.iinfo(np.int64).max


def listing_of(ends: Int64[np.ndarray, "edges 2"], nodes: int) -> Listing:
    """What edges say of themselves: `twice` where each that joins two nodes is there in both senses, else `directed`."""
    tail, head = ends[ends[:, 0] != ends[:, 1]].T
    paired = np.array_equal(np.sort(tail * nodes + head), np.sort(head * nodes + tail))
    return "twice" if len(tail) and paired else "directed"


def refuse_contradiction(graph: GivenGraph) -> None:
    """Refuses undirected edges that are not listed as said, by the first one that is not (STM3504).

    Edges from a node to itself have one sense and are left to others. Edges that are listed several times in the same sense are
    parallel.
    """
    if graph.listing == "directed":
        return
    place = np.flatnonzero(graph.ends[:, 0] != graph.ends[:, 1])
    tail, head = graph.ends[place].T
    joined = np.minimum(tail, head) * len(graph.ids) + np.maximum(tail, head)
    pairs, pair = np.unique(joined, return_inverse=True)
    sense = 2 * pair + (tail > head)
    counts = np.bincount(sense, minlength=2 * len(pairs)).reshape(-1, 2)
    if graph.listing == "once":
        _refuse_both(graph, place, sense, counts)
    else:
        _refuse_unequal(graph, place, pair, counts)


def _refuse_both(
    graph: GivenGraph,
    place: Int64[np.ndarray, " edges"],
    sense: Int64[np.ndarray, " edges"],
    counts: Int64[np.ndarray, "pairs 2"],
) -> None:
    """Refuses the first edge that comes after one in the other sense."""
    first = np.full(counts.size, NEVER, np.int64)
    np.minimum.at(first, sense, place)
    later = first.reshape(-1, 2).max(axis=1, initial=0)
    if not later.size or int(later.min()) == NEVER:
        return
    first_pair = int(later.argmin())
    before, edge = sorted(first[2 * first_pair : 2 * first_pair + 2].tolist())
    message = f"edge {edge}, {_written(graph, edge)}, is edge {before} in the other sense, and listed `once` is in one sense"
    if (counts[:, 0] == counts[:, 1]).all():
        raise refusal("STM3504", message, 'every edge is listed in both senses here: say `listing="twice"`')
    help = "leave one of the two out, and others like it"
    raise refusal("STM3504", message, help, "edges that are parallel are listed in the same sense")


def _refuse_unequal(
    graph: GivenGraph,
    place: Int64[np.ndarray, " edges"],
    pair: Int64[np.ndarray, " edges"],
    counts: Int64[np.ndarray, "pairs 2"],
) -> None:
    """Refuses the first edge that is not listed as often in the other sense."""
    wrong = np.flatnonzero(counts[pair, 0] != counts[pair, 1])
    if not wrong.size:
        return
    edge = int(place[wrong[0]])
    forward, backward = counts[pair[wrong[0]]].tolist()
    times = (backward, forward) if graph.ends[edge, 0] > graph.ends[edge, 1] else (forward, backward)
    message = f"edge {edge}, {_written(graph, edge)}, is listed {times[0]} x, its reverse {times[1]} x"
    if (counts == 0).any(axis=1).all():
        raise refusal("STM3504", message, 'no edge is listed in both senses here: say `listing="once"`, or "directed"')
    raise refusal("STM3504", message, "list every edge as often in one sense as in the other")


def _written(graph: GivenGraph, edge: int) -> str:
    """An edge as its user would write it."""
    tail, head = graph.ends[edge].tolist()
    return f"{graph.called(tail)} -> {graph.called(head)}"
