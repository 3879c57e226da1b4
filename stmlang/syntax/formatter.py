"""The canonical form of a text: same tree, same comments, one way to write it.

Every statement on a line of its own, four blanks of indentation a brace, one blank line between items, at most one inside
them, equal signs of neighbouring equations under each other, lines of up to 100 columns. Tokens are rearranged, never
rewritten, so that parentheses and numbers stay as the author wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, takewhile

from stmlang.source.span import SourceFile
from stmlang.syntax.layout import ITEM_KINDS, NAME_KINDS
from stmlang.syntax.lexer import Token
from stmlang.syntax.parser import parse_tokens
from stmlang.syntax.tree import Comment
from stmlang.syntax.wrapping import INDENT, WIDTH, flat, pieces, spaced, wrap

_OPENING = frozenset({"LPAR", "LSQB"})
_CLOSING = frozenset({"RPAR", "RSQB"})


def format_source(source: SourceFile) -> str:
    """The text in canonical form; formatting that again changes nothing. Raises `SpecError` if the text does not parse."""
    file, tokens = parse_tokens(source)
    entries = _Reader(source, tokens, file.comments).run()
    return "".join(f"{line}\n" for line in _lines(entries))


@dataclass
class _Row:
    """A line of a statement as it was written, or a comment between two of them."""

    tokens: list[Token]
    comment: str | None


@dataclass
class _Entry:
    """Some lines: a comment of its own, or a statement (up to and including an opening brace, or from a closing one)."""

    level: int
    tokens: list[Token]
    blank: bool  # whether a blank line stands before it
    comment: str | None = None  # all there is, or behind the statement
    rows: list[_Row] = field(default_factory=list["_Row"])  # the lines as written, if there are comments between them
    pad: int = 0  # further blanks before the `=`

    @property
    def begins_item(self) -> bool:
        return self.level == 0 and bool(self.tokens) and self.tokens[0].kind in ITEM_KINDS

    @property
    def simple(self) -> bool:
        """An item without a block."""
        return self.begins_item and self.tokens[-1].kind != "LBRACE"


class _Reader:
    """Cuts the tokens into entries and hands out the comments."""

    def __init__(self, source: SourceFile, tokens: list[Token], comments: Sequence[Comment]) -> None:
        self._text, self._tokens, self._comments = source.text, tokens, comments
        self._entries: list[_Entry] = []
        self._next_comment = 0
        self._level = 0
        self._end = 0  # of the last token or comment that was placed

    def run(self) -> list[_Entry]:
        current: list[Token] = []
        at = 0
        while (token := self._tokens[at]).kind != "$END":
            if token.kind == "SEPARATOR":
                self._add(current)
                current = []
            elif token.kind == "LBRACE" and (stop := self._one_line_graph(current, at)):
                current += self._tokens[at:stop]
                at = stop - 1
            elif token.kind == "LBRACE":
                self._add([*current, token])
                current = []
                self._level += 1
            elif token.kind == "RBRACE":
                self._add(current)
                self._take_comments(token.start)
                self._level -= 1
                current = [token]
            else:
                current.append(token)
            at += 1
        self._add(current)
        self._take_comments(len(self._text) + 1)
        return self._entries

    def _one_line_graph(self, current: list[Token], at: int) -> int:
        """Where a graph ends that was written on one line and has room there, else 0."""
        if not current or current[-1].kind != "GRAPH":
            return 0
        stop = next(k for k in range(at, len(self._tokens)) if self._tokens[k].kind == "RBRACE") + 1
        if any(mark in self._text[self._tokens[at].start : self._tokens[stop - 1].end] for mark in "\n\r#"):
            return 0
        width = len(flat(pieces([*current, *self._tokens[at:stop]]))) + len(" {")
        return stop if width + INDENT * self._level <= WIDTH else 0

    def _add(self, tokens: list[Token]) -> None:
        if not tokens:
            return
        self._take_comments(tokens[0].start)
        blank = self._blank_before(tokens[0].start)
        self._entries.append(_Entry(self._level, tokens, blank, rows=self._rows(tokens)))
        self._end = tokens[-1].end

    def _rows(self, tokens: list[Token]) -> list[_Row]:
        """The lines of a statement, or nothing where no comment stands between its tokens."""
        if self._next_comment == len(self._comments) or self._comments[self._next_comment].span.start > tokens[-1].start:
            return []
        rows = [_Row([tokens[0]], None)]
        for before, token in pairwise(tokens):
            for comment in self._until(token.start):
                if comment.own_line or rows[-1].comment is not None:
                    rows.append(_Row([], comment.text))
                else:
                    rows[-1].comment = comment.text
            if any(mark in self._text[before.end : token.start] for mark in "\n\r"):
                rows.append(_Row([], None))
            rows[-1].tokens.append(token)
        return rows

    def _until(self, offset: int) -> Iterator[Comment]:
        """The comments not yet placed that begin before an offset."""
        while self._next_comment < len(self._comments) and self._comments[self._next_comment].span.start < offset:
            yield self._comments[self._next_comment]
            self._next_comment += 1

    def _take_comments(self, offset: int) -> None:
        """Place the comments before an offset: behind the last statement or on lines of their own."""
        for comment in self._until(offset):
            last = self._entries[-1] if self._entries else None
            if not comment.own_line and last is not None and last.comment is None:
                last.comment = comment.text
            else:
                self._entries.append(_Entry(self._level, [], self._blank_before(comment.span.start), comment.text))
            self._end = comment.span.end

    def _blank_before(self, start: int) -> bool:
        between = self._text[self._end : start].replace("\r\n", "\n").replace("\r", "\n")
        return between.count("\n") > 1


# --- from entries to lines


def _lines(entries: list[_Entry]) -> list[str]:
    _settle_blanks(entries)
    _align(entries)
    rendered = [_render(entry) for entry in entries]
    _put_comments(entries, rendered)
    lines: list[str] = []
    for entry, own in zip(entries, rendered, strict=True):
        if entry.blank and lines:
            lines.append("")
        lines += own
    return lines


def _settle_blanks(entries: list[_Entry]) -> None:
    """One blank line between items, none next to the inside of a brace; one-line items of one kind may stand together."""
    for before, entry in pairwise(entries):
        opens = bool(before.tokens) and before.tokens[-1].kind == "LBRACE"
        closes = bool(entry.tokens) and entry.tokens[0].kind == "RBRACE"
        if opens or closes:
            entry.blank = False
        elif entry.level == 0 and before.level == 0 and before.tokens:
            together = before.simple and entry.simple and before.tokens[0].kind == entry.tokens[0].kind
            entry.blank = entry.blank or not together


def _runs(entries: list[_Entry], belongs: Callable[[_Entry], bool]) -> Iterator[list[_Entry]]:
    """Neighbouring entries of one level without a blank line or a comment line between them; only those that belong."""
    run: list[_Entry] = []
    last: _Entry | None = None
    for entry in entries:
        if last is None or entry.blank or not entry.tokens or entry.level != last.level:
            yield run
            run = []
        if belongs(entry):
            run.append(entry)
        last = entry
    yield run


def _align(entries: list[_Entry]) -> None:
    """Equal signs under each other. A line that is pinned to ports is long and stands aside."""
    for run in _runs(entries, lambda entry: _target_width(entry) is not None):
        widths = [_target_width(entry) or 0 for entry in run]
        widest = max(widths, default=0)
        for entry, width in zip(run, widths, strict=True):
            entry.pad = widest - width


def _target_width(entry: _Entry) -> int | None:
    """How wide the left side of an equation, a `topology` or a `def` is; None for what is not to be aligned."""
    tokens = entry.tokens
    if not tokens or entry.rows or tokens[0].kind not in NAME_KINDS | {"TOPOLOGY", "DEF"}:
        return None
    at = _equal_sign(tokens)
    if at is None or any(token.kind == "EQUAL" for token in tokens[:at]):
        return None
    return len(flat(pieces(tokens[:at])))


def _equal_sign(tokens: Sequence[Token]) -> int | None:
    """Where the `=` outside all brackets is."""
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.kind in ("LPAR", "LSQB")) - (token.kind in ("RPAR", "RSQB"))
        if depth == 0 and token.kind == "EQUAL":
            return at
    return None


def _render(entry: _Entry) -> list[str]:
    """The lines of an entry, without the comment behind it."""
    indent = INDENT * entry.level
    if not entry.tokens:
        return [" " * indent + (entry.comment or "")]
    if entry.rows:
        return _as_broken(entry, indent)
    line = pieces(entry.tokens)
    if entry.pad:
        sign = next(piece for piece in line if piece.kind == "EQUAL")
        sign.space += entry.pad
    return wrap(line, indent)


def _as_broken(entry: _Entry, indent: int) -> list[str]:
    """A statement with comments inside keeps its line breaks, so that they stay where they belong."""
    lines: list[str] = []
    remaining = iter(spaced(entry.tokens))
    depth = 0
    for row in entry.rows:
        texts = list(islice(remaining, len(row.tokens)))
        closing = sum(1 for _ in takewhile(lambda piece: piece.kind in _CLOSING, texts))
        levels = max(0 if closing else 1, depth - closing) if lines else 0
        text = " " * (indent + INDENT * levels) + flat(texts)
        depth += sum((piece.kind in _OPENING) - (piece.kind in _CLOSING) for piece in texts)
        if row.comment is not None:
            text += f"  {row.comment}" if texts else row.comment
        lines.append(text)
    return lines


def _put_comments(entries: list[_Entry], rendered: list[list[str]]) -> None:
    """Comments behind neighbouring statements stand under each other."""
    last_line = {id(entry): own for entry, own in zip(entries, rendered, strict=True)}
    for run in _runs(entries, lambda entry: bool(entry.tokens) and entry.comment is not None):
        column = max((len(last_line[id(entry)][-1]) for entry in run), default=0) + 2
        for entry in run:
            own = last_line[id(entry)]
            own[-1] = f"{own[-1]:<{column}}{entry.comment}"
