"""Tables and paragraphs for people, as wide as there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

Row = tuple[str, ...]

LEAST = 24
"""Columns of the terminal that a table's last column, of words, should have; with less its words stand below their row."""
DEEPER = 4
"""Blanks that the rest of a line is set in by."""


def columns(rows: Sequence[Row], left: Collection[int]) -> list[str]:
    """Rows as lines with aligned columns; numbers to the right, and no blanks at a line's end."""
    widths = _widths(rows)

    def cell(column: int, text: str) -> str:
        return text.ljust(widths[column]) if column in left else text.rjust(widths[column])

    return ["  ".join(cell(column, text) for column, text in enumerate(row)).rstrip() for row in rows]


def table(rows: Sequence[Row], left: Collection[int], width: int | None = None, spare: Sequence[int] = ()) -> list[str]:
    """The same in lines of at most `width`, where that can be: the columns `spare` are left out one after the other, and then
    the words of the last column broken. Row 0 is the heading; what was left out is named at the end."""
    if width is None or max(map(len, columns(rows, left))) <= width:
        return columns(rows, left)
    last, dropped = len(rows[0]) - 1, list[int]()
    least = min(LEAST, _widths(rows)[last])
    for column in spare:
        if _room(rows, dropped, width) >= least:
            break
        dropped.append(column)
    shown = [column for column in range(last) if column not in dropped]
    numbers = columns([tuple(row[column] for column in shown) for row in rows], [shown.index(at) for at in left if at in shown])
    room, start = _room(rows, dropped, width), max(map(len, numbers)) + 2
    lines: list[str] = []
    for number, (line, row) in enumerate(zip(numbers, rows, strict=True)):
        if room >= least:
            first, *continuation = textwrap.wrap(row[last], room, break_on_hyphens=False) or [""]
            lines += [f"{line:{start}}{first}".rstrip(), *(" " * start + continued for continued in continuation)]
        else:
            words = row[last] if number else ""
            indent = " " * DEEPER
            lines += [line, *textwrap.wrap(words, max(width, LEAST), initial_indent=indent, subsequent_indent=indent)]
    if dropped:
        names = ", ".join(rows[0][column] for column in sorted(dropped) if rows[0][column])
        lines += wrapped(f"({names}: in a wider window)", width)
    return lines


def wrapped(text: str, width: int | None, hang: int = DEEPER) -> list[str]:
    """The lines of a text, those that are longer than `width` broken between words, and what follows set in `hang` deeper."""
    lines = text.split("\n")
    if width is None:
        return lines
    shown: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        deeper = indent + " " * hang
        pieces = textwrap.wrap(
            line.strip(),
            max(width, LEAST + len(deeper)),
            initial_indent=indent,
            subsequent_indent=deeper,
            break_long_words=False,
            break_on_hyphens=False,
        )
        shown += [line] if len(line) <= width or not pieces else pieces
    return shown


def _widths(rows: Sequence[Row]) -> list[int]:
    return [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]


def _room(rows: Sequence[Row], dropped: Collection[int], width: int) -> int:
    """What is left for the last column."""
    widths = _widths(rows)
    return width - sum(widths[column] + 2 for column in range(len(widths) - 1) if column not in dropped)
