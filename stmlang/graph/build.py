"""Graphs made of sizes: chains, grids, complete trees and products, and ragged ones of their edges.

Every regular topology is a product of chains, so the product of DAGs is the one construction that this file needs:

    nodes of A x B   = pairs (a, b), numbered in C order
    edges of A x B   = edges of A x nodes of B, then nodes of A x edges of B

Ports come factor by factor. The edges of a port of one factor form the C-ordered array of shape `node_shape` in which that
factor's node axes are replaced by the port's edges in their own order. For chains this is the order that `DAG` states: an
array whose axis is one longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.limits import LARGEST, refuse_above_largest, refuse_above_memory
from stmlang.source.span import Span

if TYPE_CHECKING:
    from jaxtyping import Int64

BUILDING_BYTES = 48
"""Bytes held for each edge while a graph is built: tail, head and port, and as much again of what they are made from."""


def regular_dag(sizes: Sequence[int], names: Sequence[str], span: Span | None = None) -> DAG:
    """The chain or grid with these axis sizes (0 and 1 included) and port names, edges in the order that `DAG` states.

    Along an axis of size 0 every edge is open at both ends: what enters leaves at once. Raises SpecError (STM3303) beyond
    2^31 nodes or edges.
    """
    refuse_large_product([(size, size + 1) for size in sizes], span)
    built = product_dag([_chain(size, name) for size, name in zip(sizes, names, strict=True)], names, span)
    return DAG(built.node_shape, built.tail, built.head, built.port, built.ports, tuple(sizes))


def ragged_dag(
    node_count: int,
    tail: Int64[np.ndarray, " edges"],
    head: Int64[np.ndarray, " edges"],
    names: tuple[str, ...] | None = None,
) -> DAG:
    """A graph with the one port `edge`. The caller vouches that it is acyclic."""
    port = np.zeros(len(tail), np.int64)
    return DAG((node_count,), tail.astype(np.int64), head.astype(np.int64), port, ("edge",), None, names)


def complete_tree(arity: int, depth: int, span: Span | None = None) -> DAG:
    """The tree whose inner nodes have `arity` children, all leaves `depth` edges from the root, edges to the root.

    Nodes are numbered from the deepest level to the root, which is last, and edge `k` leaves node `k`. A tree of arity 0 is its
    root. Raises SpecError (STM3303) beyond 2^31 nodes.
    """
    if arity <= 1:
        count = 1 + arity * depth
        refuse_above_largest("nodes", count, span)
        _refuse_large_tables(count, span)
        tail = np.arange(count - 1, dtype=np.int64)
        return ragged_dag(count, tail, tail + 1)
    widths: list[int] = []
    while len(widths) <= depth and sum(widths) <= LARGEST:
        widths.append(arity ** len(widths))
    count = sum(widths)
    refuse_above_largest("nodes", count, span)
    _refuse_large_tables(count, span)
    head = np.empty(count - 1, np.int64)
    start = 0
    for width in reversed(widths[1:]):
        head[start : start + width] = start + width + np.arange(width) // arity
        start += width
    return ragged_dag(count, np.arange(count - 1, dtype=np.int64), head)


def product_dag(factors: Sequence[DAG], names: Sequence[str], span: Span | None = None) -> DAG:
    """The product of graphs; `names` name its ports, factor by factor.

    Raises SpecError (STM3303) beyond 2^31 nodes or edges.
    """
    counts = [factor.node_count for factor in factors]
    refuse_large_product([(factor.node_count, factor.edge_count) for factor in factors], span)
    ends_by_port: list[tuple[Int64[np.ndarray, " edges"], Int64[np.ndarray, " edges"]]] = []
    for place, factor in enumerate(factors):
        before, after = prod(counts[:place]), prod(counts[place + 1 :])
        for port in range(len(factor.ports)):
            chosen = factor.port == port
            ends = (factor.tail[chosen], factor.head[chosen])
            ends_by_port.append(
                (_spread(ends[0], before, counts[place], after), _spread(ends[1], before, counts[place], after))
            )
    sizes = [len(tail) for tail, _ in ends_by_port]
    return DAG(
        node_shape=tuple(size for factor in factors for size in factor.node_shape),
        tail=np.concatenate([tail for tail, _ in ends_by_port]),
        head=np.concatenate([head for _, head in ends_by_port]),
        port=np.repeat(np.arange(len(ends_by_port), dtype=np.int64), sizes),
        ports=tuple(names),
    )


def _chain(size: int, name: str) -> DAG:
    """The chain of `size` nodes; edge `j` enters node `j` and leaves node `j - 1`."""
    nodes = np.arange(size, dtype=np.int64)
    outside = np.asarray([OPEN], np.int64)
    tail, head = np.concatenate([outside, nodes]), np.concatenate([nodes, outside])
    return DAG((size,), tail, head, np.zeros(size + 1, np.int64), (name,))


def _spread(ends: Int64[np.ndarray, " ends"], before: int, count: int, after: int) -> Int64[np.ndarray, " edges"]:
    """Nodes (or OPEN) of one factor as nodes of the product, for all nodes of the factors before and after it."""
    outer = np.arange(before, dtype=np.int64)[:, None, None] * count
    inner = np.arange(after, dtype=np.int64)
    middle = ends[None, :, None]
    return np.where(middle == OPEN, OPEN, (outer + middle) * after + inner).reshape(-1)


def refuse_large_product(counts: Sequence[tuple[int, int]], span: Span | None) -> None:
    """Refuses a product by the counts (nodes, edges) of its factors, before any of it is allocated."""
    nodes = [count for count, _ in counts]
    refuse_above_largest("nodes", prod(nodes), span)
    edges = sum(count * prod(nodes[:place]) * prod(nodes[place + 1 :]) for place, (_, count) in enumerate(counts))
    refuse_above_largest("edges", edges, span)
    _refuse_large_tables(edges, span)


def _refuse_large_tables(edges: int, span: Span | None) -> None:
    """Refuses a graph of so many edges that what is held while it is built does not fit into memory."""
    refuse_above_memory(f"the tables of {edges:,} edges", BUILDING_BYTES * edges, span)
