"""Which node and which edge features stand behind each entry of an edge array."""

from __future__ import annotations

from typing import Literal, NamedTuple, assert_never

import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from stmlang.lower.tables import take
from stmlang.runtime.compiled import CompiledScan
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


class EdgeTables(NamedTuple):
    """Ends of edges and of line edges as index arrays of a compiled scan, so that a graph enters a program as an argument.

    An end that is open has the number of nodes as its index, one past the last: `take` with `mode="fill"` reads zero there.
    Line edges are there where a leaf has one value of each.
    """

    tail: Int32[Array, " edges"]
    head: Int32[Array, " edges"]
    incoming: Int32[Array, " line_edges"] | None
    outgoing: Int32[Array, " line_edges"] | None
    middle: Int32[Array, " line_edges"] | None

    @staticmethod
    def of(op: CompiledScan) -> EdgeTables | None:
        """The tables of a scan, edges as declared; None on a regular topology."""
        sites = op.tables[0].sites
        if sites is None:
            return None
        sense = op.scan.directions[0].senses[0]
        tail, head = (sites.tail, sites.head)[::sense]
        if sites.line is None:
            return EdgeTables(jnp.asarray(tail), jnp.asarray(head), None, None, None)
        incoming, outgoing = (sites.line.into, sites.line.out)[::sense]
        ends = (jnp.asarray(table) for table in (tail, head, incoming, outgoing, sites.line.node))
        return EdgeTables(*ends)

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

    def between(self, nodes: Float[Array, "nodes ..."]) -> Float[Array, "edges ..."]:
        """Half the sum of what the ends of each edge hold, open ones nothing."""
        return 0.5 * (take(nodes, self.tail, 0) + take(nodes, self.head, 0))

    def edge(self, site: Site, index: Literal["in", "out"], *, forward: bool) -> Int32[Array, " sites"] | None:
        """The edge that `e[index]` reads for each entry; None where entry k is edge k."""
        if site != "pair":
            return None
        return self.incoming if (index == "in") == forward else self.outgoing
