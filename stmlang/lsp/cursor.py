"""Where in the grammar an offset lies, by the tokens before it: the statement, the brackets that are open, what comes last."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from stmlang.lsp.document import Document
from stmlang.syntax.layout import NAME_KINDS, OPERATORS
from stmlang.syntax.lexer import Token

_OPENING = {"LPAR": "RPAR", "LSQB": "RSQB"}
_ENDS = frozenset({"SEPARATOR", "LBRACE", "RBRACE"})
_WORDS = NAME_KINDS | {"PRIMED", "TOPOLOGY", "SCAN", "DEF", "USE", "SETTING", "GRAPH"}
_GOES_ON_AFTER = OPERATORS | {"EQUAL", "COMMA", "ATMOST", "DOT"}


@dataclass(frozen=True)
class Bracket:
    """A bracket that is open: its kind, the place of its token, and what stands in it before the offset."""

    kind: str
    opened: Token
    head: Token | None
    """The name before it, if one is."""
    inside: tuple[Token, ...]

    @property
    def argument(self) -> int:
        """How many commas stand in it before the offset, not counting those in brackets of its own."""
        depth, commas = 0, 0
        for token in self.inside:
            depth += (token.kind in _OPENING) - (token.kind in _OPENING.values())
            commas += token.kind == "COMMA" and depth == 0
        return commas

    @property
    def current(self) -> tuple[Token, ...]:
        """The tokens of the argument or entry at hand."""
        depth, start = 0, 0
        for place, token in enumerate(self.inside):
            depth += (token.kind in _OPENING) - (token.kind in _OPENING.values())
            if token.kind == "COMMA" and depth == 0:
                start = place + 1
        return self.inside[start:]


@dataclass(frozen=True)
class Cursor:
    """An offset in a text. `word` is the token that it stands in or right behind, which is being written; `statement` are the
    tokens of the statement before that, and `brackets` those that are open in it, the innermost last."""

    offset: int
    word: Token | None
    statement: tuple[Token, ...]
    brackets: tuple[Bracket, ...]
    braces: int
    """How many braces are open: 0 among items, 1 in a scan."""
    graph: bool
    """Whether the innermost of them is that of a graph."""

    @property
    def start(self) -> int:
        """Where what is being written begins."""
        return self.offset if self.word is None else self.word.start

    @property
    def last(self) -> Token | None:
        """The token before what is being written, in the same statement."""
        return self.statement[-1] if self.statement else None

    @property
    def bracket(self) -> Bracket | None:
        return self.brackets[-1] if self.brackets else None

    @property
    def equal(self) -> int | None:
        """Where in the statement the `=` outside of all brackets is."""
        depth = 0
        for place, token in enumerate(self.statement):
            depth += (token.kind in _OPENING) - (token.kind in _OPENING.values())
            if token.kind == "EQUAL" and depth == 0:
                return place
        return None


def cursor_at(document: Document, offset: int) -> Cursor | None:
    """What there is around an offset; None inside of a comment or a string, where nothing is completed."""
    if any(_in_comment(document, comment.span.start, offset) for comment in document.parsed.file.comments):
        return None
    tokens = document.parsed.tokens
    before = [token for token in tokens[: bisect_left(tokens, offset, key=lambda token: token.start)] if token.text]
    word = before[-1] if before and before[-1].end >= offset and before[-1].kind in _WORDS else None
    if before and before[-1].kind == "STRING" and before[-1].end > offset:
        return None
    if word is not None:
        before.pop()
    start = next((place + 1 for place in range(len(before) - 1, -1, -1) if before[place].kind in _ENDS), 0)
    statement = tuple(before[start:])
    brackets = _open(statement)
    if statement and not brackets and _line_ended(document, statement[-1], offset if word is None else word.start):
        statement = ()
    braces: list[bool] = []
    for previous, token in zip([None, *before], before, strict=False):
        if token.kind == "LBRACE":
            braces.append(previous is not None and previous.kind == "GRAPH")
        elif token.kind == "RBRACE" and braces:
            braces.pop()
    return Cursor(offset, word, statement, brackets, len(braces), bool(braces) and braces[-1])


def _in_comment(document: Document, start: int, offset: int) -> bool:
    """Whether an offset is behind the mark of a comment, on its line."""
    return start < offset and not any(mark in document.source.text[start:offset] for mark in "\r\n")


def _line_ended(document: Document, last: Token, start: int) -> bool:
    """Whether a line or a `;` ends the statement between its last token and an offset: no separator stands before a `}`."""
    between = document.source.text[last.end : start]
    return ";" in between or (last.kind not in _GOES_ON_AFTER and any(mark in between for mark in "\r\n"))


def _open(statement: tuple[Token, ...]) -> tuple[Bracket, ...]:
    stack: list[int] = []
    for place, token in enumerate(statement):
        if token.kind in _OPENING:
            stack.append(place)
        elif token.kind in _OPENING.values() and stack:
            stack.pop()
    return tuple(
        Bracket(
            statement[place].kind,
            statement[place],
            statement[place - 1] if place and statement[place - 1].kind in NAME_KINDS else None,
            statement[place + 1 :],
        )
        for place in stack
    )
