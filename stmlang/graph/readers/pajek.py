"""Pajek networks and projects (.net, .paj): the vertices and arcs of the one network of a file.

    *Vertices 3
    1 "first paper"
    *Arcs
    1 2 1.0
    *Arcslist
    1 2 3

Vertices are numbered from 1; those that are not listed are shown by their number. Coordinates, weights and what else says how a
network is drawn say nothing of the graph. Arcs that are repeated, as they are in many published files, count once. Undirected
sections (`*Edges`, `*Edgeslist`) and matrices are refused unless they are empty; so are times at which vertices and arcs are
there. Partitions, vectors, permutations, clusters and hierarchies beside the network are no part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stmlang.graph.readers.text import Graph, GraphFile, Place

_LINE = re.compile(r"[^\r\n]+")
_FIELD = re.compile(r'"[^"]*"|\S+')
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TIMES = re.compile(r"\[[0-9*].*")
_SECTIONS = ("*vertices", "*arcs", "*arcslist", "*edges", "*edgeslist", "*matrix", "*network")
_BESIDES = ("*partition", "*vector", "*permutation", "*cluster", "*hierarchy")
_DRAWN = (
    *("ellipse", "box", "diamond", "triangle", "cross", "empty", "house", "man", "woman", "circle"),
    *("s_size", "x_fact", "y_fact", "phi", "r", "q", "ic", "bc", "bw", "lc", "la", "lr", "lphi", "lp", "fos", "font", "hooks"),
    *("url", "c", "w", "p", "s", "a", "l", "h1", "h2", "a1", "a2", "k1", "k2", "ap"),
)
"""Words behind a vertex or an arc that say how it is drawn, each with its value."""

MOST_DIGITS = 12
"""A number with more digits counts no vertices."""


@dataclass
class _Reader:
    """The graph, the section being read, whether the network has begun, and what of a project is being skipped."""

    graph: Graph
    section: str = ""
    begun: bool = False
    beside: str = ""
    counted: bool = False
    listed: set[int] = field(default_factory=set[int])

    def header(self, line: re.Match[str]) -> None:
        """`*Section ...`."""
        file, fields = self.graph.file, _fields(self.graph.file, line)
        section, at = fields[0].group().lower(), fields[0].span()
        if section in _BESIDES:
            self.beside, self.counted = section, False
            return
        if self.beside and section == "*vertices" and not self.counted:
            self.counted = True  # of the partition
            return
        if section not in _SECTIONS:
            help = "give the network as `*Vertices` and `*Arcs`"
            file.refuse("STM3403", f"a section `{fields[0].group()}` is not read", at, help)
        if self.beside and section != "*network":
            help = "begin the network with a line `*Network name`"
            message = f"is `{fields[0].group()}` a part of the network or of the {self.beside[1:]} above?"
            file.refuse("STM3403", message, at, help)
        if self.begun and section in ("*network", "*vertices"):
            help = "a topology is one graph: put each network into a file of its own"
            file.refuse("STM3403", "a second network", at, help)
        self.section, self.beside = section, ""
        if section == "*vertices":
            self.begun = True
            _vertices(self.graph, line, fields)

    def entry(self, line: re.Match[str]) -> None:
        """One line of a section."""
        file, fields = self.graph.file, _fields(self.graph.file, line)
        at = (fields[0].start(), fields[-1].end())
        match self.section:
            case "*vertices":
                self.vertex(fields)
            case "*arcs" | "*arcslist":
                self.arcs(fields, at)
            case "*edges" | "*edgeslist":
                help = "list arcs, `*Arcs`, where a direction is meant"
                file.refuse("STM3404", "this edge has no direction", at, help)
            case _:
                help = "give the network as `*Vertices` and `*Arcs`"
                what = f"a line in the section `{self.section}`" if self.section else "a line before any section"
                file.refuse("STM3403", f"{what} is not read", at, help)

    def vertex(self, fields: list[re.Match[str]]) -> None:
        """`number label x y z shape ...`."""
        graph, node = self.graph, _vertex(self.graph, fields[0])
        if node in self.listed:
            earlier = (graph.node_at[node], "listed here first")
            message = f"vertex `{fields[0].group()}` is listed twice"
            graph.file.refuse("STM3409", message, fields[0].span(), "correct the number of one", earlier=earlier)
        self.listed.add(node)
        graph.node_at[node] = fields[0].span()
        if len(fields) > 1:
            graph.names[node] = fields[1].group().strip('"') or graph.names[node]
            _drawing(graph.file, fields[2:], 3, "put a label that holds blanks into quotes")

    def arcs(self, fields: list[re.Match[str]], at: Place) -> None:
        """`tail head weight ...`, or `tail head head ...` in lists."""
        graph = self.graph
        if len(fields) < 2:
            graph.file.refuse("STM3403", "an arc with one end", at, "a line is `tail head`, numbers of vertices")
        tail = _vertex(graph, fields[0])
        listed = self.section == "*arcslist"
        for head in fields[1:] if listed else fields[1:2]:
            graph.edge_or_known(tail, _vertex(graph, head), head.span())
        if not listed:
            _drawing(
                graph.file, fields[2:], 1, "a line of `*Arcs` is `tail head weight`; several heads are listed in `*Arcslist`"
            )


def read(file: GraphFile) -> Graph:
    reader = _Reader(Graph(file))
    for line in _LINE.finditer(file.text):
        text = line.group().lstrip()
        if not text or text.startswith("%"):
            continue
        if text.startswith("*"):
            reader.header(line)
        elif not reader.beside:
            reader.entry(line)
    return reader.graph


def _fields(file: GraphFile, line: re.Match[str]) -> list[re.Match[str]]:
    """What blanks separate. Refuses a quote without its partner (STM3403)."""
    fields = list(_FIELD.finditer(file.text, line.start(), line.end()))
    for each in fields:
        if each.group().startswith('"') and (len(each.group()) == 1 or not each.group().endswith('"')):
            help = "a label in quotes ends on its line"
            file.refuse("STM3403", "this quote is never closed", (each.start(), each.start() + 1), help)
    return fields


def _vertices(graph: Graph, line: re.Match[str], fields: list[re.Match[str]]) -> None:
    """Makes the vertices that the header `*Vertices count` announces; of two modes it gives the count of the first, too."""
    file, help = graph.file, "write `*Vertices 3`"
    if len(fields) < 2 or not fields[1].group().isdecimal():
        file.refuse("STM3403", "how many vertices?", line.span(), help)
    digits, at = fields[1].group().lstrip("0"), fields[1].span()
    if len(digits) > MOST_DIGITS:
        file.refuse("STM3413", f"a network of {digits[:MOST_DIGITS]}... vertices", at, "correct the number")
    if len(fields) > 2 and (len(fields) > 3 or not fields[2].group().isdecimal()):
        file.refuse("STM3403", f"`{fields[-1].group()}` behind the count of vertices", fields[-1].span(), help)
    count = int(digits or "0")
    graph.imply(count, "vertices", at)
    for number in range(1, count + 1):
        graph.declare(str(number), at)


def _vertex(graph: Graph, number: re.Match[str]) -> int:
    """The node of a vertex number, which may be padded with zeros."""
    return graph.known(number.group().lstrip("0") or number.group(), number.span())


def _drawing(file: GraphFile, fields: list[re.Match[str]], numbers: int, help: str) -> None:
    """Refuses what follows a vertex or an arc and is neither one of so many numbers nor how it is drawn (STM3403)."""
    for each in fields:
        if _TIMES.fullmatch(each.group()):
            message = f"`{each.group()}` are times, and a topology has none"
            file.refuse("STM3403", message, each.span(), "save the network of one time")
    count = 0
    while count < min(numbers, len(fields)) and _NUMBER.fullmatch(fields[count].group()):
        count += 1
    if count < len(fields) and fields[count].group().lower() not in _DRAWN:
        file.refuse("STM3403", f"`{fields[count].group()}` is not understood here", fields[count].span(), help)
