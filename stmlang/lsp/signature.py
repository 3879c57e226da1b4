"""How the function is called whose brackets an offset lies in, and which of its arguments is being written."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.check.modules import Definition
from stmlang.lsp import words
from stmlang.lsp.cursor import Bracket, cursor_at
from stmlang.lsp.document import Document
from stmlang.lsp.hover import heading

_ANY_NUMBER = {"linear": "features", "split": "..."}
"""The argument of a function that may be given any number of times by its place."""


@dataclass(frozen=True)
class Signature:
    """`arguments` by name, and the place of the one that is being written, None where it is one too many."""

    function: str
    arguments: tuple[str, ...]
    meaning: str
    active: int | None

    @property
    def label(self) -> str:
        return f"{self.function}({', '.join(self.arguments)})"


def signature_help(document: Document, offset: int) -> Signature | None:
    """The innermost call around an offset whose function is known."""
    cursor = cursor_at(document, offset)
    calls = () if cursor is None else (entry for entry in reversed(cursor.brackets) if entry.kind == "LPAR" and entry.head)
    return next((found for bracket in calls if (found := _signature(document, bracket)) is not None), None)


def _signature(document: Document, bracket: Bracket) -> Signature | None:
    assert bracket.head is not None
    name = bracket.head.text
    declared = document.module.names.get(name)
    if name in words.FUNCTIONS:
        arguments, meaning = words.FUNCTIONS[name]
    elif isinstance(declared, Definition):
        arguments, meaning = declared.parameters, heading(declared.item.span.file, declared.item.span.start) or ""
    else:
        return None
    return Signature(name, arguments, meaning, _active(name, arguments, bracket))


def _active(name: str, arguments: tuple[str, ...], bracket: Bracket) -> int | None:
    current = bracket.current
    if len(current) > 1 and current[1].kind == "EQUAL" and current[0].text in arguments:
        return arguments.index(current[0].text)
    if name in _ANY_NUMBER:
        return min(bracket.argument, arguments.index(_ANY_NUMBER[name]))
    return bracket.argument if bracket.argument < len(arguments) else None
