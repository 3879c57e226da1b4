"""BIF, the interchange format of Bayesian networks (version 0.15): an edge from each parent to its child, in the order written.

    network name { property author = "x; y"; }
    variable A { type discrete [ 2 ] { yes, no }; property position = (1, 2); }
    probability ( A | B, C ) { (yes, no) 0.1, 0.9; default 0.5, 0.5; }
    probability ( B ) { table 0.2, 0.8; }

Nodes are the variables in order of declaration. Tables are checked as far as their grammar goes and not used. `property` begins
a text that ends at a `;`, but not at one in quotes that are closed in their line; it may stand wherever a statement may, and
among the states of a variable. Commas are blanks but must not be doubled, and so is `|` behind the child, as the grammar of the
format has it: `( A B C )` is `( A | B, C )`. Names and states may be quoted, and be any words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

from stmlang.graph.readers.numerals import NUMBER
from stmlang.graph.readers.text import Graph, GraphFile, Place

_TOKEN = re.compile(
    r"""(?P<skip>//[^\r\n]*|/\*.*?\*/)
      | (?P<open>/\*)
      | "(?P<quoted>[^"]*)"
      | (?P<sign>[(){}|;,\[\]"])
      | (?P<word>[^\s(){}|;,\[\]"]+)""",
    re.DOTALL | re.VERBOSE,
)
_END_OR_QUOTE = re.compile(r'[;"]')
_QUOTED_IN_LINE = re.compile(r'[^"\r\n]*"')
_COUNT = re.compile(r"[0-9]{1,9}")
ENDS = "the file ends in the middle of this block"


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind` is a sign itself, `word` or `quoted`."""

    kind: str
    text: str
    at: Place


@dataclass
class _Words:
    """The words of a file, without comments and properties; the next one is looked at before it is taken."""

    file: GraphFile
    place: int = 0
    next: _Token | None = None

    def __post_init__(self) -> None:
        self.move()

    def move(self) -> None:
        """Looks at the next word."""
        while (token := _TOKEN.search(self.file.text, self.place)) is not None and token.lastgroup == "skip":
            self.place = token.end()
        if token is None:
            self.next = None
            return
        at, self.place = token.span(), token.end()
        match token.lastgroup:
            case "open":
                self.file.refuse("STM3403", "this `/*` is never closed", at)
            case "quoted":
                self.next = _Token("quoted", token.group("quoted"), at)
            case "word":
                self.next = _Token("word", token.group(), at)
            case _:
                if token.group() == '"':
                    self.file.refuse("STM3403", 'this `"` is never closed', at)
                self.next = _Token(token.group(), token.group(), at)

    def take(self, at: Place) -> _Token:
        """The next word. Refuses the end of the file, at the block that it leaves open."""
        token = self.next
        if token is None:
            self.file.refuse("STM3403", ENDS, at)
        self.move()
        return token

    def accept(self, sign: str) -> bool:
        """Takes the next word if it is this sign."""
        if self.next is None or self.next.kind != sign:
            return False
        self.move()
        return True

    def expect(self, expected: str, at: Place) -> _Token:
        """A sign, or a word of the language."""
        token = self.take(at)
        if token.kind == "quoted" or token.text != expected:
            self.wrong(token, f"`{expected}`")
        return token

    def name(self, what: str, at: Place) -> _Token:
        token = self.take(at)
        if token.kind not in ("word", "quoted"):
            self.wrong(token, what)
        return token

    def wrong(self, token: _Token, expected: str) -> NoReturn:
        self.file.refuse("STM3403", f"`{token.text}` where {expected} is expected", token.at)

    def property(self) -> bool:
        """Passes over a statement `property ... ;`, if one comes next."""
        token = self.next
        if token is None or token.kind != "word" or token.text != "property":
            return False
        end = _property_end(self.file.text, token.at[1])
        if end is None:
            self.file.refuse("STM3403", "this `property` is never closed", token.at, "end its text with `;`")
        self.place = end
        self.move()
        return True


def _property_end(text: str, start: int) -> int | None:
    """Behind the `;` that ends the text of a property: the first one outside of quotes that are closed in their line."""
    place = start
    while (match := _END_OR_QUOTE.search(text, place)) is not None:
        place = match.end()
        if match.group() == ";":
            return place
        closed = _QUOTED_IN_LINE.match(text, place)
        if closed is not None:
            place = closed.end()
    return None


@dataclass
class _Reader:
    """The variables so far, and the words of each family: the child and its parents."""

    graph: Graph
    words: _Words
    families: list[list[_Token]] = field(default_factory=list[list[_Token]])
    network: Place | None = None

    def network_block(self, at: Place) -> None:
        """`network [name] { properties }`."""
        if self.network is not None:
            earlier = (self.network, "the first one")
            self.graph.file.refuse("STM3403", "a second network begins here", at, "keep one in the file", earlier=earlier)
        self.network = at
        if self.words.next is not None and self.words.next.kind != "{":
            self.words.name("a name or `{`", at)
        self.words.expect("{", at)
        while not self.words.accept("}"):
            if not self.words.property():
                self.words.wrong(self.words.take(at), "`property` or `}`")

    def variable_block(self, at: Place) -> None:
        """`variable name { properties, type discrete [ count ] { states }; }`."""
        name = self.words.name("the name of a variable", at)
        self.graph.declare(name.text, name.at)
        self.words.expect("{", name.at)
        typed = False
        while not self.words.accept("}"):
            if self.words.property():
                continue
            token = self.words.take(name.at)
            if token.kind != "word" or token.text != "type" or typed:
                self.words.wrong(token, "`property` or `}`" if typed else "`type`, `property` or `}`")
            self.states(token.at)
            typed = True

    def states(self, at: Place) -> None:
        """`discrete [ count ] { states };`."""
        self.words.expect("discrete", at)
        self.words.expect("[", at)
        count = self.words.take(at)
        if count.kind != "word" or _COUNT.fullmatch(count.text) is None:
            self.words.wrong(count, "the number of states")
        self.words.expect("]", at)
        brace = self.words.expect("{", at)
        states = self.list("}", "a state", brace.at, properties=True)
        if len(states) != int(count.text):
            message = f"{int(count.text):,} states are announced, and {len(states):,} are listed"
            self.graph.file.refuse("STM3403", message, count.at, "correct the number or the list")
        self.words.expect(";", at)

    def list(self, end: str, what: str, at: Place, properties: bool = False) -> list[_Token]:
        """Words up to `end`, which is taken too, with single commas between them or none."""
        tokens: list[_Token] = []
        while not self.words.accept(end):
            if tokens and self.words.accept(","):
                tokens.append(self.words.name(what, at))
            elif not (properties and tokens and self.words.property()):
                tokens.append(self.words.name(f"{what} or `{end}`", at))
        return tokens

    def probability_block(self, at: Place) -> None:
        """`probability ( child | parents ) { properties, table numbers; default numbers; ( states ) numbers; }`."""
        bracket = self.words.expect("(", at)
        if self.words.accept(")"):
            self.graph.file.refuse("STM3403", "a probability of nothing", at, "write `probability ( child | parent, ... )`")
        child = self.words.name("the child", bracket.at)
        family = [child]
        if not self.words.accept("|") and self.words.accept(","):
            family.append(self.words.name("a parent", bracket.at))
        self.families.append(family + self.list(")", "a parent", bracket.at))
        self.words.expect("{", at)
        while not self.words.accept("}"):
            if self.words.property():
                continue
            token = self.words.take(at)
            if token.kind == "(":
                if not self.list(")", "a state", token.at):
                    self.graph.file.refuse("STM3403", "no states in these brackets", token.at)
            elif token.kind != "word" or token.text not in ("table", "default"):
                self.words.wrong(token, "`table`, `default`, `property`, `(` or `}`")
            for number in self.list(";", "a number", token.at):
                if NUMBER.fullmatch(number.text) is None:
                    self.words.wrong(number, "a number")


def read(file: GraphFile) -> Graph:
    reader = _Reader(Graph(file), _Words(file))
    while reader.words.next is not None:
        if reader.words.property():
            continue
        token = reader.words.take((0, 0))
        match token.text if token.kind == "word" else "":
            case "network":
                reader.network_block(token.at)
            case "variable":
                reader.variable_block(token.at)
            case "probability":
                reader.probability_block(token.at)
            case _:
                help = "save it as BIF: this is XML" if token.text.startswith("<") else None
                message = f"`{token.text}` where `network`, `variable` or `probability` is expected"
                file.refuse("STM3403", message, token.at, help)
    _families(reader.graph, reader.families)
    return reader.graph


def _families(graph: Graph, families: list[list[_Token]]) -> None:
    """Makes the edges, once all variables are known."""
    distribution_at: dict[int, Place] = {}
    for child, *parents in families:
        head = graph.known(child.text, child.at)
        if head in distribution_at:
            earlier = (distribution_at[head], "given here first")
            message = f"the distribution of `{child.text}` is given twice"
            graph.file.refuse("STM3409", message, child.at, "remove one", earlier=earlier)
        distribution_at[head] = child.at
        for parent in parents:
            graph.edge_once(graph.known(parent.text, parent.at), head, parent.at)
