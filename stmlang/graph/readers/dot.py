"""DOT digraphs, read by the grammar of Graphviz: nodes, chains of edges, lists of nodes, subgraphs as ends of edges.

    digraph name { a [label = "x"]; a, b -> { c d } -> e; subgraph cluster { f } }

Nodes come in the order in which they are first named, the edges of an arrow between groups from the first tail to all heads,
then from the next; the nodes of a subgraph in the order in which the file names them first. Parallel edges are kept, unless the
graph is `strict` or they have the same `key`. Ports and all other attributes are read and say nothing of the graph. A subgraph
that is opened again in the same graph or subgraph is the same one. Identifiers are names, numbers, quoted strings and `<html>`,
both joined by `+`, all the same to what they name; comments are `//`, `/* */` and `#` to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn

from stmlang.graph.readers.text import Graph, GraphFile, Place

_LETTER = "A-Za-z_\x80-\U0010ffff"
_TOKEN = re.compile(
    rf"""(?P<skip>[\ \t\r\n\ufeff]+|//[^\r\n]*|/\*.*?\*/|\#[^\r\n]*)
      | (?P<sign>->|--|[{{}}\[\]=;,:+])
      | (?P<name>[{_LETTER}][{_LETTER}0-9]*)
      | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?P<rest>[.{_LETTER}]?)
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | (?P<html><)""",
    re.DOTALL | re.VERBOSE,
)
_ANGLE = re.compile(r"[<>]")
_ESCAPE = re.compile(r'\\(?:(?P<kept>\\)|(?P<quote>")|\r?\n)')
_WORDS = ("graph", "digraph", "subgraph", "strict", "node", "edge")


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is `id`, `end`, or the sign or keyword itself; what `joins` may be followed by `+`."""

    kind: str
    text: str
    at: Place
    joins: bool = False


@dataclass
class _Group:
    """A subgraph: the nodes named in it, and the subgraphs in it that have a name, which may be opened again."""

    nodes: set[int] = field(default_factory=set[int])
    inner: dict[str, _Group] = field(default_factory=dict[str, "_Group"])


@dataclass
class _Brace:
    """An open brace: its subgraph, the nodes that this opening has named, and the sides so far of the statement being read.

    What is opened again has more nodes than this opening names; only these are new to the subgraph around it.
    """

    at: Place
    group: _Group
    named: set[int]
    sides: list[_Side] = field(default_factory=list["_Side"])


@dataclass(frozen=True)
class _Side:
    """One side of an arrow: a list of nodes, or a subgraph with the nodes that its opening has named."""

    nodes: list[int] | set[int]
    at: Place
    named: set[int] | None = None

    def ordered(self) -> Sequence[int]:
        return sorted(self.nodes) if isinstance(self.nodes, set) else self.nodes


@dataclass
class _Reader:
    """The tokens, the open braces outermost first, and the edges by ends and `key`."""

    graph: Graph
    tokens: Iterator[_Token]
    token: _Token
    strict: bool = False
    braces: list[_Brace] = field(default_factory=list[_Brace])
    keyed: set[tuple[int, int, str]] = field(default_factory=set[tuple[int, int, str]])

    def advance(self) -> _Token:
        """Returns the token and goes to the next one. An `end` stays."""
        passed = self.token
        self.token = next(self.tokens, self.token)
        return passed

    def accept(self, kind: str) -> bool:
        accepted = self.token.kind == kind
        if accepted:
            self.advance()
        return accepted

    def ended(self) -> bool:
        return self.token.kind == "end"

    def expect(self, kind: str, help: str | None = None) -> _Token:
        if self.token.kind != kind:
            self.unexpected("a name" if kind == "id" else f"`{kind}`", help)
        return self.advance()

    def unexpected(self, expected: str, help: str | None = None) -> NoReturn:
        """Refuses the token."""
        word = self.token.text
        shown = "the end of the file" if self.ended() else f"`{word}`"
        if help is None and self.token.kind in _WORDS:
            help = f'`{word}` is a word of DOT: write `"{word}"` where it is a name'
        self.graph.file.refuse("STM3403", f"{shown} where {expected} is expected", self.token.at, help)

    def header(self) -> None:
        """`[strict] digraph [name] {`."""
        self.strict = self.accept("strict")
        if self.token.kind == "graph":
            help = "write `digraph` and `->` where directions are meant"
            self.graph.file.refuse("STM3404", "this graph has no directions", self.token.at, help)
        self.expect("digraph")
        self.accept("id")
        self.braces.append(_Brace(self.expect("{").at, _Group(), set()))

    def step(self) -> None:
        """One side of an arrow, the opening or closing of a subgraph, or a statement about attributes."""
        kind, sides = self.token.kind, self.braces[-1].sides
        if kind == "id":
            self.names()
        elif kind in ("{", "subgraph"):
            self.open()
        elif sides:
            self.expect("id")
        elif kind == "}":
            self.close()
        elif kind in ("graph", "node", "edge"):
            self.advance()
            if self.token.kind != "[":
                help = f'`{kind} [...]` gives defaults; write `"{kind}"` for a node of that name'
                self.unexpected("`[`", help)
            self.attributes()
            self.accept(";")
        else:
            self.unexpected("a node, an edge or `}`")

    def open(self) -> None:
        """`subgraph name {`, where the two words may lack."""
        named, start = None, self.token.at
        if self.accept("subgraph") and self.token.kind == "id":
            named = self.advance()
        opened = self.expect(
            "{", None if named is None else f"`subgraph {named.text} {{}}` stands for one that is given elsewhere"
        )
        around = self.braces[-1].group.inner
        group = _Group() if named is None else around.setdefault(named.text, _Group())
        self.braces.append(_Brace((start[0], opened.at[1]), group, group.nodes if named is None else set()))

    def close(self) -> None:
        """`}`: the subgraph becomes a side of the statement around it."""
        brace, end = self.braces.pop(), self.advance().at[1]
        if brace.named is not brace.group.nodes and len(self.braces) > 1:
            # A subgraph that has a name keeps its nodes, so that a node is held once for each of them around it.
            self.graph.imply(len(brace.named), "nodes of subgraphs", (brace.at[0], end))
        if self.braces:
            self.side(_Side(brace.group.nodes, (brace.at[0], end), brace.named))

    def names(self) -> None:
        """`name = value`, or nodes separated by commas, each with its port."""
        brace, nodes, start = self.braces[-1], list[int](), self.token.at[0]
        while True:
            name = self.expect("id")
            if self.token.kind == "=" and not nodes and not brace.sides:
                self.advance()
                self.expect("id")
                self.accept(";")
                return
            end = name.at[1]
            for _ in range(2):
                if self.accept(":"):
                    end = self.expect("id").at[1]
            nodes.append(self.graph.node(name.text, name.at))
            if not self.accept(","):
                break
        if len(self.braces) > 1:
            brace.named.update(nodes)
            brace.group.nodes.update(nodes)
        self.side(_Side(nodes, (start, end)))

    def side(self, side: _Side) -> None:
        """Adds a side to the statement, which ends unless an arrow follows."""
        sides = self.braces[-1].sides
        sides.append(side)
        if self.token.kind == "--":
            help = "write `->` where a direction is meant"
            self.graph.file.refuse("STM3404", "this edge has no direction", self.token.at, help)
        if self.accept("->"):
            return
        key = self.attributes()
        self.accept(";")
        for before, after in pairwise(sides):
            self.edges(before, after, key)
        for each in sides:
            if each.named is not None:
                self.absorb(each.named)
        sides.clear()

    def edges(self, before: _Side, after: _Side, key: str | None) -> None:
        """The edges of one arrow."""
        at = (before.at[0], after.at[1])
        self.graph.imply(len(before.nodes) * len(after.nodes), "edges", at)
        if not before.nodes or not after.nodes:
            return
        heads = after.ordered()
        for tail in before.ordered():
            for head in heads:
                if self.strict:
                    self.graph.edge_or_known(tail, head, at)
                elif key is None or (tail, head, key) not in self.keyed:
                    self.graph.edge(tail, head, at)
                    if key is not None:
                        self.keyed.add((tail, head, key))

    def absorb(self, named: set[int]) -> None:
        """Gives the nodes of a subgraph that was closed to the one around it."""
        brace = self.braces[-1]
        if len(self.braces) == 1:
            return
        if brace.named is brace.group.nodes:
            small, large = sorted((brace.named, named), key=len)
            large |= small  # the smaller set goes into the larger one, or deep nests would take for ever
            brace.named = brace.group.nodes = large
        else:
            brace.named |= named
            brace.group.nodes |= named

    def attributes(self) -> str | None:
        """Reads `[name = value, ...]`, any number of times. Returns the value of `key`, the last one."""
        key = None
        while self.token.kind == "[":
            opened = self.advance()
            while not self.accept("]"):
                if self.ended():
                    self.graph.file.refuse("STM3403", "this bracket is never closed", opened.at)
                name = self.expect("id")
                self.expect("=", f"an attribute is `{name.text} = value`")
                value = self.expect("id")
                key = value.text if name.text == "key" else key
                _ = self.accept(";") or self.accept(",")
        return key


def read(file: GraphFile) -> Graph:
    tokens = _joined(file, _tokens(file))
    reader = _Reader(Graph(file), tokens, next(tokens))
    reader.header()
    while reader.braces:
        if reader.ended() and not reader.braces[-1].sides:
            file.refuse("STM3403", "this brace is never closed", reader.braces[-1].at)
        reader.step()
    if reader.token.kind in ("graph", "digraph", "strict"):
        file.refuse("STM3403", "a second graph", reader.token.at, "a topology is one graph: put each into a file of its own")
    if not reader.ended():
        help = "remove it, or the brace before it if the graph goes on"
        file.refuse("STM3403", f"`{reader.token.text}` behind the end of the graph", reader.token.at, help)
    return reader.graph


def _tokens(file: GraphFile) -> Iterator[_Token]:
    """The tokens of the text, then `end` once."""
    text, place = file.text, 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            _refuse_character(file, place)
        start, place = token.span()
        word = token.group()
        match token.lastgroup:
            case "sign":
                yield _Token(word, word, (start, place))
            case "name":
                yield _Token(word.lower() if word.lower() in _WORDS else "id", word, (start, place))
            case "rest":
                if token.group("rest"):
                    help = "put it into quotes if it is one name"
                    file.refuse("STM3403", f"is `{word}` one name, or a number and something else?", (start, place), help)
                yield _Token("id", word, (start, place))
            case "quoted":
                content = _ESCAPE.sub(_unescaped, token.group("quoted"))
                yield _Token("id", content, (start, place), joins=True)
            case "html":
                place = _html_end(file, start)
                yield _Token("id", text[start + 1 : place - 1], (start, place), joins=True)
            case _:
                pass
    yield _Token("end", "", (len(text), len(text)))


def _unescaped(escape: re.Match[str]) -> str:
    """What an escape in a quoted string stands for: quotes lose theirs, backslashes keep it, line ends vanish."""
    return "\\\\" if escape.group("kept") else escape.group("quote") or ""


def _refuse_character(file: GraphFile, place: int) -> NoReturn:
    """Refuses what begins no token."""
    text = file.text
    for opening, what in (('"', "string"), ("/*", "comment")):
        if text.startswith(opening, place):
            file.refuse("STM3403", f"this {what} is never closed", (place, place + len(opening)))
    help = "put names into quotes that hold other characters than letters, digits and `_`"
    file.refuse("STM3403", f"`{text[place]}` is not understood here", (place, place + 1), help)


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
    held, pieces = next(tokens), list[str]()
    for token in tokens:
        if token.kind == "+":
            following = next(tokens, token)
            if not held.joins or not following.joins:
                help = '`+` joins two quoted strings: `"a" + "b"`'
                wrong = following.at if held.joins else token.at
                file.refuse("STM3403", "a name is expected after `+`" if held.joins else "`+` behind no string", wrong, help)
            pieces.append(following.text)
            held = _Token("id", held.text, (held.at[0], following.at[1]), joins=True)
            continue
        yield _Token(held.kind, held.text + "".join(pieces), held.at, held.joins) if pieces else held
        held, pieces = token, []
    yield held
