"""BENCH netlists (ISCAS-85, ISCAS-89), in either spelling of the gates: an edge from each signal to each gate that reads it.

    INPUT(a)
    OUTPUT(z)
    z = NAND(a, b)

Nodes are the inputs and gates in the order they are defined; edges come gate by gate, in the order of a gate's inputs. A gate
that reads a signal twice has two edges from it. `OUTPUT` lines mark nodes and make none. Flip-flops close cycles, so
sequential circuits are refused with the cycle.
"""

from __future__ import annotations

import re

from stmlang.graph.readers.text import Graph, GraphFile

_LINE = re.compile(r"[^\r\n]+")
_PORT = re.compile(r"\s*(INPUT|OUTPUT)\s*\(\s*([^\s()=,]+)\s*\)\s*$", re.IGNORECASE)
_GATE = re.compile(r"\s*([^\s()=,]+)\s*=\s*([A-Za-z_]\w*)(?:\s+0x[0-9a-fA-F]+)?\s*\(([^()]*)\)\s*$")
_SIGNAL = re.compile(r"[^\s,]+")


def read(file: GraphFile) -> Graph:
    return gates(file)[0]


def gates(file: GraphFile) -> tuple[Graph, list[str]]:
    """The graph, and what each node is: `INPUT`, or the name of its gate in upper case."""
    graph, kinds = Graph(file), list[str]()
    reads: list[tuple[int, list[re.Match[str]]]] = []
    marked: list[tuple[str, tuple[int, int]]] = []
    for line in _LINE.finditer(file.text):
        comment = file.text.find("#", line.start(), line.end())
        start, end = line.start(), line.end() if comment < 0 else comment
        if not file.text[start:end].strip():
            continue
        if (port := _PORT.match(file.text, start, end)) is not None:
            if port.group(1).upper() == "INPUT":
                graph.declare(port.group(2), port.span(2))
                kinds.append("INPUT")
            else:
                marked.append((port.group(2), port.span(2)))
        elif (gate := _GATE.match(file.text, start, end)) is not None:
            node = graph.declare(gate.group(1), gate.span(1))
            kinds.append(gate.group(2).upper())
            reads.append((node, list(_SIGNAL.finditer(file.text, *gate.span(3)))))
        else:
            help = "a line is `INPUT(a)`, `OUTPUT(z)`, `z = NAND(a, b)` or a comment after `#`"
            file.refuse("STM3403", "this is no line of a netlist", (start, end), help)
    for node, signals in reads:
        for signal in signals:
            graph.edge(graph.known(signal.group(), signal.span()), node, signal.span())
    for name, at in marked:
        graph.known(name, at)
    return graph, kinds
