"""Edge lists: a row for each edge, its tail and its head; a name alone in its row is a node without edges.

    # who passes on to whom          tail,head,weight
    a b                              "New York",Boston,0.5
    b "c d"                          Boston,Chicago,0.25

What separates the names is the same in all rows: blanks, or one of `,`, `;` and `->`. The first row may name the columns; then
there may be others than the two ends, which say nothing of the graph. An edge given twice is refused: the format can't say
whether it is a slip or two parallel edges. So is all that could be read in two ways.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn

from stmlang.graph.readers.columns import TYPE, UNDECIDED, columns_named, ends_of
from stmlang.graph.readers.rows import BLANKS, EDGE_LIST, Cell, Row, Style, rows, separator_of
from stmlang.graph.readers.text import Graph, GraphFile, Place

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SIGNS = re.compile(r"[-=<>|:~→←↔⇒⇐⇔]+")
_UNDIRECTED = ("--", "<->", "<=>", "↔", "⇔")
_COMMENT = re.compile(r"#|%|//")
_SPACE = re.compile(r"\s")
_DOUBTFUL = re.compile(r"[^\w.]")
"""In a file without edges, a sign in a name may have been meant to separate two of them."""


@dataclass(frozen=True)
class _Columns:
    """The columns of the ends and of the type, and how many columns there are."""

    tail: int
    head: int
    type: int | None
    count: int


@dataclass
class _List:
    """The graph, how the file is written, and its first lone name that may be two."""

    graph: Graph
    style: Style
    separator: str
    columns: _Columns | None
    doubtful: Cell | None = None

    def row(self, row: Row) -> None:
        """An edge, or a node alone."""
        if len(row) == 1 and not self.style.table and self.separator in (BLANKS, "->"):
            self.name(row[0])
            if not row[0].quoted and _DOUBTFUL.search(row[0].text):
                self.doubtful = self.doubtful or row[0]
                if "|" in row[0].text:
                    self.refuse_doubtful(row[0])
            return
        tail, head = self.ends(row)
        self.graph.edge_once(self.name(tail), self.name(head), _place(row))

    def ends(self, row: Row) -> tuple[Cell, Cell]:
        """The cells of the tail and of the head. Refuses a row of other length."""
        file, columns = self.graph.file, self.columns
        if columns is not None:
            if len(row) != columns.count:
                message = (
                    f"the count of cells in this row is {len(row)}, not {columns.count} as in the row that names the columns"
                )
                file.refuse("STM3403", message, _place(row), "put names into quotes that hold a separator")
            if columns.type is not None and row[columns.type].text.strip().lower() == "undirected":
                file.refuse("STM3404", "this edge has no direction", row[columns.type].at, "write `Directed` where it has one")
            return row[columns.tail], row[columns.head]
        if len(row) < 2:
            help = "an edge has two ends; where blanks separate the names, `as edgelist`, a node may stand alone"
            file.refuse("STM3403", "one cell in a row of two", _place(row), help)
        if len(row) > 2:
            for cell in () if self.style.table else row:
                self.refuse_signs(cell)
            help = "give each edge a row of its own"
            if self.separator != "->":
                names = self.separator.join(("tail", "head", "weight"))
                help += f"; for a weight or the like name the columns in a first row, `{names}`"
            file.refuse("STM3403", f"{_shown(row[2])} behind the two ends of an edge", row[2].at, help)
        return row[0], row[1]

    def name(self, cell: Cell) -> int:
        """The node of a name. Refuses what may be another thing (STM3403)."""
        file, text = self.graph.file, cell.text
        if not text:
            file.refuse("STM3403", "a name is missing here", cell.at, "an edge has two ends, each with a name")
        if not cell.quoted and not text.isalnum():
            if self.style.table:
                self.refuse_spaces(cell, re.compile(r"[\t\v\f]"))
            else:
                self.refuse_signs(cell)
                self.refuse_other_separators(cell)
                self.refuse_spaces(cell, _SPACE)
        return self.graph.node(text, cell.at)

    def refuse_signs(self, cell: Cell) -> None:
        """Refuses what is no name but a sign, or the beginning of a comment."""
        file, text = self.graph.file, cell.text
        if cell.quoted or not text:
            return
        if text in _UNDIRECTED:
            file.refuse("STM3404", f"`{text}` has no direction", cell.at, "write `->` where a direction is meant")
        if _SIGNS.fullmatch(text):
            help = f'an edge is `a b` or `a -> b`; put `"{text}"` into quotes if it is a name'
            file.refuse("STM3403", f"`{text}` is no name", cell.at, help)
        if _COMMENT.match(text):
            help = f'put a name into quotes, `"{text}"`, and a blank behind the sign of a comment'
            file.refuse("STM3403", f"is `{text}` a name or a comment?", cell.at, help)
        if text.endswith(":"):
            help = f'give each edge a row of its own, `a b`; put `"{text}"` into quotes if it is a name'
            file.refuse("STM3403", f"is `{text}` a name, or do others follow that it leads to?", cell.at, help)

    def refuse_other_separators(self, cell: Cell) -> None:
        """Refuses what separates names in other files."""
        for sign in EDGE_LIST.separators:
            place = cell.text.find(sign)
            if place >= 0:
                what = "blanks separate" if self.separator == BLANKS else f"`{self.separator}` separates"
                message = f"`{sign}` inside of a name, where {what} the names of this file"
                at = (cell.at[0] + place, cell.at[0] + place + len(sign))
                self.graph.file.refuse("STM3403", message, at, "separate all rows alike, or put the name into quotes")

    def refuse_spaces(self, cell: Cell, spaces: re.Pattern[str]) -> None:
        found = spaces.search(cell.text)
        if found is not None:
            at = (cell.at[0] + found.start(), cell.at[0] + found.end())
            help = "put the name into quotes" + ("" if self.style.table else ", or read the file `as csv` if many are like it")
            self.graph.file.refuse("STM3403", "is this one name, or two?", at, help)

    def refuse_doubtful(self, cell: Cell) -> NoReturn:
        help = f'separate names by blanks, `,`, `;` or `->`; put `"{cell.text}"` into quotes if it is one name'
        self.graph.file.refuse("STM3403", f"is {_shown(cell)} one name, or are they two?", cell.at, help)


def read(file: GraphFile) -> Graph:
    return edges(file, EDGE_LIST)


def edges(file: GraphFile, style: Style) -> Graph:
    """The graph of a list that is written in one of the styles."""
    separator = separator_of(file, style)
    given = rows(file, style, separator)
    first = next(given, None)
    if first is None:
        return Graph(file)
    columns = _columns(file, first)
    found = _List(Graph(file), style, separator, columns)
    for row in given if columns is not None else chain((first,), given):
        found.row(row)
    if columns is not None:
        _refuse_columns_that_are_nodes(found.graph, first, columns)
    else:
        _refuse_nodes_that_are_columns(found.graph, first)
        if found.doubtful is not None and not found.graph.tails:
            found.refuse_doubtful(found.doubtful)
    return found.graph


def _columns(file: GraphFile, row: Row) -> _Columns | None:
    """The columns that the first row names, None if it is an edge. Refuses names that don't say which end is which."""
    names = [cell.text for cell in row]
    tails, heads = ends_of(names)
    help = "name them `tail` and `head`"
    if all(len(columns_named(names, (word,))) == 1 for word in UNDECIDED) and not (tails and heads):
        file.refuse("STM3403", "from parent to child, or from child to parent?", _place(row), help)
    if tails and heads and len(tails) + len(heads) > 2:
        file.refuse("STM3403", "which of these columns are the ends of the edges?", _place(row), help + " alone")
    if not tails or not heads:
        return None
    types = columns_named(names, TYPE)
    return _Columns(tails[0], heads[0], types[0] if types else None, len(row))


def _refuse_columns_that_are_nodes(graph: Graph, first: Row, columns: _Columns) -> None:
    """Refuses a first row that would name columns if its names were not those of nodes, too."""
    help = "put a row `tail" + f"{graph.file.text[first[0].at[1] : first[1].at[0]]}head` above it if it is an edge, "
    help += "or name the columns so"
    if not graph.names:
        graph.file.refuse("STM3403", "is this an edge, or the names of columns without edges?", _place(first), help)
    for column in (columns.tail, columns.head):
        node = graph.number.get(first[column].text)
        if node is not None:
            earlier = (graph.node_at[node], "a node is called so")
            message = f"is {_shown(first[column])} the name of a column or of a node?"
            graph.file.refuse("STM3403", message, first[column].at, help, earlier=earlier)


def _refuse_nodes_that_are_columns(graph: Graph, first: Row) -> None:
    """Refuses a first row of words, none of which returns, above rows of nothing but numbers."""
    if len(first) != 2 or len(graph.names) < 3 or any(_INTEGER.fullmatch(name) for name in graph.names[:2]):
        return
    ends = {*graph.tails[1:], *graph.heads[1:]}
    if not ends & {0, 1} and all(_INTEGER.fullmatch(name) for name in graph.names[2:]):
        help = "remove it if it names columns; if it is an edge, put a row above that does: `tail"
        help += f"{graph.file.text[first[0].at[1] : first[1].at[0]]}head`"
        graph.file.refuse("STM3403", "is this an edge, or are these the names of columns?", _place(first), help)


def _place(row: Row) -> Place:
    return row[0].at[0], row[-1].at[1]


def _shown(cell: Cell) -> str:
    return f"`{cell.text}`" if cell.text else "an empty cell"
