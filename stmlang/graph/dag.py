"""A topology as numbers: nodes, edges, and the pairs of edges that meet at a node (line edges)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.incidence import pairs_at_nodes
from stmlang.graph.packing import Packing
from stmlang.source import short
from stmlang.source.diagnostic import SpecError, UnavailableError

if TYPE_CHECKING:
    from jaxtyping import Int64

OPEN = -1
"""Tail of an edge that enters from outside, head of one that leaves."""


@dataclass(frozen=True, eq=False)
class DAG:
    """A directed acyclic graph with classed and open edges.

    `tail[e]`, `head[e]` are node numbers or OPEN, both OPEN only along a regular axis of size 0, where what enters leaves at
    once; `port[e]` is an index into `ports`. `node_shape` is the shape of node arrays, its product the number of nodes, nodes
    numbered in C order. For regular topologies (`regular` holds the
    axis sizes, else None) edges are ordered by port, and in each port as a C-ordered array of shape `node_shape` with that
    port's axis one longer: edge `j` along the axis enters the `j`-th node and leaves the one before.

    `parts` are graphs that this one begins with, side by side; what follows them touches none of them. `spare_line_edges` is
    how many rows more arrays over line edges have than there are line edges, `packing` where the parts stand in cells, if they
    are packed.
    """

    node_shape: tuple[int, ...]
    tail: Int64[np.ndarray, " edges"]
    head: Int64[np.ndarray, " edges"]
    port: Int64[np.ndarray, " edges"]
    ports: tuple[str, ...]
    regular: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = field(default=None, repr=False)
    parts: tuple[DAG, ...] = field(default=(), repr=False)
    spare_line_edges: int = 0
    packing: Packing | None = field(default=None, repr=False)

    __repr__ = short.fields

    @cached_property
    def digest(self) -> bytes:
        """The same for two graphs that differ in nothing but the names of their nodes, and else another."""
        from hashlib import blake2b  # OpenSSL with it, for which a check would wait and never ask

        hashed = blake2b(repr((self.node_shape, self.ports, self.regular, self.spare_line_edges)).encode(), digest_size=16)
        if self.regular is None:
            for array in (self.tail, self.head, self.port):
                hashed.update(np.ascontiguousarray(array, np.int64).tobytes())
        for subgraph in self.parts:
            hashed.update(subgraph.digest)
        return hashed.digest()

    @property
    def node_count(self) -> int:
        return prod(self.node_shape)

    @property
    def edge_count(self) -> int:
        return len(self.tail)

    @cached_property
    def entering(self) -> Int64[np.ndarray, " entering"]:
        """Edges from outside, in order of their number."""
        return np.flatnonzero(self.tail == OPEN)

    @cached_property
    def leaving(self) -> Int64[np.ndarray, " leaving"]:
        """Edges to the outside, in order of their number."""
        return np.flatnonzero(self.head == OPEN)

    @cached_property
    def line_edges(self) -> Int64[np.ndarray, "line_edges 2"]:
        """Pairs `(incoming edge, outgoing edge)` of one node, sorted by node, then outgoing, then incoming edge number.

        Leaf arrays over line edges are in this order. Raises SpecError (STM3303), before anything is allocated, if their number
        passes 2^31.
        """
        try:
            return pairs_at_nodes(self.tail, self.head, self.node_count)
        except SpecError as error:
            raise UnavailableError(error.diagnostics) from None

    @property
    def line_rows(self) -> int:
        """How many rows arrays over line edges have."""
        return len(self.line_edges) + self.spare_line_edges

    def reversed(self) -> DAG:
        """Every edge turned around; nodes, edge numbers and ports stay. Line edge `k` of the reverse need not be line edge `k`
        of the graph."""
        return self._reversed

    @cached_property
    def _reversed(self) -> DAG:
        parts = tuple(subgraph.reversed() for subgraph in self.parts)
        spare, packing = self.spare_line_edges, self.packing
        return DAG(self.node_shape, self.head, self.tail, self.port, self.ports, None, self.names, parts, spare, packing)
