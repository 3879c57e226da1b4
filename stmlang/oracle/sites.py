"""Where the numbers of a scan sit in one direction: its nodes, outgoing edges, incoming edges, and pairs of both at a node.

A *site* of the port indices `()` is a node, of `("out",)` an edge that leaves a node, of `("in",)` one that enters a node, and
of `("out", "in")` a pair of such edges at one node. All of this is written as plain loops: it is part of the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG, OPEN
from stmlang.scan.expression import Index
from stmlang.scan.scan import Direction

Ints = npt.NDArray[np.int64]
PortIndices = tuple[Index, ...]


@dataclass(frozen=True, eq=False)
class Sites:
    """The sites of one direction.

    `tail`, `head` are per edge, in the sense of the direction. `out_edge` and `in_edge` list the edges of the out- and
    in-sites. `line` holds, for each pair, its out-site and its in-site. On a regular topology the out-sites are numbered
    node by node and port by port in each, the in-sites too, and the pairs by node, outgoing and incoming port; on others by
    edge number and by the numbers of `DAG.line_edges`.
    """

    dag: DAG
    tail: Ints
    head: Ints
    out_edge: Ints
    in_edge: Ints
    line: Ints

    def count(self, ports: PortIndices) -> int:
        """How many sites the port indices have."""
        return len(self.nodes(ports))

    def nodes(self, ports: PortIndices) -> Ints:
        """The node of each site."""
        match ports:
            case ():
                return np.arange(self.dag.node_count)
            case ("out",):
                return self.tail[self.out_edge]
            case ("in",):
                return self.head[self.in_edge]
            case ("out", "in"):
                return self.tail[self.out_edge[self.line[:, 0]]]
            case _:
                raise ValueError(f"port indices {ports} are not in order")

    def within(self, few: PortIndices, many: PortIndices) -> Ints:
        """For each site of the port indices `many`, the site of its part `few` it lies on; `few` is a subset of `many`."""
        if few == many:
            return np.arange(self.count(many))
        if few == ():
            return self.nodes(many)
        return self.line[:, 0 if few == ("out",) else 1]

    def port(self, ports: PortIndices, index: Index) -> Ints:
        """The port that `index` (one of `ports`) has at each site."""
        edges = self.out_edge if index == "out" else self.in_edge
        return self.dag.port[edges[self.within((index,), ports)]]


def sites_of(dag: DAG, direction: Direction) -> Sites:
    """The sites of a direction. Raises ValueError where a DAG that is not regular is to be walked along one port and against
    another: its pairs of edges have no numbers then."""
    senses = np.asarray(direction.senses, dtype=np.int64)
    if dag.regular is None and len(set(direction.senses)) > 1:
        raise ValueError(f"direction {direction.senses} mixes senses on a topology that is not regular")
    forward = senses[dag.port] > 0
    tail, head = np.where(forward, dag.tail, dag.head), np.where(forward, dag.head, dag.tail)
    if dag.regular is not None:
        return _regular(dag, tail, head)
    out_edge, in_edge = np.flatnonzero(tail != OPEN), np.flatnonzero(head != OPEN)
    out_site = {int(edge): site for site, edge in enumerate(out_edge)}
    in_site = {int(edge): site for site, edge in enumerate(in_edge)}
    along = bool(np.all(senses > 0))
    pairs = [(b, a) if along else (a, b) for a, b in declared_line_edges(dag)]
    line = np.asarray([(out_site[out], in_site[into]) for out, into in pairs], dtype=np.int64).reshape(-1, 2)
    return Sites(dag, tail, head, out_edge, in_edge, line)


def _regular(dag: DAG, tail: Ints, head: Ints) -> Sites:
    nodes, count = range(dag.node_count), len(dag.ports)
    leaving = {(int(tail[edge]), int(dag.port[edge])): edge for edge in range(dag.edge_count)}
    entering = {(int(head[edge]), int(dag.port[edge])): edge for edge in range(dag.edge_count)}
    out_edge = np.asarray([leaving[node, port] for node in nodes for port in range(count)], dtype=np.int64)
    in_edge = np.asarray([entering[node, port] for node in nodes for port in range(count)], dtype=np.int64)
    line = [(node * count + out, node * count + into) for node in nodes for out in range(count) for into in range(count)]
    return Sites(dag, tail, head, out_edge, in_edge, np.asarray(line, dtype=np.int64).reshape(-1, 2))


def ints(array: Ints) -> list[int]:
    """An array of integers as a list."""
    return [int(number) for number in array]


def declared_line_edges(dag: DAG) -> list[tuple[int, int]]:
    """Pairs (incoming edge, outgoing edge) at a node, along the declared edges: sorted by node, then outgoing, then incoming
    edge number. The same list as `DAG.line_edges`, found without the code that it checks."""
    pairs: list[tuple[int, int]] = []
    entering: list[list[int]] = [[] for _ in range(dag.node_count)]
    leaving: list[list[int]] = [[] for _ in range(dag.node_count)]
    for edge, (tail, head) in enumerate(zip(ints(dag.tail), ints(dag.head), strict=True)):
        if head != OPEN:
            entering[head].append(edge)
        if tail != OPEN:
            leaving[tail].append(edge)
    for node in range(dag.node_count):
        pairs.extend((into, out) for out in leaving[node] for into in entering[node])
    return pairs


def topological_order(sites: Sites) -> list[int]:
    """The nodes such that every edge leads to a later one. Raises ValueError if there is a cycle."""
    waiting = np.zeros(sites.dag.node_count, dtype=np.int64)
    after: list[list[int]] = [[] for _ in range(sites.dag.node_count)]
    for tail, head in zip(ints(sites.tail), ints(sites.head), strict=True):
        if tail != OPEN and head != OPEN:
            waiting[head] += 1
            after[tail].append(head)
    ready = [node for node in range(sites.dag.node_count) if waiting[node] == 0]
    order: list[int] = []
    while ready:
        node = ready.pop()
        order.append(node)
        for head in after[node]:
            waiting[head] -= 1
            if waiting[head] == 0:
                ready.append(head)
    if len(order) != sites.dag.node_count:
        raise ValueError("the graph has a cycle")
    return order
