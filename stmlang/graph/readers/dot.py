"""DOT digraphs: nodes, chains of edges, subgraphs as groups of nodes; attributes and ports are skipped.

    digraph name { a [label = "x"]; a -> b -> { c d }; subgraph cluster { e } }

Nodes come in the order in which they are first named. Parallel edges are kept, unless the graph is `strict`. Identifiers are
names, numbers, quoted strings (joined by `+`) and `<html>`; comments are `//`, `/* */` and lines that start with `#`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stmlang.graph.readers.text import Graph, GraphFile

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\r\n]*|/\*.*?\*/|(?m:^)\#[^\r\n]*)
      | (?P<sign>->|--|[{}\[\]=;,:+])
      | (?P<id>[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?))
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | (?P<html><)""",
    re.DOTALL | re.VERBOSE,
)
_ANGLE = re.compile(r"[<>]")
_WORDS = ("graph", "digraph", "subgraph", "strict", "node", "edge")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is `id`, `end`, or the sign or keyword itself."""

    kind: str
    text: str
    at: Place


@dataclass
class _Group:
    """An open brace: the nodes named in it, and the left side of the arrow before it, if there is one."""

    at: Place
    tails: list[int] | None
    nodes: dict[int, None] = field(default_factory=dict[int, None])


@dataclass
class _Reader:
    """The tokens, the open braces outermost first, and the left side of an arrow that waits for its right side."""

    graph: Graph
    tokens: Iterator[_Token]
    token: _Token
    strict: bool = False
    groups: list[_Group] = field(default_factory=list[_Group])
    tails: list[int] | None = None

    def advance(self) -> _Token:
        """Returns the token and goes to the next one. An `end` stays."""
        passed = self.token
        self.token = next(self.tokens, self.token)
        return passed

    def accept(self, *kinds: str) -> bool:
        found = self.token.kind in kinds
        if found:
            self.advance()
        return found

    def expect(self, kind: str) -> _Token:
        if self.token.kind != kind:
            shown = "the end of the file" if self.token.kind == "end" else f"`{self.token.text}`"
            wanted = "a name" if kind == "id" else f"`{kind}`"
            self.graph.file.refuse("STM3403", f"{shown} where {wanted} is expected", self.token.at)
        return self.advance()

    def header(self) -> None:
        """`[strict] digraph [name] {`."""
        self.strict = self.accept("strict")
        if self.token.kind == "graph":
            help = "write `digraph` and `->` where directions are meant"
            self.graph.file.refuse("STM3404", "this graph has no directions", self.token.at, help)
        self.expect("digraph")
        self.accept("id")
        self.groups.append(_Group(self.expect("{").at, None))

    def statement(self) -> None:
        """A node, a brace, an attribute, or what stands between them."""
        kind = self.token.kind
        if self.tails is not None and kind not in ("id", "{", "subgraph"):
            self.expect("id")
        if kind in ("graph", "node", "edge"):
            self.advance()
            self.attributes()
        elif kind in ("{", "subgraph"):
            if self.accept("subgraph"):
                self.accept("id")
            self.groups.append(_Group(self.expect("{").at, self.tails))
            self.tails = None
        elif kind == "}":
            at = self.advance().at
            group = self.groups.pop()
            if self.groups:
                self.groups[-1].nodes |= group.nodes
                self.tails = group.tails
                self.side(list(group.nodes), (group.at[0], at[1]))
        elif not self.accept(";", ","):
            self.name()

    def name(self) -> None:
        """`name = value` or a node, with its port."""
        found = self.expect("id")
        if self.tails is None and self.accept("="):
            self.expect("id")
            return
        while self.accept(":"):
            self.expect("id")
        node = self.graph.node(found.text, found.at)
        self.groups[-1].nodes[node] = None
        self.side([node], found.at)

    def side(self, nodes: list[int], at: Place) -> None:
        """Ends one side of an arrow: makes the edges from the side before, if any, and sees whether an arrow follows."""
        self.graph.imply(len(self.tails or ()) * len(nodes), "edges", at)
        add = self.graph.edge_or_known if self.strict else self.graph.edge
        for tail in self.tails or ():
            for head in nodes:
                add(tail, head, at)
        self.tails = None
        if self.token.kind == "--":
            help = "write `->` where a direction is meant"
            self.graph.file.refuse("STM3404", "this edge has no direction", self.token.at, help)
        if self.accept("->"):
            self.tails = nodes
        else:
            self.attributes()

    def attributes(self) -> None:
        """Skips `[...]`, any number of times."""
        while self.token.kind == "[":
            opened = self.advance()
            while not self.accept("]"):
                if self.advance().kind == "end":
                    self.graph.file.refuse("STM3403", "this bracket is never closed", opened.at)


def read(file: GraphFile) -> Graph:
    tokens = _joined(file, _tokens(file))
    reader = _Reader(Graph(file), tokens, next(tokens))
    reader.header()
    while reader.groups:
        if reader.token.kind == "end":
            file.refuse("STM3403", "this brace is never closed", reader.groups[-1].at)
        reader.statement()
    return reader.graph


def _tokens(file: GraphFile) -> Iterator[_Token]:
    """The tokens of the text, then `end` once."""
    text, place = file.text, 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            file.refuse("STM3403", f"`{text[place]}` is not understood here", (place, place + 1))
        start, place = found.span()
        match found.lastgroup:
            case "sign":
                yield _Token(found.group(), found.group(), (start, place))
            case "id":
                word = found.group()
                yield _Token(word.lower() if word.lower() in _WORDS else "id", word, (start, place))
            case "quoted":
                content = found.group("quoted").replace("\\\r\n", "").replace("\\\n", "").replace('\\"', '"')
                yield _Token("id", content, (start, place))
            case "html":
                place = _html_end(file, start)
                yield _Token("id", text[start:place], (start, place))
            case _:
                pass
    yield _Token("end", "", (len(text), len(text)))


def _html_end(file: GraphFile, start: int) -> int:
    """Where the bracket `<` at `start` is closed."""
    depth, place = 1, start + 1
    while depth:
        angle = _ANGLE.search(file.text, place)
        if angle is None:
            file.refuse("STM3403", "this `<` is never closed", (start, start + 1))
        depth, place = depth + (1 if angle.group() == "<" else -1), angle.end()
    return place


def _joined(file: GraphFile, tokens: Iterator[_Token]) -> Iterator[_Token]:
    """Joins `"a" + "b"`."""
    held, parts = next(tokens), list[str]()
    for token in tokens:
        if held.kind == "id" and token.kind == "+":
            following = next(tokens, token)
            if following.kind != "id":
                file.refuse("STM3403", "a name is expected after `+`", token.at)
            parts.append(following.text)
            held = _Token("id", held.text, (held.at[0], following.at[1]))
            continue
        yield _Token(held.kind, held.text + "".join(parts), held.at) if parts else held
        held, parts = token, []
    yield held
