"""What must hold of every graph that a reader has found: a node, no cycle, and of a tree one edge at most out of each node."""

from __future__ import annotations

import numpy as np

from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.levels import find_cycle
from stmlang.graph.readers.text import GraphFile, ParsedGraph
from stmlang.graph.show import cycle_text
from stmlang.source.wording import shortened


def checked(file: GraphFile, graph: ParsedGraph, tree: bool = False) -> DAG:
    """The graph found in a file. Raises SpecError: STM3411 without a node, STM3405 with a cycle, STM3407 if it is no tree."""
    if not graph.node_count:
        file.refuse("STM3411", "this file holds no node", None)
    cycle = find_cycle(graph.tail, graph.head, graph.node_count)
    if cycle is not None:
        _refuse_cycle(file, graph, cycle)
    if tree:
        _require_tree(file, graph)
    return ragged_dag(graph.node_count, graph.tail, graph.head, graph.names)


def _refuse_cycle(file: GraphFile, graph: ParsedGraph, cycle: tuple[int, ...]) -> None:
    """Prints the cycle, at the place of its first edge."""
    steps = [shortened(graph.called(int(graph.tail[edge]))) for edge in cycle]
    file.refuse(
        "STM3405",
        f"the graph has a cycle: {cycle_text(steps)}",
        graph.edge_at(cycle[0]),
        "remove one of these edges, or merge the nodes of the cycle into one",
        ("a scan needs an order in which every node comes after the nodes that lead to it",),
    )


def _require_tree(file: GraphFile, graph: ParsedGraph) -> None:
    """Refuses a second edge out of a node (STM3407): of all second edges the first one of the file."""
    order = np.argsort(graph.tail, kind="stable")
    tail = graph.tail[order]
    second = 1 + np.flatnonzero(tail[1:] == tail[:-1])
    if not second.size:
        return
    edge = int(order[second].min())
    before = int(np.flatnonzero(graph.tail == graph.tail[edge])[0])
    place = graph.edge_at(before)
    file.refuse(
        "STM3407",
        f"two edges leave `{graph.called(int(graph.tail[edge]))}`, so this is no tree",
        graph.edge_at(edge),
        'use `dag from "..."`, or turn the edges around if the file has them from the root',
        ("in a tree edges lead from the children to the root",),
        None if place is None else (place, "the first one is here"),
    )
