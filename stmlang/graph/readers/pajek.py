"""Pajek networks and projects (.net, .paj): the vertices and arcs of the first network.

    *Vertices 3
    1 "first paper"
    *Arcs
    1 2 1.0
    *Arcslist
    1 2 3

Vertices are numbered from 1; those that are not listed are shown by their number. Arcs that are repeated, as they are in many
published files, count once. Undirected sections (`*Edges`, `*Edgeslist`) and matrices are refused unless they are empty;
partitions, vectors and further networks are skipped.
"""

from __future__ import annotations

import re

from stmlang.graph.readers.text import Graph, GraphFile

_LINE = re.compile(r"[^\r\n]+")
_FIELD = re.compile(r'"[^"]*"|\S+')
_BESIDES = ("*partition", "*vector", "*permutation", "*cluster", "*hierarchy")

MOST_DIGITS = 12
"""A number with more digits counts no vertices."""


def read(file: GraphFile) -> Graph:
    graph, section, skipping = Graph(file), "", False
    for line in _LINE.finditer(file.text):
        text = line.group().lstrip()
        if not text or text.startswith("%"):
            continue
        if text.startswith("*"):
            section = text.split(maxsplit=1)[0].lower()
            skipping = section in _BESIDES or (skipping and section != "*network")
            if skipping:
                continue
            if section in ("*network", "*vertices") and graph.names:
                return graph
            if section == "*vertices":
                _vertices(graph, line)
        elif not skipping:
            _entry(graph, section, list(_FIELD.finditer(file.text, line.start(), line.end())))
    return graph


def _vertices(graph: Graph, line: re.Match[str]) -> None:
    """Makes the vertices that the header `*Vertices count` announces."""
    file, fields = graph.file, list(_FIELD.finditer(graph.file.text, line.start(), line.end()))
    if len(fields) < 2 or not fields[1].group().isdecimal():
        file.refuse("STM3403", "how many vertices?", line.span(), "write `*Vertices 3`")
    digits, at = fields[1].group().lstrip("0"), fields[1].span()
    if len(digits) > MOST_DIGITS:
        file.refuse("STM3413", f"a network of {digits[:MOST_DIGITS]}... vertices", at, "correct the number")
    count = int(digits or "0")
    graph.imply(count, "vertices", at)
    for number in range(1, count + 1):
        graph.declare(str(number), at)


def _entry(graph: Graph, section: str, fields: list[re.Match[str]]) -> None:
    """One line of a section."""
    at = (fields[0].start(), fields[-1].end())
    match section:
        case "*vertices":
            node = _vertex(graph, fields[0])
            if len(fields) > 1:
                graph.names[node] = fields[1].group().strip('"') or graph.names[node]
        case "*arcs" | "*arcslist":
            if len(fields) < 2:
                graph.file.refuse("STM3403", "an arc with one end", at, "a line is `tail head`, numbers of vertices")
            tail = _vertex(graph, fields[0])
            for head in fields[1 : 2 if section == "*arcs" else None]:
                graph.edge_or_known(tail, _vertex(graph, head), head.span())
        case "*edges" | "*edgeslist":
            help = "list arcs, `*Arcs`, where a direction is meant"
            graph.file.refuse("STM3404", "this edge has no direction", at, help)
        case "*network":
            pass
        case _:
            help = "give the network as `*Vertices` and `*Arcs`"
            graph.file.refuse("STM3403", f"a section `{section or 'without name'}` is not read", at, help)


def _vertex(graph: Graph, field: re.Match[str]) -> int:
    """The node of a vertex number, which may be padded with zeros."""
    return graph.known(field.group().lstrip("0") or field.group(), field.span())
