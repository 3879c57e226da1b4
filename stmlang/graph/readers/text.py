"""A graph file while it is read: its text, the nodes and edges found so far, and complaints with their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from stmlang.graph.show import distinct
from stmlang.source.diagnostic import Diagnostic, Label, SpecError
from stmlang.source.span import SourceFile, Span
from stmlang.source.wording import quoted

if TYPE_CHECKING:
    from jaxtyping import Int64

MOST_IMPLIED = 100_000
"""A header may claim any number of nodes, and an arrow between groups makes an edge for each pair: so many more of them than a
file has characters are allowed."""


ADVICE = {
    "STM3403": 'correct the file here, or say what format it has: `from "file" as dot`',
    "STM3411": 'put nodes into it, or say what format it has: `from "file" as dot`',
}
"""What to do about a refusal that has no advice of its own."""

_QUOTED = re.compile(r"`([^`]*)`")

Place = tuple[int, int]
"""Offsets into the text of a file, the second exclusive."""


@dataclass(frozen=True, eq=False)
class ParsedGraph:
    """A graph as a reader hands it over: all edges lead from a node to a node.

    `called` names a node and `edge_at` is the place of an edge, None where the file is no text; both are only asked for what a
    complaint is about.
    """

    node_count: int
    tail: Int64[np.ndarray, " edges"]
    head: Int64[np.ndarray, " edges"]
    names: tuple[str, ...] | None
    called: Callable[[int], str]
    edge_at: Callable[[int], Place | None]


def named(
    names: Sequence[str],
    tail: Int64[np.ndarray, " edges"],
    head: Int64[np.ndarray, " edges"],
    edge_at: Callable[[int], Place | None],
) -> ParsedGraph:
    """A graph whose nodes have names; those that occur more than once are followed by their node's number counted from one."""
    shown = distinct(names)
    return ParsedGraph(len(shown), tail, head, shown, shown.__getitem__, edge_at)


@dataclass
class GraphFile:
    """The text of a graph file and where a spec names it, if one does. A binary file has its `content`, and no text.
    `advice` is given with complaints that have none of their own."""

    source: SourceFile
    named_at: Span | None
    content: bytes | None = None
    advice: Mapping[str, str] = field(default_factory=lambda: ADVICE)

    @property
    def text(self) -> str:
        return self.source.text

    def refuse(
        self,
        code: str,
        message: str,
        at: tuple[int, int] | None,
        help: str | None = None,
        notes: tuple[str, ...] = (),
        earlier: tuple[tuple[int, int], str] | None = None,
    ) -> NoReturn:
        """Raises SpecError at the offsets `at` of this file, None for the file as a whole; `earlier` is a second place and what
        it shows."""
        labels = [] if earlier is None else [Label(Span(self.source, *earlier[0]), earlier[1])]
        if self.named_at is not None:
            labels.append(Label(self.named_at, "the file is named here"))
        span = None if at is None else Span(self.source, *at)
        if span is None:
            notes = (*notes, f"the file is `{self.source.name}`")
        message = _QUOTED.sub(lambda match: quoted(match.group(1)), message)
        raise SpecError([Diagnostic(code, message, span, notes, help or self.advice.get(code), tuple(labels))])

    def line_at(self, number: int) -> tuple[int, int]:
        """The offsets of a line counted from one, without its line end."""
        number = min(max(number, 1), len(self.source.line_starts))
        start = self.source.line_starts[number - 1]
        return start, start + len(self.source.line(number))


@dataclass
class Graph:
    """Nodes and edges in the order in which a file gives them, each with its place in the text."""

    file: GraphFile
    names: list[str] = field(default_factory=list[str])
    number: dict[str, int] = field(default_factory=dict[str, int])
    node_at: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    tails: list[int] = field(default_factory=list[int])
    heads: list[int] = field(default_factory=list[int])
    edge_at: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    first: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    implied: int = 0

    def parsed(self) -> ParsedGraph:
        """All that has been found."""
        tail, head = np.asarray(self.tails, np.int64), np.asarray(self.heads, np.int64)
        return named(self.names, tail, head, self.edge_at.__getitem__)

    def imply(self, count: int, what: str, at: tuple[int, int]) -> None:
        """Allows for nodes or edges that the file stands for without writing each. Refuses too many (STM3413)."""
        self.implied += count
        if self.implied > MOST_IMPLIED + len(self.file.text):
            message = f"this makes {self.implied:,} {what} in a file of {len(self.file.text):,} characters"
            self.file.refuse("STM3413", message, at, "write them out, or correct the number")

    def node(self, key: str, at: tuple[int, int], name: str | None = None) -> int:
        """The number of the node `key`, which becomes a node if it is none yet; `name` is shown for it."""
        known = self.number.get(key)
        if known is None:
            known = self.number[key] = len(self.names)
            self.names.append(key if name is None else name)
            self.node_at.append(at)
        return known

    def declare(self, key: str, at: tuple[int, int], name: str | None = None) -> int:
        """A new node. Refuses a key that is taken (STM3409)."""
        known = self.number.get(key)
        if known is not None:
            earlier = (self.node_at[known], "declared here first")
            self.file.refuse("STM3409", f"`{key}` is declared twice", at, "rename or remove one of the two", earlier=earlier)
        return self.node(key, at, name)

    def known(self, key: str, at: tuple[int, int]) -> int:
        """The number of a node declared before. Refuses any other (STM3408)."""
        number = self.number.get(key)
        if number is None:
            self.file.refuse("STM3408", f"`{key}` is not declared in this file", at, "declare it, or correct its spelling")
        return number

    def edge(self, tail: int, head: int, at: tuple[int, int]) -> None:
        """An edge; parallel ones are kept."""
        self.tails.append(tail)
        self.heads.append(head)
        self.edge_at.append(at)

    def edge_once(self, tail: int, head: int, at: tuple[int, int]) -> None:
        """An edge. Refuses one that is there already (STM3406)."""
        before = self.first.setdefault((tail, head), len(self.tails))
        if before < len(self.tails):
            self.file.refuse(
                "STM3406",
                f"the edge `{self.names[tail]} -> {self.names[head]}` is given twice",
                at,
                "remove one; for parallel edges use a format that has them, such as DOT",
                earlier=(self.edge_at[before], "given here first"),
            )
        self.edge(tail, head, at)

    def edge_or_known(self, tail: int, head: int, at: tuple[int, int]) -> None:
        """An edge, unless it is there already."""
        if self.first.setdefault((tail, head), len(self.tails)) == len(self.tails):
            self.edge(tail, head, at)
