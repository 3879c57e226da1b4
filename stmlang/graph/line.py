"""The line graph: its vertices are the edges of a graph, its edges ("line edges") the pairs (incoming, outgoing) of a node."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from stmlang.graph.dag import DAG
from stmlang.graph.incidence import Rows, rows, within
from stmlang.graph.limits import refuse_above_largest


def incoming(dag: DAG) -> Rows:
    """The edges that enter each node, open ones included."""
    return rows(dag.head, dag.node_count)


def outgoing(dag: DAG) -> Rows:
    """The edges that leave each node, open ones included."""
    return rows(dag.tail, dag.node_count)


def line_count(dag: DAG) -> int:
    """How many line edges there are: the sum over the nodes of in-degree times out-degree.

    Both degrees are below 2^31 and each edge has one tail, so the sum stays below 2^62 and int64 holds it exactly.
    """
    inside = dag.head[dag.head >= 0]
    in_degree = np.bincount(inside, minlength=dag.node_count)
    return int(in_degree[dag.tail[dag.tail >= 0]].sum())


def line_edges(dag: DAG) -> Int64[np.ndarray, "line_edges 2"]:
    """All line edges `(incoming edge, outgoing edge)`, sorted by node, then outgoing, then incoming edge.

    Raises SpecError (STM3303) if there are more than 2^31 - 1.
    """
    refuse_above_largest("line edges", line_count(dag))
    enter, leave = incoming(dag), outgoing(dag)
    node = dag.tail[leave.item]
    count = enter.size[node]
    pairs = np.empty((int(count.sum()), 2), np.int64)
    pairs[:, 0] = enter.item[np.repeat(enter.start[node], count) + within(count)]
    pairs[:, 1] = np.repeat(leave.item, count)
    return pairs


def reversed_line_edges(dag: DAG) -> Int64[np.ndarray, " line_edges"]:
    """The line edge `k` of `dag.reversed()` is the line edge `result[k]` of `dag`, walked backwards."""
    count, ahead, back = dag.edge_count, dag.line_edges, dag.reversed().line_edges
    declared = ahead[:, 0] * count + ahead[:, 1]
    order = np.argsort(declared)
    return order[np.searchsorted(declared[order], back[:, 1] * count + back[:, 0])]
