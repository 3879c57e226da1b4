"""Lines of an edge list as rows of cells: what separates them, quotes, comments.

What separates the cells is decided once for a file, by the first row that has several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from stmlang.graph.readers.columns import ends_of
from stmlang.graph.readers.text import GraphFile, Place
from stmlang.source.wording import listing

BLANKS = " "
"""The separator of a list whose names are separated by any number of blanks and tabulators."""


@dataclass(frozen=True)
class Style:
    """How a format writes its rows. `separators` are those that it may have, and `blanks` say whether else blanks separate; in
    a `table` a name may hold blanks, and a quoted one line ends, and there are no comments behind a row."""

    separators: tuple[str, ...]
    table: bool

    @property
    def blanks(self) -> bool:
        return not self.table


EDGE_LIST = Style((",", ";", "->"), False)
CSV = Style((",", ";", "\t"), True)
TSV = Style(("\t",), True)


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands between separators: its text without the quotes, and its place with them."""

    text: str
    at: Place
    quoted: bool = False


Row = list[Cell]

_LINE = re.compile(r"[^\r\n]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"[^ \t]+")
_BLANK, _BLANK_BESIDE_TABS = re.compile(r"[ \t]*"), re.compile(" *")
_SIGN = re.compile(r"[ \t]*(?:#|%|//)")
_REMARK = re.compile(r"(?:#+|%+|//+)(?=[ \t\r\n]|\Z)")
_REMARK_BEHIND = re.compile(r"[ \t](?:#+|%+|//+)(?=[ \t\r\n]|\Z)")
_QUOTE_OR_END = re.compile(r'["\r\n]')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_DATA = re.compile(r"\{[^\r\n]*\}[ \t]*(?=[\r\n]|\Z)")
_SPECIAL = re.compile(r'["#%{]|//')
_NAMES = {"\t": "a tabulator", ",": "a comma", ";": "a semicolon", "->": "`->`", BLANKS: "blanks"}


def separator_of(file: GraphFile, style: Style) -> str:
    """What separates the cells of a file. Refuses a first row in which two things could (STM3403)."""
    for start, end in _content_lines(file, style):
        bare = _QUOTED.sub(lambda quoted: "x" * len(quoted.group()), file.text[start:end])
        behind = None if style.table else _REMARK_BEHIND.search(bare)
        brace = bare.find("{") if bare.rstrip(" \t").endswith("}") else -1
        bare = bare[: min(len(bare) if behind is None else behind.start(), len(bare) if brace < 0 else brace)]
        separators = sorted((bare.index(sign), sign) for sign in style.separators if sign in bare)
        if len(separators) > 1:
            signs = listing([_NAMES[sign] for _, sign in separators], "and")
            place = start + separators[1][0]
            help = "put names that hold one of them into quotes"
            if "->" in bare and not style.table:
                help = "give each edge a line; for lines of DOT write `digraph {` and `}` around them and read them `as dot`"
            message = f"{signs} in one row: which of them separates the names?"
            file.refuse("STM3403", message, (place, place + len(separators[1][1])), help)
        if separators:
            return separators[0][1]
        if style.blanks and len(bare.split()) > 1:
            return BLANKS
    return BLANKS if style.blanks else style.separators[0]


def rows(file: GraphFile, style: Style, separator: str) -> Iterator[Row]:
    """The rows of a file that are neither empty nor comments, each with one cell at least."""
    for start, end in _content_lines(file, style):
        line = file.text[start:end]
        if _SPECIAL.search(line):
            row = _scanned(file, style, separator, start)
        elif separator == BLANKS:
            row = [Cell(word.group(), word.span()) for word in _WORD.finditer(file.text, start, end)]
        else:
            row = list(_split(line, separator, start))
        if row:
            yield row


def _content_lines(file: GraphFile, style: Style) -> Iterator[Place]:
    """The lines that are neither empty nor comments; where quotes hold line ends, several lines are one."""
    text, place = file.text, 0
    while place < len(text):
        match = _LINE.match(text, place)
        assert match is not None
        start, end = match.span()
        if match.group().strip(" \t") and not _is_comment(file, style, start, end):
            if style.table and '"' in match.group():
                end = _row_end(text, start)
            yield start, end
        after = _LINE_END.match(text, end)
        place = len(text) if after is None else after.end()


def _row_end(text: str, start: int) -> int:
    """Where a row ends whose quotes may hold line ends."""
    inside = False
    for sign in _QUOTE_OR_END.finditer(text, start):
        if sign.group() == '"':
            inside = not inside
        elif not inside:
            return sign.start()
    return len(text)


def _is_comment(file: GraphFile, style: Style, start: int, end: int) -> bool:
    """Whether a line is a comment. Refuses a row of a table that only looks like one (STM3403)."""
    sign = _SIGN.match(file.text, start, end)
    if sign is None:
        return False
    if style.table and any(separator in file.text[start:end] for separator in style.separators):
        word = file.text[sign.end() - 1 : end]
        if not re.match(r"[#%/](?:[#%/!\s]|$)", word) and not _names_columns(word[1:]):
            help = 'write a blank behind the sign for a comment, and quotes for a name: `"#1"`'
            file.refuse("STM3403", f"is `{' '.join(file.text[start:end].split())}` a comment or a row?", (start, end), help)
    return True


def _names_columns(text: str) -> bool:
    """Whether a comment could be the names of two columns that are the ends of edges."""
    return all(ends_of(re.split(r"[,;\t]", text)))


def _split(line: str, separator: str, start: int) -> Iterator[Cell]:
    """The cells of a line that holds neither quotes nor comments."""
    for cell in line.split(separator):
        text = cell.strip(" \t")
        begin = start + (len(cell) - len(cell.lstrip(" \t")) if text else 0)
        yield Cell(text, (begin, begin + len(text)))
        start += len(cell) + len(separator)


def _scanned(file: GraphFile, style: Style, separator: str, place: int) -> Row:
    """The cells of the row that begins here."""
    text, row = file.text, Row()
    ends = re.compile(r"[ \t\r\n]|\Z" if separator == BLANKS else rf"{re.escape(separator)}|[\r\n]|\Z")
    while True:
        place = _skipped(text, place, separator)
        if len(row) == 2 and _DATA.match(text, place):
            return row  # networkx writes what it knows of an edge behind its ends
        if _at_end(text, place) and (separator == BLANKS or not row):
            return row
        if not style.table and row and _REMARK.match(text, place):
            return row
        if text.startswith('"', place):
            cell, place = _quoted(file, style, place)
        else:
            cell, place = _bare(file, style, ends, place)
        row.append(cell)
        place = _skipped(text, place, separator)
        if _at_end(text, place) or (not style.table and _REMARK.match(text, place)):
            return row
        if separator == BLANKS:
            if place == cell.at[1]:
                _refuse_behind(file, place)
        elif text.startswith(separator, place):
            place += len(separator)
        else:
            _refuse_behind(file, place)


def _skipped(text: str, place: int, separator: str) -> int:
    """The place behind blanks, tabulators among them unless they separate."""
    match = (_BLANK_BESIDE_TABS if separator == "\t" else _BLANK).match(text, place)
    return place if match is None else match.end()


def _at_end(text: str, place: int) -> bool:
    return place >= len(text) or text[place] in "\r\n"


def _refuse_behind(file: GraphFile, place: int) -> NoReturn:
    help = "inside of quotes a quote is written twice"
    file.refuse("STM3403", f"`{file.text[place]}` behind a quoted name", (place, place + 1), help)


def _quoted(file: GraphFile, style: Style, place: int) -> tuple[Cell, int]:
    """A cell in quotes, and the place behind it."""
    match = _QUOTED.match(file.text, place)
    if match is None or (not style.table and re.search(r"[\r\n]", match.group())):
        help = "a name in quotes ends on its line, unless the file is read `as csv`" if match is not None else None
        file.refuse("STM3403", "this quote is never closed", (place, place + 1), help)
    return Cell(match.group(1).replace('""', '"'), match.span(), quoted=True), match.end()


def _bare(file: GraphFile, style: Style, ends: re.Pattern[str], place: int) -> tuple[Cell, int]:
    """A cell without quotes, and the place behind it."""
    match = ends.search(file.text, place)
    assert match is not None
    end = match.start()
    remark = _REMARK_BEHIND.search(file.text, place, end)
    if remark is not None:
        if style.table:
            help = "put the name into quotes, or the comment into a line of its own"
            file.refuse("STM3403", "is this a comment, or a part of the name?", (remark.start() + 1, end), help)
        end = remark.start()
    text = file.text[place:end].rstrip(" \t")
    quote = text.find('"')
    if quote >= 0:
        help = 'put the whole name into quotes, and write those inside twice: `"the ""a"" of b"`'
        file.refuse("STM3403", "a quote inside of a name", (place + quote, place + quote + 1), help)
    return Cell(text, (place, place + len(text))), end
