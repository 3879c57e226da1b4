"""GraphML: `<node id="a"/>` and `<edge source="a" target="b"/>`, in nested graphs too; data are skipped.

Parallel edges are kept. Edges must be directed, by `edgedefault` of their graph or by their own `directed`. The file is read by
Python's expat parser with two safeguards: a document type is refused, so entities can't be declared, neither the ones that
grow a small file to any size nor the ones that name other files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from stmlang.graph.readers.text import Graph, GraphFile

Place = tuple[int, int]


@dataclass
class _Handler:
    """What the parser has met: declared nodes, edges to resolve, and the direction that each open graph gives its edges."""

    file: GraphFile
    parser: expat.XMLParserType
    graph: Graph
    directed: list[bool] = field(default_factory=list[bool])
    edges: list[tuple[str, str, Place]] = field(default_factory=list[tuple[str, str, Place]])
    root: str | None = None

    def here(self) -> Place:
        return self.file.line_at(self.parser.CurrentLineNumber)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rsplit(":", 1)[-1]
        self.root = self.root or name
        match name:
            case "graph":
                self.directed.append(attributes.get("edgedefault") == "directed")
            case "node":
                self.graph.declare(self.needed(name, attributes, "id"), self.here())
            case "edge":
                self.edge(attributes)
            case "hyperedge":
                self.file.refuse("STM3403", "an edge here joins two nodes, a hyperedge any number", self.here())
            case _:
                pass

    def end(self, name: str) -> None:
        if name.rsplit(":", 1)[-1] == "graph":
            self.directed.pop()

    def edge(self, attributes: dict[str, str]) -> None:
        directed = attributes.get("directed", "true" if self.directed and self.directed[-1] else "false")
        if directed != "true":
            help = 'write `edgedefault="directed"` in `<graph>` where source and target are meant'
            self.file.refuse("STM3404", "this edge has no direction", self.here(), help)
        source, target = (self.needed("edge", attributes, end) for end in ("source", "target"))
        self.edges.append((source, target, self.here()))

    def needed(self, element: str, attributes: dict[str, str], name: str) -> str:
        value = attributes.get(name)
        if value is None:
            self.file.refuse("STM3403", f"`<{element}>` without `{name}`", self.here())
        return value

    def doctype(self, *_: object) -> None:
        self.file.refuse("STM3410", "a graph file may not declare a document type", self.here(), "remove the declaration")


def read(file: GraphFile) -> Graph:
    parser = expat.ParserCreate()
    handler = _Handler(file, parser, Graph(file))
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.StartDoctypeDeclHandler = handler.doctype
    parser.EntityDeclHandler = handler.doctype
    try:
        parser.Parse(file.text, True)
    except expat.ExpatError as error:
        at = file.line_at(error.lineno)
        at = (min(at[0] + error.offset, at[1]), at[1])
        file.refuse("STM3403", f"not well-formed XML: {expat.ErrorString(error.code)}", at)
    if handler.root != "graphml":
        file.refuse("STM3403", f"the outermost element is `{handler.root}`, not `graphml`", file.line_at(1))
    for source, target, at in handler.edges:
        handler.graph.edge(handler.graph.known(source, at), handler.graph.known(target, at), at)
    return handler.graph
