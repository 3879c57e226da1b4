"""GraphML: `<node id="a"/>` and `<edge source="a" target="b"/>`, in nested graphs too.

Nodes are called by their `id`; what `<data>` hold says nothing of the graph. Parallel edges are kept, and ports make no
difference. Edges must be directed, by `edgedefault` of their graph or by their own `directed`. A file has one graph, in which
others may be nested. The file is read by Python's expat parser with two safeguards: a document type is refused, so entities
can't be declared, neither the ones that grow a small file to any size nor the ones that name other files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from stmlang.graph.readers.text import Graph, GraphFile, Place

_INSIDE: dict[str, tuple[str, ...]] = {
    "": ("graphml",),
    "graphml": ("desc", "key", "data", "graph"),
    "key": ("desc", "default"),
    "graph": ("desc", "data", "node", "edge", "hyperedge", "locator"),
    "node": ("desc", "data", "port", "graph", "locator"),
    "edge": ("desc", "data", "graph"),
    "port": ("desc", "data", "port"),
}
"""The elements that may stand in each. What stands in others is of any kind."""
_ANYTHING = ("desc", "default", "data")
_SPACE = " "
"""Between the namespace of an element and its name."""
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_READ_AS_DECLARED = ("utf-8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1")


@dataclass
class _Handler:
    """What the parser has met: declared nodes, edges to resolve, the direction that each open graph gives its edges, and the
    open elements, of which nothing is listed below one that holds anything."""

    file: GraphFile
    parser: expat.XMLParserType
    graph: Graph
    directed: list[bool | None] = field(default_factory=list[bool | None])
    edges: list[tuple[str, str, Place]] = field(default_factory=list[tuple[str, str, Place]])
    path: list[str] = field(default_factory=lambda: [""])
    below: int = 0
    namespace: str | None = None
    graphs: int = 0

    def place(self, behind: int = 0) -> Place:
        """The place of what is being read, so many characters behind its start, up to the end of its tag or line."""
        start, end = self.file.line_at(self.parser.CurrentLineNumber)
        start = min(start + self.parser.CurrentColumnNumber + behind, end)
        closed = self.file.text.find(">", start, end)
        return start, end if closed < 0 else closed + 1

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _READ_AS_DECLARED and not self.file.text.isascii():
            message = f"the file says that it is written in `{encoding}`, and is read as UTF-8 or Latin-1"
            self.file.refuse("STM3403", message, self.place(), "save it as UTF-8")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self.below or self.path[-1] in _ANYTHING:
            self.below += 1
            return
        namespace, _, word = name.rpartition(_SPACE)
        if len(self.path) == 1:
            self.namespace = namespace
            if word != "graphml":
                self.file.refuse("STM3403", f"the outermost element is `{word}`, not `graphml`", self.place())
        if namespace != self.namespace or word not in _INSIDE.get(self.path[-1], ()):
            where = f"`<{self.path[-1]}>`" if len(self.path) > 1 else "the file"
            self.file.refuse("STM3403", f"`<{word}>` has no meaning in {where}", self.place())
        self.path.append(word)
        self.element(word, attributes)

    def element(self, word: str, attributes: dict[str, str]) -> None:
        """An element that stands where it may."""
        match word:
            case "graph":
                self.graphs += len(self.directed) == 0
                if self.graphs > 1:
                    help = "a topology is one graph: put each into a file of its own"
                    self.file.refuse("STM3403", "a second graph", self.place(), help)
                self.directed.append(self.default(attributes))
            case "node":
                self.graph.declare(self.needed(word, attributes, "id"), self.place())
            case "edge":
                self.edge(attributes)
            case "hyperedge":
                self.file.refuse("STM3403", "an edge here joins two nodes, a hyperedge any number", self.place())
            case "locator":
                self.file.refuse("STM3403", "what this stands for lies in another file", self.place(), "put it into this one")
            case _:
                pass

    def end(self, name: str) -> None:
        if self.below:
            self.below -= 1
            return
        self.path.pop()
        if name.rpartition(_SPACE)[2] == "graph":
            self.directed.pop()

    def text(self, text: str) -> None:
        """Characters outside of tags, which have a meaning in data only."""
        if not self.below and self.path[-1] not in _ANYTHING and text.strip():
            blanks = len(text) - len(text.lstrip())
            self.file.refuse("STM3403", f"`{text.strip()}` between the elements of a graph", self.place(blanks))

    def default(self, attributes: dict[str, str]) -> bool | None:
        """Whether a graph gives its edges a direction, None if it does not say."""
        edge_default = attributes.get("edgedefault")
        if edge_default not in (None, "directed", "undirected"):
            help = 'write `edgedefault="directed"`, or `"undirected"`'
            self.file.refuse("STM3403", f"`{edge_default}` where a direction is expected", self.place(), help)
        return None if edge_default is None else edge_default == "directed"

    def edge(self, attributes: dict[str, str]) -> None:
        own = attributes.get("directed")
        directed = self.directed[-1] if own is None else _TRUTH.get(own.strip())
        if own is not None and directed is None:
            self.file.refuse("STM3403", f"`{own}` where `true` or `false` is expected", self.place())
        if not directed:
            help = 'write `edgedefault="directed"` in `<graph>` where source and target are meant'
            self.file.refuse("STM3404", "this edge has no direction", self.place(), help)
        source, target = (self.needed("edge", attributes, end) for end in ("source", "target"))
        self.edges.append((source, target, self.place()))

    def needed(self, element: str, attributes: dict[str, str], name: str) -> str:
        value = attributes.get(name)
        if value is None:
            self.file.refuse("STM3403", f"`<{element}>` without `{name}`", self.place())
        return value

    def doctype(self, *_: object) -> None:
        end = self.place()[1]  # the parser has read on to the end of the name, or of what it declares
        start = max(self.file.text.rfind("<!DOCTYPE", 0, end), 0)
        help = "remove the declaration"
        self.file.refuse("STM3410", "a graph file may not declare a document type", (start, end), help)


def read(file: GraphFile) -> Graph:
    parser = expat.ParserCreate(namespace_separator=_SPACE)
    handler = _Handler(file, parser, Graph(file))
    parser.XmlDeclHandler = handler.declaration
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.StartDoctypeDeclHandler = handler.doctype
    parser.EntityDeclHandler = handler.doctype
    try:
        parser.Parse(file.text, True)
    except expat.ExpatError as error:
        at = file.line_at(error.lineno)
        at = (min(at[0] + error.offset, at[1]), at[1])
        file.refuse("STM3403", f"not well-formed XML: {expat.ErrorString(error.code)}", at)
    for source, target, at in handler.edges:
        handler.graph.edge(handler.graph.known(source, at), handler.graph.known(target, at), at)
    return handler.graph
