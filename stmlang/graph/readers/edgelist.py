"""Edge lists: a line for each edge, `tail head`, separated by blanks or a comma; a name alone is a node without edges.

Whatever follows the two names (weights, attributes) is not read. `#` and `%` start comments. An edge given twice is refused:
the format can't say whether it is a slip or two parallel edges.
"""

from __future__ import annotations

import re

from stmlang.graph.readers.text import Graph, GraphFile

_LINE = re.compile(r"[^\r\n]+")
_NAME = re.compile(r"[^\s,;]+")


def read(file: GraphFile) -> Graph:
    graph = Graph(file)
    for line in _LINE.finditer(file.text):
        end = min(
            (place for mark in "#%" if (place := file.text.find(mark, line.start(), line.end())) >= 0), default=line.end()
        )
        tail = _NAME.search(file.text, line.start(), end)
        if tail is None:
            continue
        first = graph.node(tail.group(), tail.span())
        head = _NAME.search(file.text, tail.end(), end)
        if head is not None:
            graph.edge_once(first, graph.node(head.group(), head.span()), (tail.start(), head.end()))
    return graph
