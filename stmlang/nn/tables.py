"""Which node and which edge features stand behind each entry of an edge array."""

from __future__ import annotations

from typing import Literal, assert_never

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from stmlang.graph.dag import DAG
from stmlang.scan.scan import Leaf

Site = Literal["node", "out", "in", "pair"]
"""What a leaf has one value of on a ragged topology: each node, each edge as one that leaves (enters), each line edge."""


def site_of(leaf: Leaf) -> Site:
    """What a leaf has one value of, its topology being ragged."""
    match ("out" in leaf.indices, "in" in leaf.indices):
        case (True, True):
            return "pair"
        case (True, False):
            return "out"
        case (False, True):
            return "in"
        case _:
            return "node"


class EdgeTables(eqx.Module):
    """Ends of edges and of line edges as index arrays, so that a graph enters a program as an argument and not as a constant.

    An end that is open has the number of nodes as its index, one past the last: `take` with `mode="fill"` reads zero there.
    """

    tail: Int32[Array, " edges"]
    head: Int32[Array, " edges"]
    incoming: Int32[Array, " line_edges"]
    outgoing: Int32[Array, " line_edges"]
    middle: Int32[Array, " line_edges"]

    @staticmethod
    def of(dag: DAG) -> EdgeTables:
        """The tables of a graph."""
        incoming, outgoing = dag.line_edges[:, 0], dag.line_edges[:, 1]
        tail, head = (np.where(ends < 0, dag.node_count, ends) for ends in (dag.tail, dag.head))
        return EdgeTables(*(jnp.asarray(part, jnp.int32) for part in (tail, head, incoming, outgoing, head[incoming])))

    def node(self, site: Site, *, forward: bool) -> Int32[Array, " sites"] | None:
        """The node at which each entry lives; None where entries are nodes. Backwards an edge leaves what it entered."""
        match site:
            case "node":
                return None
            case "out":
                return self.tail if forward else self.head
            case "in":
                return self.head if forward else self.tail
            case "pair":
                return self.middle
            case _:
                assert_never(site)

    def edge(self, site: Site, index: Literal["in", "out"], *, forward: bool) -> Int32[Array, " sites"] | None:
        """The edge that `e[index]` reads for each entry; None where entry k is edge k."""
        if site != "pair":
            return None
        return self.incoming if (index == "in") == forward else self.outgoing
