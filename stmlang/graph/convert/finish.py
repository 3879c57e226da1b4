"""From edges between numbered nodes to a DAG: halved, oriented, condensed, and refused where a cycle is left."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.build import ragged_dag
from stmlang.graph.condense import strong_components
from stmlang.graph.convert.given import GivenGraph
from stmlang.graph.convert.senses import refuse_contradiction
from stmlang.graph.dag import DAG
from stmlang.graph.levels import find_cycle
from stmlang.graph.orient import Order, checked_order, checked_seed, node_rank
from stmlang.graph.refusal import named, refusal, shown
from stmlang.graph.show import cycle_text, distinct
from stmlang.source import short

if TYPE_CHECKING:
    from jaxtyping import Int64

    Edges = Int64[np.ndarray, " edges"]


@dataclass(frozen=True, eq=False)
class Converted:
    """A DAG and where its parts come from.

    Edge `e` of the DAG is number `edge[e]` of the edges as they were given, so `features[edge]` are its features; of an edge
    that was listed in both senses it is the one in the sense of the DAG. Node number `n` as it was given, which the user calls
    `ids[n]`, has become node `node[n]`: `n` itself, unless the graph was condensed.
    """

    dag: DAG
    edge: Int64[np.ndarray, " edges"]
    node: Int64[np.ndarray, " given"]
    ids: Sequence[Hashable] = field(repr=False)

    __repr__ = short.fields


def finish(graph: GivenGraph, order: Order | None = None, seed: int = 0, condense: bool = False) -> Converted:
    """The DAG of a graph, edges in the order in which they were given.

    Undirected edges lead from the node that comes first in `order` (by default `index`), which `orient` explains. `condense`
    makes each strongly connected component one node, numbered by its least one, and leaves edges inside of it out. Raises
    SpecError: STM3504 for an order of directed edges and for undirected ones that are not listed as said, STM3505
    for cycles, edges from a node to itself and a `condense` that is no truth value, STM3506 for an unknown order.
    """
    order, seed = _checked_order(graph, order, seed)
    _refuse_no_truth_value(condense)
    refuse_contradiction(graph)
    tail, head = graph.ends[:, 0], graph.ends[:, 1]
    edge, count = np.arange(len(tail)), len(graph.ids)
    if graph.listing != "directed":
        # Each edge once and none from a node to itself, so that the order does not depend on how edges are listed.
        single = tail != head if graph.listing == "once" else tail < head
        rank = node_rank(graph.ends[single], count, order, seed)
        against = rank[tail] > rank[head]
        if graph.listing == "twice":
            edge = np.flatnonzero(~against)
            tail, head = tail[edge], head[edge]
        else:
            tail, head = np.where(against, head, tail), np.where(against, tail, head)
    node = strong_components(tail, head, count) if condense else np.arange(count)
    if condense:
        between = node[tail] != node[head]
        edge, tail, head = edge[between], node[tail[between]], node[head[between]]
    else:
        _refuse_cycle(graph, tail, head)
    dag = ragged_dag(int(node.max(initial=-1)) + 1, tail, head, _names(graph, node))
    return Converted(dag, edge, node, graph.ids)


def _refuse_no_truth_value(condense: object) -> None:
    """A text such as "no" would be taken for true."""
    if not isinstance(condense, bool | np.bool_):
        message = f"whether strong components become one node is not told by `condense={shown(condense)}`"
        raise refusal("STM3505", message, "write `condense=True` or leave it out")


def _checked_order(graph: GivenGraph, order: object, seed: object) -> tuple[Order, int]:
    if order is not None and graph.listing == "directed":
        message = f"the edges are directed, so `order={shown(order)}` has nothing to orient"
        help = 'leave `order` out; or say that the edges are undirected, `listing="once"`, or "twice" if listed in both senses'
        raise refusal("STM3504", message, help)
    return "index" if order is None else checked_order(order), checked_seed(seed)


def _refuse_cycle(graph: GivenGraph, tail: Edges, head: Edges) -> None:
    """Prints a shortest cycle. Oriented edges have none but from a node to itself."""
    loops = np.flatnonzero(tail == head)
    if graph.listing != "directed":
        cycle = (int(loops[0]),) if loops.size else None
    else:
        cycle = find_cycle(tail, head, len(graph.ids))
    if cycle is None:
        return
    shown = cycle_text([graph.called(int(tail[edge])) for edge in cycle])
    notes = ["a scan needs an order in which every node comes after the nodes that lead to it"]
    if len(cycle) == 2:
        notes.append('if every edge is listed in both senses, the graph is undirected: `listing="twice"`')
    help = "leave one of these edges out, or make one node of those on cycles together: `condense=True`"
    raise refusal("STM3505", f"the graph has a cycle: {shown}", help, *notes)


def _names(graph: GivenGraph, node: Int64[np.ndarray, " given"]) -> tuple[str, ...] | None:
    """Names of the nodes of the DAG, all different, from those of the least nodes that went into them."""
    if isinstance(graph.ids, range):
        return None
    _, first, sizes = np.unique(node, return_index=True, return_counts=True)
    names: list[str] = []
    for place, size in zip(first.tolist(), sizes.tolist(), strict=True):
        names.append(named(graph.ids[place]) + (f" and {size - 1} more" if size > 1 else ""))
    return distinct(names)
