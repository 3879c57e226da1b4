"""Strongly connected components: the nodes that lie on cycles together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.incidence import connected, least_of

if TYPE_CHECKING:
    from jaxtyping import Int64


def strong_components(
    tail: Int64[np.ndarray, " edges"], head: Int64[np.ndarray, " edges"], node_count: int
) -> Int64[np.ndarray, " nodes"]:
    """The number of each node's component. Components are numbered by their least nodes: without a cycle they are the nodes.

    With every component made one node, and edges inside of one left out, the graph is acyclic.
    """
    least = least_of(connected(tail, head, node_count, "strong"))
    return (np.cumsum(least == np.arange(node_count)) - 1)[least]
