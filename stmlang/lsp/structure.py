"""The outline of a text, what can be folded in it, and its canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

from stmlang.lsp.document import Document
from stmlang.lsp.hover import signature
from stmlang.lsp.symbols import Kind, gates_of
from stmlang.source.advice import Edit
from stmlang.source.diagnostic import SpecError
from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree
from stmlang.syntax.formatter import format_source


@dataclass(frozen=True)
class Entry:
    """Something declared: all of it, its name, and what is declared in it."""

    name: str
    kind: Kind
    detail: str
    span: Span
    name_span: Span
    inside: tuple[Entry, ...] = ()


def outline(document: Document) -> list[Entry]:
    """What a text declares, in its order."""
    entries: list[Entry] = []
    for item in document.parsed.file.items:
        match item:
            case tree.ScanItem(name=name) if name.text:
                detail = f"on {' '.join(item.topology.span.text.split())}"
                entries.append(Entry(name.text, Kind.SCAN, detail, item.span, name.span, tuple(_gates(item))))
            case tree.DefinitionItem(name=name, parameters=parameters):
                detail = f"({', '.join(parameter.text for parameter in parameters)})"
                entries.append(Entry(name.text, Kind.FUNCTION, detail, item.span, name.span))
            case tree.TopologyItem(name=name, value=value):
                entries.append(Entry(name.text, Kind.TOPOLOGY, " ".join(value.span.text.split()), item.span, name.span))
            case _:
                pass
    return entries


def _gates(item: tree.ScanItem) -> Iterator[Entry]:
    for name, equations in gates_of(item).items():
        more = f"{len(equations)} equations" if len(equations) > 1 else ""
        first = equations[0]
        yield Entry(signature(item, name), Kind.GATE, more, first.span, first.target.span)


# --- folding


@dataclass(frozen=True)
class Fold:
    """Lines, counted from one, that can be shown as their first one."""

    first: int
    last: int
    kind: Literal["region", "comment", "imports"]


def folds(document: Document) -> list[Fold]:
    """Braces that span lines, comments of several lines, and imports."""
    line = _line_of(document.source)
    shown = [*_braces(document), *_comments(document), *_imports(document)]
    spans = [Fold(line(start), line(end), kind) for start, end, kind in shown]
    return sorted({fold for fold in spans if fold.last > fold.first}, key=lambda fold: (fold.first, fold.last))


_Range = tuple[int, int, Literal["region", "comment", "imports"]]


def _braces(document: Document) -> Iterator[_Range]:
    opened: list[int] = []
    for token in document.parsed.tokens:
        if token.kind == "LBRACE":
            opened.append(token.start)
        elif token.kind == "RBRACE" and opened:
            yield opened.pop(), token.start, "region"


def _comments(document: Document) -> Iterator[_Range]:
    line = _line_of(document.source)
    own = [comment for comment in document.parsed.file.comments if comment.own_line]
    runs = groupby(enumerate(own), key=lambda pair: line(pair[1].span.start) - pair[0])
    for _, run in runs:
        comments = [comment for _, comment in run]
        yield comments[0].span.start, comments[-1].span.end, "comment"


def _imports(document: Document) -> Iterator[_Range]:
    for is_use, run in groupby(document.parsed.file.items, key=lambda item: isinstance(item, tree.UseItem)):
        if is_use:
            items = list(run)
            yield items[0].span.start, items[-1].span.end, "imports"


def _line_of(source: SourceFile) -> Callable[[int], int]:
    """The line of an offset."""
    return lambda offset: source.position(offset)[0]


# --- the canonical form


def formatting(document: Document) -> list[Edit]:
    """The edit that gives a text its canonical form: of whole lines, without those at both ends that stay. Nothing where the
    text cannot be read."""
    source = document.source
    try:
        after = format_source(source)
    except SpecError:
        return []
    if document.text.refused or after == source.text:
        return []
    old = [source.text[start:end] for start, end in pairwise((*source.line_starts, len(source.text)))]
    new = after.splitlines(keepends=True)
    same = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    limit = min(len(old), len(new)) - same
    tail = next((place for place in range(limit) if old[-1 - place] != new[-1 - place]), limit)
    start, end = (
        source.line_starts[same] if same < len(old) else len(source.text),
        len(source.text) - sum(map(len, old[len(old) - tail :])),
    )
    return [Edit(Span(source, start, end), "".join(new[same : len(new) - tail]))]
