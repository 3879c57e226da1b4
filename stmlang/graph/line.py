"""The line graph: its vertices are the edges of a graph, its edges ("line edges") the pairs (incoming, outgoing) of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.incidence import pair_count

if TYPE_CHECKING:
    from jaxtyping import Int64


def line_count(dag: DAG) -> int:
    """How many line edges there are, without making them: the sum over the nodes of in-degree times out-degree."""
    return pair_count(dag.tail, dag.head, dag.node_count)


def reversed_line_edges(dag: DAG) -> Int64[np.ndarray, " line_edges"]:
    """The line edge `k` of `dag.reversed()` is the line edge `result[k]` of `dag`, walked backwards."""
    count, ahead, back = dag.edge_count, dag.line_edges, dag.reversed().line_edges
    declared = ahead[:, 0] * count + ahead[:, 1]
    order = np.argsort(declared)
    return order[np.searchsorted(declared[order], back[:, 1] * count + back[:, 0])]
