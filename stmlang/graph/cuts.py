"""Convex cuts: blocks of nodes between which edges lead one way only, so that the blocks form a graph of their own.

A partition is convex if its quotient is acyclic. Then no path leaves a block and comes back, and each block can be summarised
by what it does from the edges that enter it to the edges that leave it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import Rows, rows
from stmlang.graph.levels import find_cycle, topological_order


def interval_blocks(dag: DAG, block_size: int) -> Int64[np.ndarray, " nodes"]:
    """The block of each node, blocks being runs of `block_size` nodes of the topological order (the last may be shorter).

    Intervals of a topological order are convex: edges between blocks lead from the earlier to the later.
    """
    if block_size < 1:
        raise ValueError(f"a block needs at least one node, not {block_size}")
    block = np.empty(dag.node_count, np.int64)
    block[topological_order(dag)] = np.arange(dag.node_count) // block_size
    return block


@dataclass(frozen=True, eq=False)
class Quotient:
    """The graph of the blocks. Its nodes are the blocks; its edges are *bundles*, all edges from one block to another.

    `bundle_of_edge[e]` is the bundle of edge `e`, or -1 for an edge inside a block; `bundles` lists the edges of each bundle in
    order. Edges from outside, and edges to it, have a bundle for each block too. Bundles are in order of their blocks, (tail,
    head), outside first.
    """

    dag: DAG
    bundle_of_edge: Int64[np.ndarray, " edges"]
    bundles: Rows


def quotient(dag: DAG, block_of_node: Int64[np.ndarray, " nodes"]) -> Quotient:
    """The quotient by a convex partition into blocks `0, 1, ...`; a block without nodes is isolated.

    Raises ValueError, naming the cycle of blocks, if the partition is not convex.
    """
    result = _bundled(dag, block_of_node)
    cycle = find_cycle(result.dag.tail, result.dag.head, result.dag.node_count)
    if cycle is not None:
        blocks = " -> ".join(str(int(result.dag.tail[bundle])) for bundle in (*cycle, cycle[0]))
        raise ValueError(f"blocks must be convex, and these lead back to each other: {blocks}")
    return result


def is_convex(dag: DAG, block_of_node: Int64[np.ndarray, " nodes"]) -> bool:
    """Whether the quotient by this partition is acyclic."""
    blocks = _bundled(dag, block_of_node).dag
    return find_cycle(blocks.tail, blocks.head, blocks.node_count) is None


def _bundled(dag: DAG, block_of_node: Int64[np.ndarray, " nodes"]) -> Quotient:
    """The quotient, which may have cycles."""
    count = int(block_of_node.max(initial=-1)) + 1
    block = np.append(block_of_node, OPEN)  # an open end, -1, picks the last entry
    ends = np.stack([block[dag.tail], block[dag.head]], axis=1).reshape(-1, 2)
    between = np.flatnonzero((ends[:, 0] != ends[:, 1]) | (ends[:, 0] == OPEN))
    pairs, bundle = np.unique(ends[between], axis=0, return_inverse=True)
    bundle_of_edge = np.full(dag.edge_count, -1, np.int64)
    bundle_of_edge[between] = bundle.reshape(-1)
    port = np.zeros(len(pairs), np.int64)
    blocks = DAG((count,), pairs[:, 0].copy(), pairs[:, 1].copy(), port, ("bundle",))
    return Quotient(blocks, bundle_of_edge, rows(bundle_of_edge, len(pairs)))


@dataclass(frozen=True, eq=False)
class Wiring:
    """How the two parts of a cut graph make up the whole.

    `nodes[p]`, `edges[p]` are the numbers in the whole of the nodes and edges of part `p` (0 is evaluated first), in order.
    What leaves part 0 at `leaving` (places in its list of leaving edges) enters part 1 at `entering` (places in its list of
    entering edges). All other open ends of the parts are open in the whole: `edges[p][part.entering]` says which they are.
    """

    nodes: tuple[Int64[np.ndarray, " nodes"], Int64[np.ndarray, " nodes"]]
    edges: tuple[Int64[np.ndarray, " edges"], Int64[np.ndarray, " edges"]]
    leaving: Int64[np.ndarray, " cut"]
    entering: Int64[np.ndarray, " cut"]


def cut(dag: DAG, first_nodes: Bool[np.ndarray, " nodes"]) -> tuple[DAG, DAG, Wiring]:
    """Cuts a graph in two. The cut edges are in both parts, leaving the first and entering the second.

    An edge that is open at both ends stays with the first part. The parts keep the ports; they are not regular any more, so
    their nodes have one axis. Raises ValueError, naming an edge, if some edge leads from the second part to the first.
    """
    chosen = np.asarray(first_nodes, bool).reshape(-1)
    closed_tail, closed_head = dag.tail != OPEN, dag.head != OPEN
    from_first = closed_tail & np.append(chosen, False)[dag.tail]
    to_first = closed_head & np.append(chosen, False)[dag.head]
    back = np.flatnonzero(closed_tail & ~from_first & to_first)
    if back.size:
        edge = int(back[0])
        raise ValueError(
            f"the first part must hold all nodes that lead to it, but edge {edge} comes to node {int(dag.head[edge])} "
            f"from node {int(dag.tail[edge])} of the second"
        )
    crossing = from_first & closed_head & ~to_first
    in_first = from_first | to_first | ~(closed_tail | closed_head)
    parts = [_part(dag, chosen, in_first), _part(dag, ~chosen, ~in_first | crossing)]
    edges = (parts[0][2], parts[1][2])
    crossed = np.flatnonzero(crossing)
    wiring = Wiring(
        nodes=(parts[0][1], parts[1][1]),
        edges=edges,
        leaving=np.searchsorted(edges[0][parts[0][0].leaving], crossed),
        entering=np.searchsorted(edges[1][parts[1][0].entering], crossed),
    )
    return parts[0][0], parts[1][0], wiring


def _part(
    dag: DAG, chosen: Bool[np.ndarray, " nodes"], kept: Bool[np.ndarray, " edges"]
) -> tuple[DAG, Int64[np.ndarray, " nodes"], Int64[np.ndarray, " edges"]]:
    """The graph of the chosen nodes and kept edges, whose ends outside of it are open; their numbers in the whole."""
    nodes, edges = np.flatnonzero(chosen), np.flatnonzero(kept)
    number = np.full(dag.node_count + 1, OPEN, np.int64)
    number[nodes] = np.arange(len(nodes))
    names = None if dag.names is None else tuple(dag.names[node] for node in nodes.tolist())
    part = DAG((len(nodes),), number[dag.tail[edges]], number[dag.head[edges]], dag.port[edges], dag.ports, None, names)
    return part, nodes, edges
