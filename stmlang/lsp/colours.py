"""What each word and sign of a text is, for colours: the tokens of the lexer, with what their names stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stmlang.lsp.document import Document
from stmlang.lsp.symbols import Kind, Occurrence, is_core
from stmlang.source.span import Span
from stmlang.syntax.layout import OPERATORS
from stmlang.syntax.lexer import ITEM_WORDS

Colour = Literal[
    "keyword", "comment", "string", "number", "operator", "class", "type", "function", "variable", "parameter", "property",
    "enumMember", "namespace", "macro",
]  # fmt: skip
COLOURS: tuple[Colour, ...] = (
    "keyword", "comment", "string", "number", "operator", "class", "type", "function", "variable", "parameter", "property",
    "enumMember", "namespace", "macro",
)  # fmt: skip
"""Token types of the protocol."""
MODIFIERS = ("declaration", "readonly", "defaultLibrary")

_OF_KIND: dict[Kind, Colour] = {
    Kind.FUNCTION: "function",
    Kind.TOPOLOGY: "type",
    Kind.SCAN: "class",
    Kind.GATE: "variable",
    Kind.NUMBER: "parameter",
    Kind.PARAMETER: "parameter",
    Kind.NODE: "enumMember",
    Kind.FILE: "namespace",
    Kind.INDEX: "property",
    Kind.INPUT: "variable",
    Kind.FEATURE: "variable",
    Kind.BUILT_IN: "function",
    Kind.CONSTANT: "number",
    Kind.SIZE: "parameter",
    Kind.PORT: "enumMember",
    Kind.ARGUMENT: "property",
    Kind.TOPOLOGY_KIND: "type",
    Kind.FORMAT: "enumMember",
    Kind.UNKNOWN: "variable",
}
_LANGUAGE = frozenset({Kind.BUILT_IN, Kind.CONSTANT, Kind.TOPOLOGY_KIND, Kind.INPUT, Kind.FEATURE})
_OF_TOKEN: dict[str, Colour] = {
    **dict.fromkeys((*ITEM_WORDS.values(), "ON", "FROM", "AS", "SETTING"), "keyword"),
    **dict.fromkeys((*OPERATORS, "EQUAL", "ARROW", "ATMOST"), "operator"),
    "STRING": "string",
    "NUMBER": "number",
    "GRAPH": "type",
}


@dataclass(frozen=True)
class Painted:
    """A piece of one line with its colour and modifiers."""

    span: Span
    colour: Colour
    modifiers: tuple[str, ...] = ()


def painted(document: Document) -> list[Painted]:
    """The coloured pieces of a text, in its order, none over another."""
    names = {entry.span.start: entry for entry in document.occurrences}
    pieces = [*_tokens(document, names), *(Painted(comment.span, "comment") for comment in document.parsed.file.comments)]
    pieces.sort(key=lambda piece: piece.span.start)
    kept: list[Painted] = []
    for piece in pieces:
        if piece.span.end > piece.span.start and (not kept or kept[-1].span.end <= piece.span.start):
            kept.append(piece)
    return kept


def _tokens(document: Document, names: dict[int, Occurrence]) -> Iterator[Painted]:
    setting = False
    for token in document.parsed.tokens:
        setting = token.kind == "SETTING" or (setting and token.kind not in ("SEPARATOR", "RBRACE"))
        span = Span(document.source, token.start, token.end)
        entry = names.get(token.start)
        if entry is not None and entry.kind is not Kind.UNKNOWN:
            yield _named(entry)
        elif token.kind in _OF_TOKEN:
            yield Painted(span, _OF_TOKEN[token.kind])
        elif setting and token.kind == "NAME":
            yield Painted(span, "keyword")
        elif token.kind in ("NAME", "PRIMED"):
            yield Painted(span, "variable")


def _named(entry: Occurrence) -> Painted:
    modifiers = [name for name, holds in (("declaration", entry.declares), ("defaultLibrary", _given(entry))) if holds]
    if entry.kind in (Kind.NUMBER, Kind.SIZE, Kind.CONSTANT):
        modifiers.append("readonly")
    return Painted(entry.span, _OF_KIND[entry.kind], tuple(modifiers))


def _given(entry: Occurrence) -> bool:
    return entry.kind in _LANGUAGE or is_core(entry)
