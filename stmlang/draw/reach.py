"""The part of a graph that a node is read in: what its states come to, and the recurrence on no more than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int64

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import rows
from stmlang.oracle.gates import DirectionGates
from stmlang.oracle.sites import Sites
from stmlang.scan.scan import Direction

Nodes = Int64[np.ndarray, " reached"]


def reached(dag: DAG, direction: Direction, source: int, most: int) -> Nodes:
    """The nodes to which edges lead from `source`, itself among them, in order of their number. Of more than `most` only some,
    but more than `most`."""
    forward = np.asarray(direction.senses)[dag.port] > 0
    tail, head = np.where(forward, dag.tail, dag.head), np.where(forward, dag.head, dag.tail)
    leaving = rows(tail, dag.node_count)
    seen = np.zeros(dag.node_count, np.bool_)
    fresh, count = np.array([source]), 0
    while len(fresh) and count <= most:
        seen[fresh] = True
        count += len(fresh)
        heads = np.unique(head[leaving.of(fresh)])
        fresh = heads[(heads != OPEN) & ~seen[heads]]
    return np.flatnonzero(seen)


def part(values: DirectionGates, nodes: Nodes) -> DirectionGates:
    """The gates of a direction on some nodes, which are numbered in their order, and the edges that meet them."""
    sites = values.sites
    node = numbered(nodes, sites.dag.node_count)
    tail, head = node[sites.tail], node[sites.head]
    edges = np.flatnonzero((tail != OPEN) | (head != OPEN))
    edge = numbered(edges, len(tail))
    out, into = np.flatnonzero(node[sites.nodes(("out",))] != OPEN), np.flatnonzero(node[sites.nodes(("in",))] != OPEN)
    pairs = np.flatnonzero(node[sites.nodes(("out", "in"))] != OPEN)
    line = np.stack(
        [
            numbered(out, len(sites.out_edge))[sites.line[pairs, 0]],
            numbered(into, len(sites.in_edge))[sites.line[pairs, 1]],
        ],
        axis=1,
    )
    tail, head = tail[edges], head[edges]
    dag = DAG((len(nodes),), tail, head, sites.dag.port[edges], sites.dag.ports)
    return replace(
        values,
        sites=Sites(dag, tail, head, edge[sites.out_edge[out]], edge[sites.in_edge[into]], line),
        source=replace(values.source, array=values.source.array[out]),
        transition=replace(values.transition, array=values.transition.array[pairs]),
        mark=replace(values.mark, array=values.mark.array[into]),
        direct=replace(values.direct, array=values.direct.array[nodes]),
        query=values.query[nodes],
        key=values.key[nodes],
        value=values.value[nodes],
    )


def numbered(chosen: Nodes, count: int) -> Int64[np.ndarray, " count_and_one"]:
    """The place of each of `count` numbers among the chosen ones, `OPEN` for those that are not; the last is for `OPEN`."""
    place = np.full(count + 1, OPEN)
    place[chosen] = np.arange(len(chosen))
    return place
