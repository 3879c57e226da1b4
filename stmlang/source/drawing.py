"""Text drawn for a terminal: lines of a source with places in them underlined, and words set under each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stmlang.source.columns import wrapped
from stmlang.source.span import Span

TAB = 4
"""Columns from one tab stop to the next."""
WIDTH = 120
"""Source lines longer than this many characters are shown in part, around the caret."""

Paint = Callable[[str, str], str]
"""Text and a colour to the text in that colour, or as it is."""
_BOLD, _FRAME, _LABEL = "1", "34", "36"


@dataclass(frozen=True)
class Mark:
    """A place to be underlined, with what stands behind the line under it."""

    span: Span
    message: str
    primary: bool


def painter(colour: bool) -> Paint:
    """What colours text by the codes of a terminal, if it is to be coloured."""
    return (lambda text, tone: f"\x1b[{tone}m{text}\x1b[0m") if colour else (lambda text, _: text)


def headline(label: str, message: str, tone: str, paint: Paint, width: int | None) -> list[str]:
    """What is wrong, behind a label in its colour."""
    first, *continued = wrapped(f"{label}: {printable(message)}", width)
    return [paint(label, tone) + paint(first.removeprefix(label), _BOLD), *(paint(line, _BOLD) for line in continued)]


def gutter_of(marks: Sequence[Mark]) -> int:
    """How many columns the numbers of the lines take."""
    return max((len(str(mark.span.file.position(mark.span.start)[0])) for mark in marks), default=1)


def remark(kind: str, text: str, gutter: int, paint: Paint, width: int | None) -> list[str]:
    """A note or the help, all its lines under the beginning of its words."""
    blanks = " " * gutter
    label = f"{blanks} = {kind}:"
    first, *later_lines = text.split("\n")
    lines = wrapped(f"{label} {first}", width, len(label) - gutter)
    for line in later_lines:
        lines += wrapped(" " * (len(label) + 1) + line, width, 0)
    return [blanks + paint(" = ", _FRAME) + paint(kind, _BOLD) + ":" + lines[0].removeprefix(label), *lines[1:]]


def printable(text: str, keep: str = "") -> str:
    """The text with every character that is not printable replaced, except those of `keep`."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in keep else "\ufffd" for character in text)


def underlined(marks: Sequence[Mark], gutter: int, tone: str, paint: Paint) -> list[str]:
    """All places in the order of the text, the file of the first mark first; marks next to each other share their line."""
    main = marks[0].span.file
    order = sorted(marks, key=lambda mark: (mark.span.file is not main, mark.span.file.name, mark.span.start, not mark.primary))
    line, column = main.position(marks[0].span.start)
    lines = [" " * gutter + paint("--> ", _FRAME) + f"{printable(main.name)}:{line}:{column}"]
    margin = " " * gutter + paint(" |", _FRAME)
    shown = (main, 0)
    lines.append(margin)
    for mark in order:
        file = mark.span.file
        number, start = file.position(mark.span.start)
        begin, end = file.bounds(number)
        window, prefix, width = _window(file.text, begin, end, mark.span)
        if file is not shown[0]:
            lines += [" " * gutter + paint("::: ", _FRAME) + f"{printable(file.name)}:{number}:{start}", margin]
        elif shown[1] and number > shown[1] + 1:
            lines.append(" " * gutter + paint(" :", _FRAME))
        if (file, number) != shown or end - begin > WIDTH:
            lines.append(paint(f"{number:>{gutter}} | ", _FRAME) + window)
        shown = (file, number)
        under = paint("^" * width, tone) if mark.primary else paint("-" * width, _LABEL)
        lines.append(f"{margin} {' ' * prefix}{under} {printable(mark.message)}".rstrip())
    return lines


def _window(text: str, begin: int, end: int, span: Span) -> tuple[str, int, int]:
    """The line of a text that begins and ends at two offsets, as shown; how many columns stand before its marked part, and how
    many columns that has, at least one. Of a long line no more is looked at than is shown: many errors may point into one."""
    start = min(span.start, end)
    stop = max(start, min(span.end, end))
    left, right = "", ""
    if end - begin > WIDTH:
        first = max(begin, min(start - WIDTH // 2, end - WIDTH))
        left, right = "…" if first > begin else "", "…" if first + WIDTH < end else ""
        begin, end = first, first + WIDTH
        stop = min(stop, end)
    before, marked, after = text[begin:start], text[start:stop], text[stop:end]
    shown = _expand(left + before, 0)
    prefix = _columns(shown)
    middle = _expand(marked, prefix)
    behind = _expand(after, prefix + _columns(middle))
    return shown + middle + behind + right, prefix, max(1, _columns(middle))


def _expand(text: str, column: int) -> str:
    """The text, which begins at a column, with tabs as blanks and nothing that a terminal would obey."""
    if "\t" not in text:
        return printable(text)
    expanded: list[str] = []
    for piece in text.split("\t"):
        expanded.append(printable(piece))
        column += _columns(expanded[-1])
        blanks = TAB - column % TAB
        expanded.append(" " * blanks)
        column += blanks
    return "".join(expanded[:-1])


def _columns(text: str) -> int:
    """How many terminal columns a text without tabs takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
