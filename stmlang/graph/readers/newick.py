"""Newick trees and extended Newick networks: `((a:1, b:2)ab:3, c)root;`, edges from the children to the root.

Nodes come in the order in which the text completes them, so children before their parent and the root last; of a tree edge `k`
leaves node `k`. Labels are shown as they are written, underscores too; a node without one as `node 7`. A hybrid node of
extended Newick (`#H1`) is one node with several parents, in the place of the first. Lengths are checked and not used. What
`[comments]` say has no meaning, but that a tree marked `[&U]` is refused: it has no root.

Of several trees in a file all must be the same but for their lengths. A file that begins with `#NEXUS` is read as one. The
grammar: `trees`.
"""

from __future__ import annotations

from stmlang.graph.readers import nexus
from stmlang.graph.readers.text import Graph, GraphFile
from stmlang.graph.readers.trees import Spot, graph_of, same, tree


def read(file: GraphFile) -> Graph:
    if nexus.begins(file):
        return nexus.read(file)
    graph: Graph | None = None
    place = 0
    while (parsed := tree(file, place)) is not None:
        place = parsed.end[1]
        tree_graph = graph_of(file, parsed.spots, _as_written)
        if graph is None:
            graph = tree_graph
        elif not same(graph, tree_graph):
            help = "keep one tree in the file; several are read where they differ in nothing but their lengths"
            file.refuse("STM3403", "another tree than the first one begins here", parsed.begin, help)
    if graph is None:
        file.refuse("STM3411", "this file holds no node", None)
    return graph


def _as_written(label: str, spot: Spot, leaf: bool) -> str:  # noqa: ARG001
    return label
