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
from dataclasses import dataclass, field
from itertools import chain
from typing import NoReturn

from stmlang.graph.readers.columns import (
    DIRECTED,
    TYPE,
    UNDECIDED,
    UNDIRECTED,
    columns_named,
    ends_of,
    is_numbered,
    letters_of_ends,
    numbered_ends,
    with_word_of_tables,
)
from stmlang.graph.readers.other_formats import refuse_other_formats
from stmlang.graph.readers.rows import BLANKS, EDGE_LIST, Cell, Row, Style, rows, separator_of
from stmlang.graph.readers.text import Graph, GraphFile, Place

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SIGNS = re.compile(r"[-=<>|:~→←↔⇒⇐⇔]+")
_UNDIRECTED = ("--", "<->", "<=>", "↔", "⇔")
_COMMENT = re.compile(r"#|%|//")
_SPACE = re.compile(r"\s")
_DOUBTFUL = re.compile(r"[^\w.]")
"""In a file without edges, a sign in a name may have been meant to separate two of them."""
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff]")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_SECTION = re.compile(
    r"[@\[<]?(?:begin|end|nodes?|vertex|vertices|edges?|arcs?|links?|graph|ids?|names?|labels?)[\]>]?", re.IGNORECASE
)
"""Lone in a row, a word about what follows rather than a node."""
_NO, _YES = ("false", "f", "no", "n", "0", "undirected"), ("true", "t", "yes", "y", "1", "undirected")


@dataclass(frozen=True)
class _Columns:
    """The columns of the ends, those that may say that an edge has no direction and by which words, and how many there are."""

    tail: int
    head: int
    undirected: tuple[tuple[int, tuple[str, ...]], ...]
    count: int


@dataclass
class _List:
    """The graph, how the file is written, and its first lone name that may be two."""

    graph: Graph
    style: Style
    separator: str
    columns: _Columns | None
    doubtful: Cell | None = None
    alone: list[Cell] = field(default_factory=list[Cell])

    def row(self, row: Row) -> None:
        """An edge, or a node alone."""
        self.refuse_brackets(row)
        if len(row) == 1 and not self.style.table and self.separator in (BLANKS, "->"):
            self.alone.append(row[0])
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
            for column, words in columns.undirected:
                if row[column].text.strip().lower() in words:
                    help = "write each edge from its tail to its head and leave this column out"
                    file.refuse("STM3404", "this edge has no direction", row[column].at, help)
            return row[columns.tail], row[columns.head]
        if len(row) < 2:
            help = "an edge has two ends; where blanks separate the names, `as edgelist`, a node may stand alone"
            file.refuse("STM3403", "one cell in a row of two", _place(row), help)
        if len(row) > 2:
            for cell in () if self.style.table else row:
                self.refuse_signs(cell)
            help = "give each edge a row of its own"
            if self.separator != "->":
                names = _as_row(self.separator, "tail", "head", "weight")
                help += f"; for a weight or the like name the columns in a first row, {names}"
            file.refuse("STM3403", f"{_shown(row[2])} behind the two ends of an edge", row[2].at, help)
        return row[0], row[1]

    def name(self, cell: Cell) -> int:
        """The node of a name. Refuses what may be another thing (STM3403)."""
        file, text = self.graph.file, cell.text
        if not text:
            file.refuse("STM3403", "a name is missing here", cell.at, "an edge has two ends, each with a name")
        if not cell.quoted and not text.isalnum():
            self.refuse_unseen(cell)
            if self.style.table:
                self.refuse_spaces(cell, re.compile(r"[\t\v\f]"))
            else:
                self.refuse_signs(cell)
                self.refuse_other_separators(cell)
                self.refuse_spaces(cell, _SPACE)
        return self.graph.node(text, cell.at)

    def refuse_brackets(self, row: Row) -> None:
        """Refuses a row in brackets, as programs print pairs."""
        first, last = row[0], row[-1]
        sign = first.text[:1]
        closing = _BRACKETS.get(sign)
        if closing is None or len(row) == 1 or first.quoted or last.quoted or not last.text.endswith(closing):
            return
        if first.text.count(sign) > first.text.count(closing) and last.text.count(closing) > last.text.count(sign):
            help = "write the two names alone, `a b`, or put names into quotes that have brackets"
            self.graph.file.refuse("STM3403", f"this row stands in brackets, `{sign}` and `{closing}`", _place(row), help)

    def refuse_unseen(self, cell: Cell) -> None:
        """Refuses a character that nobody sees, which hardly belongs to the name."""
        match = _UNSEEN.search(cell.text)
        if match is not None:
            at = (cell.at[0] + match.start(), cell.at[0] + match.end())
            message = f"a control character, U+{ord(match.group()):04X}, inside of a name"
            self.graph.file.refuse("STM3403", message, at, "remove it, or put the name into quotes if it belongs to it")

    def refuse_alone(self) -> None:
        """Refuses rows of one word that speak of what follows: a section's beginning, or the count of nodes or edges."""
        graph, ends = self.graph, {*self.graph.tails, *self.graph.heads}
        for cell in self.alone if graph.tails else self.alone[:1]:
            if not cell.quoted and _SECTION.fullmatch(cell.text) and graph.number[cell.text] not in ends:
                help = f'remove it if it is none; put `"{cell.text}"` into quotes if it is'
                graph.file.refuse("STM3403", f"is {_shown(cell)} a node?", cell.at, help)
        first = self.alone[0] if self.alone and graph.tails and self.columns is None else None
        if first is None or first.quoted or first.at[0] > graph.edge_at[0][0] or first.text != graph.names[0]:
            return
        if all(_INTEGER.fullmatch(name) for name in graph.names):
            help = f'remove it if it counts nodes or edges; put `"{first.text}"` into quotes if it is a node'
            graph.file.refuse("STM3403", f"is {_shown(first)} a node, or a count?", first.at, help)

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
        if text.startswith("*"):
            help = f'read a file of Pajek `as pajek`; put `"{text}"` into quotes if it is a name'
            file.refuse("STM3403", f"is `{text}` a name, or does a section of another format begin?", cell.at, help)
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
        match = spaces.search(cell.text)
        if match is not None:
            at = (cell.at[0] + match.start(), cell.at[0] + match.end())
            help = "put the name into quotes" + ("" if self.style.table else ", or read the file `as csv` if many are like it")
            self.graph.file.refuse("STM3403", "is this one name, or two?", at, help)

    def refuse_doubtful(self, cell: Cell) -> NoReturn:
        help = f'separate names by blanks, `,`, `;` or `->`; put `"{cell.text}"` into quotes if it is one name'
        self.graph.file.refuse("STM3403", f"is {_shown(cell)} one name, or are they two?", cell.at, help)


def read(file: GraphFile) -> Graph:
    return edges(file, EDGE_LIST)


def edges(file: GraphFile, style: Style) -> Graph:
    """The graph of a list that is written in one of the styles."""
    refuse_other_formats(file)
    separator = separator_of(file, style)
    remaining = rows(file, style, separator)
    first = next(remaining, None)
    if first is None:
        return Graph(file)
    columns = _columns(file, first)
    pending = list[Row]()
    if columns is None and len(first) == 2 and numbered_ends([cell.text for cell in first]) is not None:
        pending = list(remaining)
        columns = _numbered_columns(file, first, pending)
    edge_list = _List(Graph(file), style, separator, columns)
    remaining = chain(pending, remaining)
    for row in remaining if columns is not None else chain((first,), remaining):
        edge_list.row(row)
    edge_list.refuse_alone()
    if columns is not None:
        _refuse_columns_that_are_nodes(edge_list.graph, first, columns)
    else:
        _refuse_nodes_that_are_columns(edge_list.graph, first)
        if edge_list.doubtful is not None and not edge_list.graph.tails:
            edge_list.refuse_doubtful(edge_list.doubtful)
    return edge_list.graph


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
        ends = numbered_ends(names) if len(names) > 2 and not tails and not heads else None
        return None if ends is None else _columns_of(names, *ends)
    return _columns_of(names, tails[0], heads[0])


def _columns_of(names: list[str], tail: int, head: int) -> _Columns:
    words = ((TYPE, ("undirected",)), (DIRECTED, _NO), (UNDIRECTED, _YES))
    undirected = tuple((column, no) for kind, no in words for column in columns_named(names, kind))
    return _Columns(tail, head, undirected, len(names))


def _numbered_columns(file: GraphFile, first: Row, below: list[Row]) -> _Columns | None:
    """The columns of a first row `node1,node2`, None if the rows below show that it is an edge. Refuses what may be both."""
    names = [cell.text for cell in first]
    others = [cell.text for row in below for cell in row]
    if any(name in others for name in names):
        return None
    if not below or any(is_numbered(name) for name in others):
        _refuse_edge_or_columns(file, first)
    ends = numbered_ends(names)
    return None if ends is None else _columns_of(names, *ends)


def _refuse_columns_that_are_nodes(graph: Graph, first: Row, columns: _Columns) -> None:
    """Refuses a first row that would name columns if its names were not those of nodes, too."""
    separator = graph.file.text[first[0].at[1] : first[1].at[0]]
    help = f"put a row {_as_row(separator, 'tail', 'head')} above it if it is an edge, or name the columns so"
    if not graph.names:
        graph.file.refuse("STM3403", "is this an edge, or the names of columns without edges?", _place(first), help)
    for column in (columns.tail, columns.head):
        node = graph.number.get(first[column].text)
        if node is not None:
            earlier = (graph.node_at[node], "a node is called so")
            message = f"is {_shown(first[column])} the name of a column or of a node?"
            graph.file.refuse("STM3403", message, first[column].at, help, earlier=earlier)


def _refuse_nodes_that_are_columns(graph: Graph, first: Row) -> None:
    """Refuses a first row of words, neither of which returns, that may name columns: above rows of nothing but numbers all
    words may, elsewhere those of tables."""
    if len(first) != 2 or {*graph.tails[1:], *graph.heads[1:]} & {0, 1}:
        return
    words = [cell.text for cell in first]
    above_numbers = len(graph.names) > 2 and all(_INTEGER.fullmatch(name) for name in graph.names[2:])
    if any(_INTEGER.fullmatch(word) for word in words):
        return
    if above_numbers or with_word_of_tables(words) or (len(graph.tails) > 1 and letters_of_ends(words)):
        _refuse_edge_or_columns(graph.file, first)


def _refuse_edge_or_columns(file: GraphFile, first: Row) -> NoReturn:
    row = _as_row(file.text[first[0].at[1] : first[1].at[0]], "tail", "head")
    help = (
        f"if it is an edge, put a row above that names the columns, {row}; if it names them, call the two ends so, or remove it"
    )
    file.refuse("STM3403", "is this an edge, or are these the names of columns?", _place(first), help)


def _as_row(separator: str, *names: str) -> str:
    """Names as the file's rows are written; a tabulator in backquotes would not be seen."""
    return f"`{' '.join(names)}`, separated by tabs" if "\t" in separator else f"`{separator.join(names)}`"


def _place(row: Row) -> Place:
    return row[0].at[0], row[-1].at[1]


def _shown(cell: Cell) -> str:
    return f"`{cell.text}`" if cell.text else "an empty cell"
