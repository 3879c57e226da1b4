"""Lines of numbers, as many in each line, read at once."""

from __future__ import annotations

import re
from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Literal

import numpy as np

from stmlang.graph.readers.text import GraphFile

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

Separator = Literal[",", " "]

_NUMBER = {
    "integer": re.compile(r"[ \t]*[+-]?[0-9]{1,18}[ \t]*"),
    "number": re.compile(r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*"),
}


def integers(
    file: GraphFile, separator: Separator, columns: int | None = None, first: int = 1, count: int | None = None
) -> Int64[np.ndarray, "lines columns"]:
    """The integers in `count` lines (None: all) from line `first` on, `columns` in each (None: as many as in the first).

    Raises SpecError (STM3403) at the first line that holds something else.
    """
    return _table(file, separator, columns, first, count, "integer")


def numbers(file: GraphFile, separator: Separator) -> Float64[np.ndarray, "lines columns"]:
    """The finite numbers in all lines, as many in each as in the first. Raises SpecError (STM3403) as `integers` does."""
    return _table(file, separator, None, 1, None, "number")


def line_count(file: GraphFile) -> int:
    """How many lines there are, without blank ones at the end."""
    return file.source.position(len(file.text.rstrip()))[0] if file.text.strip() else 0


def _table(
    file: GraphFile,
    separator: Separator,
    columns: int | None,
    first: int,
    count: int | None,
    kind: Literal["integer", "number"],
) -> np.ndarray:
    starts = (*file.source.line_starts, len(file.text))
    count = max(line_count(file) - first + 1, 0) if count is None else count
    dtype = np.int64 if kind == "integer" else np.float64
    if not count:
        return np.empty((0, columns or 0), dtype)
    columns = columns or file.text.count(separator, *file.line_at(first)) + 1
    text = file.text[starts[first - 1] : starts[first - 1 + count]]
    table = np.empty((0, 0), dtype)
    if text.strip():
        with suppress(ValueError):
            table = np.loadtxt(StringIO(text, newline=None), dtype, comments=None, delimiter=separator, ndmin=2)
    if table.shape != (count, columns) or not np.isfinite(table).all():
        _refuse(file, separator, columns, range(first, first + count), kind)
    return table


def _refuse(file: GraphFile, separator: Separator, columns: int, lines: range, kind: Literal["integer", "number"]) -> None:
    """Finds the first line that is wrong, and says how."""
    for line in lines:
        start, end = file.line_at(line)
        cells = file.text[start:end].split(separator)
        for cell in cells:
            if not _NUMBER[kind].fullmatch(cell) or (kind == "number" and not np.isfinite(float(cell))):
                what = f"`{cell.strip()}`" if cell.strip() else "nothing"
                message = f"{what} where {'an' if kind == 'integer' else 'a'} {kind} is expected"
                file.refuse("STM3403", message, (start, start + len(cell)))
            start += len(cell) + 1
        if len(cells) != columns:
            message = f"the count of {kind}s in this line is {len(cells)}, not {columns}"
            file.refuse("STM3403", message, file.line_at(line))
    raise AssertionError("numpy refuses a table of numbers")
