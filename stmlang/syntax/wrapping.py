"""One statement as canonical lines: spacing between its tokens, and breaks where it is wider than a line.

A statement that is too wide is broken at its outermost operators, which then begin lines, and inside brackets: first the
contents move to lines of their own, then each entry does. All of these are places where the grammar lets a line go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stmlang.syntax.layout import NAME_KINDS, OPERATORS
from stmlang.syntax.lexer import Token

WIDTH = 100
INDENT = 4
_DEEPEST = 60
"""Brackets on lines that begin at this column or later are not broken: it would not help."""

_ROUND = frozenset({"LPAR", "LSQB"})
_OPENING = _ROUND | {"LBRACE"}
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})
_OPERAND_ENDS = NAME_KINDS | {"PRIMED", "NUMBER", "RPAR", "RSQB"}
_PREFIXES = frozenset({"unary", "DOT"}) | _ROUND
_TIGHT_BEFORE = frozenset({"RPAR", "RSQB", "COMMA", "DOT", "SEPARATOR"})


@dataclass
class Piece:
    """A token, or a bracket with all that stands in it, and how many blanks stand before it if it does not begin a line.

    `kind` is the token's, except that a sign which stands before its operand is `unary`; a bracket has that of its opening.
    `flat` is the whole on one line. `inside` is what may be broken: not the braces of a graph.
    """

    kind: str
    flat: str
    space: int
    inside: list[Piece] | None = None


def spaced(tokens: Sequence[Token]) -> list[Piece]:
    """The tokens of a statement with the blanks between them."""
    row: list[Piece] = []
    previous, first = "", tokens[0].kind if tokens else ""
    for token in tokens:
        kind = _kind(token, previous, first)
        row.append(Piece(kind, ";" if kind == "SEPARATOR" else token.text, _space(kind, previous, first)))
        previous = kind
    return row


def pieces(tokens: Sequence[Token]) -> list[Piece]:
    """The tokens of a statement, spaced and grouped by brackets."""
    levels: list[list[Piece]] = [[]]
    for piece in spaced(tokens):
        if piece.kind not in _CLOSING or len(levels) == 1:
            levels[-1].append(piece)
            if piece.kind in _OPENING:
                levels.append([])
            continue
        inside = levels.pop()
        bracket = levels[-1][-1]
        lead = inside[0].space if inside else 0
        bracket.flat += " " * lead + flat(inside) + " " * piece.space + piece.flat
        bracket.inside = inside if piece.kind != "RBRACE" else None
    return levels[0]


def flat(row: Sequence[Piece]) -> str:
    """The pieces on one line."""
    return "".join([" " * piece.space + piece.flat if at else piece.flat for at, piece in enumerate(row)])


def wrap(row: Sequence[Piece], indent: int) -> list[str]:
    """The lines of a statement that begins at a column."""
    writer = _Writer(indent)
    writer.sequence(row, indent + INDENT, 0)
    return [*writer.lines, writer.line]


def _kind(token: Token, previous: str, first: str) -> str:
    if token.kind in ("PLUS", "MINUS") and (first == "SETTING" or previous not in _OPERAND_ENDS):
        return "unary"
    return token.kind


def _space(kind: str, previous: str, first: str) -> int:
    """Blanks between two neighbours of a statement that begins with a token of kind `first`."""
    if not previous or previous in _PREFIXES or kind in _TIGHT_BEFORE:
        return 0
    if kind == "LSQB" and previous in _OPERAND_ENDS:
        return 0
    if kind == "LPAR" and previous in NAME_KINDS:
        return 1 if first == "USE" else 0
    return 1


class _Writer:
    """Lines under construction; `line` is the last one."""

    def __init__(self, indent: int) -> None:
        self.lines: list[str] = []
        self._begin(indent)

    def _begin(self, indent: int) -> None:
        self.indent, self.line, self.fresh = indent, " " * indent, True

    def _break(self, indent: int) -> None:
        self.lines.append(self.line.rstrip())
        self._begin(indent)

    def _put(self, piece: Piece, text: str) -> None:
        self.line += text if self.fresh else " " * piece.space + text
        self.fresh = False

    def _room(self, width: int) -> bool:
        return len(self.line) + width <= WIDTH

    def sequence(self, row: Sequence[Piece], indent: int, reserve: int) -> None:
        """Put pieces; lines that this begins start at `indent`, and `reserve` columns stay free behind the last piece."""
        text = flat(row)
        lead = 0 if self.fresh or not row else row[0].space
        if self._room(lead + len(text) + reserve):
            if row:
                self._put(row[0], text)
            return
        for kinds in (("COMMA",), ("PLUS", "MINUS"), ("STAR", "SLASH")):
            if any(piece.kind in kinds for piece in row[:-1]):
                self._fill(_split(row, kinds), indent, reserve)
                return
        self._in_order(row, reserve)

    def _fill(self, segments: list[Sequence[Piece]], indent: int, reserve: int) -> None:
        """Put as many segments on each line as fit."""
        for at, segment in enumerate(segments):
            last = at == len(segments) - 1
            needed = segment[0].space + len(flat(segment)) + (reserve if last else 0)
            if at and not self.fresh and not self._room(needed):
                self._break(indent)
            # An operator that begins a line stays with its operand, whatever the operand's width.
            head = 1 if segment[0].kind in OPERATORS and len(segment) > 1 else 0
            if head:
                self._put(segment[0], segment[0].flat)
            self.sequence(segment[head:], indent, reserve if last else 0)

    def _in_order(self, row: Sequence[Piece], reserve: int) -> None:
        """Put pieces between which no break is allowed: break brackets instead, late ones first."""
        width_from = [0] * (len(row) + 1)
        for at in range(len(row) - 1, -1, -1):
            width_from[at] = width_from[at + 1] + row[at].space + len(row[at].flat)
        last = max((at for at, piece in enumerate(row) if piece.inside), default=-1)
        for at, piece in enumerate(row):
            alone, following = piece.space + len(piece.flat), width_from[at + 1] + reserve
            fits = self._room(alone + following) or (at < last and self._room(alone))
            if piece.inside and not fits and self.indent < _DEEPEST:
                self._bracket(piece)
            else:
                self._put(piece, piece.flat)

    def _bracket(self, piece: Piece) -> None:
        """Put a bracket with its contents on lines of their own: on one, or each entry on one."""
        outer, inside = self.indent, piece.inside or []
        self._put(piece, piece.flat[0])
        closing = piece.flat[-1]
        entries = [inside]
        if outer + INDENT + len(flat(inside)) > WIDTH:
            entries = _split(inside, ("COMMA",))
        for entry in entries:
            self._break(outer + INDENT)
            self.sequence(entry, outer + 2 * INDENT if len(entries) > 1 else outer + INDENT, 0)
        self._break(outer)
        self.line += closing
        self.fresh = False


def _split(row: Sequence[Piece], kinds: tuple[str, ...]) -> list[Sequence[Piece]]:
    """The pieces cut at some kinds: commas stay with what is before them, operators with what is behind."""
    segments: list[Sequence[Piece]] = []
    start = 0
    for at, piece in enumerate(row):
        if piece.kind in kinds:
            cut = at if piece.kind in OPERATORS else at + 1
            if cut > start:
                segments.append(row[start:cut])
            start = cut
    segments.append(row[start:])
    return [segment for segment in segments if segment]
