"""Flow directions in an ASCII grid: ESRI's header, GRASS's, or none, and then the values row by row.

    ncols 3               north: 4928010        1 2 4
    nrows 2               south: 4913670        0 1 0
    xllcorner 0.5         east: 609000
    yllcorner -3          west: 590010
    cellsize 30           rows: 2
    NODATA_value -9999    cols: 3
    1 2 4                 1 2 *
    0 1 -9999             0 1 0

Letters of either case are one in keywords. Only the sizes and the value of cells without data are used; the other entries are
checked to be numbers. In ESRI's header `dx` and `dy` may stand for `cellsize`; in GRASS's, cells without data are `*` or what
`null:` says. With a header values may be broken into lines anywhere; without one each line is a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.readers.flow import EMPTY, ESRI, GRASS, WRONG, Convention, advice, coded
from stmlang.graph.readers.numerals import NUMBER, number
from stmlang.graph.readers.text import GraphFile, Place

if TYPE_CHECKING:
    from jaxtyping import UInt8

_WORD = re.compile(r"\S+", re.ASCII)
_LINE = re.compile(r"[^\r\n]*\S[^\r\n]*")
_ENTRY = re.compile(r"[ \t]*([A-Za-z_]\w*)([ \t]*:[ \t]*|[ \t]+)(\S+)[ \t]*(?=[\r\n]|\Z)|[ \t]*([A-Za-z_][^\s]*)", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,12}")
_DEGREES = re.compile(r"[0-9]{1,3}(?::[0-9]{1,2}){0,2}(?:\.[0-9]*)?[NSEW]", re.IGNORECASE)
_ESRI_KEYS = ("ncols", "nrows", "xllcorner", "yllcorner", "xllcenter", "yllcenter", "cellsize", "dx", "dy", "nodata_value")
_GRASS_KEYS = ("north", "south", "east", "west", "rows", "cols", "null", "type")
_NO_HEADER = ("nan", "inf")
"""Words that are values, wherever they stand."""


@dataclass(frozen=True)
class _Header:
    """The entries of a header by their keywords in small letters, each with the place of its value, and where they end."""

    grass: bool
    entries: dict[str, Place]
    end: int


def codes(file: GraphFile, convention: Convention | None) -> UInt8[np.ndarray, "rows columns"]:
    """The codes in an ASCII grid. Where no convention is given, that of the header's program is meant."""
    header = _header(file)
    convention = convention or (GRASS if header.grass else ESRI)
    words = file.text[header.end :].split()
    shape = _announced(file, header, len(words)) if header.entries else _rows(file, header.end)
    empty, nulls = _empty(file, header, convention)
    # Grids hold few different words. An infinite number means nothing.
    meant = {word: float(word) if NUMBER.fullmatch(word) else inf for word in set(words)}
    values = np.fromiter(map(meant.__getitem__, words), np.float64, len(words))
    grid = coded(values, convention, empty)
    for null in nulls:
        grid[np.fromiter((word == null for word in words), bool, len(words))] = EMPTY
    wrong = np.flatnonzero(grid == WRONG)
    if wrong.size:
        cell = int(wrong[0])
        help = advice(convention, np.unique(values[grid != EMPTY]).tolist())
        message = f"`{words[cell]}` is no flow direction of {convention.name}"
        file.refuse("STM3403", message, value_at(file, cell), help, (convention.rule,))
    return grid.reshape(shape)


def value_at(file: GraphFile, cell: int) -> Place:
    """The place of a value."""
    return next(islice(_WORD.finditer(file.text, _header(file).end), cell, None)).span()


def _entries(file: GraphFile) -> Iterator[re.Match[str]]:
    """The lines at the beginning that are entries of a header. Refuses what begins like one and is none."""
    start = 0
    while start <= len(file.text):
        line = _LINE.search(file.text, start)
        entry = None if line is None else _ENTRY.match(file.text, line.start())
        if line is None or entry is None or (entry[1] or entry[4]).lower() in _NO_HEADER:
            return
        if entry[1] is None:
            help = f"a header has lines such as `ncols 3`; keywords are {', '.join((*_ESRI_KEYS, *_GRASS_KEYS))}"
            file.refuse("STM3403", f"`{line.group().strip()}` is no line of a header", line.span(), help)
        yield entry
        start = entry.end()


def _header(file: GraphFile) -> _Header:
    """The header. Refuses keywords that are not known, doubled, or of another header than the first."""
    entries: dict[str, Place] = {}
    grass, end = False, 0
    for entry in _entries(file):
        key, at = entry[1].lower(), entry.span(1)
        if not entries:
            grass = ":" in entry[2]
        keys = _GRASS_KEYS if grass else _ESRI_KEYS
        if key not in keys or (":" in entry[2]) != grass:
            help = f"keywords are {', '.join(f'{keyword}:' if grass else keyword for keyword in keys)}"
            file.refuse("STM3403", f"`{entry[1]}` is no keyword of this header", at, help)
        if key in entries:
            file.refuse("STM3403", f"`{entry[1]}` stands here twice", at, "remove one", (), (entries[key], "the first one"))
        entries[key], end = entry.span(3), entry.end()
    for keyword, excluded in (("xllcorner", "xllcenter"), ("yllcorner", "yllcenter"), ("cellsize", "dx"), ("cellsize", "dy")):
        if keyword in entries and excluded in entries:
            earlier = (entries[keyword], "the other one")
            file.refuse(
                "STM3403", f"`{keyword}` and `{excluded}` exclude one another", entries[excluded], "remove one", (), earlier
            )
    _check_numbers(file, grass, entries)
    return _Header(grass, entries, end)


def _check_numbers(file: GraphFile, grass: bool, entries: dict[str, Place]) -> None:
    """Refuses places and sizes that are no numbers."""
    for key, at in entries.items():
        text = file.text[slice(*at)]
        if key in ("ncols", "nrows", "rows", "cols", "nodata_value", "null"):
            continue
        if key == "type":
            if text.lower() not in ("int", "float", "double"):
                file.refuse("STM3403", f"`{text}` where `int`, `float` or `double` is expected", at)
        elif not (grass and _DEGREES.fullmatch(text)):
            number(file, text, f"value of `{key}`", at)


def _empty(file: GraphFile, header: _Header, convention: Convention) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """What cells without data hold: numbers, and words."""
    at = header.entries.get("null" if header.grass else "nodata_value")
    nulls = ("*",) if header.grass else ()
    if at is None:
        return (() if header.grass else convention.empty), nulls
    text = file.text[slice(*at)]
    if text in nulls:
        return (), nulls
    return (number(file, text, "value of cells without data", at),), nulls


def _announced(file: GraphFile, header: _Header, value_count: int) -> tuple[int, int]:
    """The shape that a header announces. Refuses another number of values."""
    sizes: list[int] = []
    for key in ("rows", "cols") if header.grass else ("nrows", "ncols"):
        at = header.entries.get(key)
        if at is None:
            colon = ":" if header.grass else ""
            file.refuse("STM3403", f"this header has no `{key}`", file.line_at(1), f"write `{key}{colon} 3`")
        if _COUNT.fullmatch(file.text[slice(*at)]) is None:
            file.refuse("STM3403", f"`{file.text[slice(*at)]}` is no number of cells", at)
        sizes.append(int(file.text[slice(*at)]))
    rows, columns = sizes
    if rows * columns != value_count:
        _refuse_count(file, header, rows, columns, value_count)
    return rows, columns


def _refuse_count(file: GraphFile, header: _Header, rows: int, columns: int, value_count: int) -> None:
    """Refuses too few or too many values: at the first line of another length, if lines are rows, or where they end."""
    message = f"the header announces {rows:,} x {columns:,} cells, and there are {value_count:,}"
    announced = (header.entries["cols" if header.grass else "ncols"], "announced here")
    lines = [(line.span(), len(line.group().split())) for line in _LINE.finditer(file.text, header.end)]
    if len(lines) == rows:
        for at, size in lines:
            if size != columns:
                note = f"this line has {size:,} values, not {columns:,}"
                file.refuse("STM3403", message, at, "correct the line or the header", (note,), announced)
    if value_count > rows * columns:
        at = value_at(file, rows * columns)
        file.refuse("STM3403", message, at, "remove what follows from here on, or correct the header", (), announced)
    end = len(file.text.rstrip())
    file.refuse("STM3403", message, (end, end), "the file may have been cut short", (), announced)


def _rows(file: GraphFile, start: int) -> tuple[int, int]:
    """The shape of a grid without a header. Refuses rows of different lengths."""
    sizes = [len(line.group().split()) for line in _LINE.finditer(file.text, start)]
    for place, size in enumerate(sizes):
        if size != sizes[0]:
            line = next(islice(_LINE.finditer(file.text, start), place, None))
            file.refuse("STM3403", f"a row of {size} cells where the first has {sizes[0]}", line.span())
    return len(sizes), sizes[0] if sizes else 0
