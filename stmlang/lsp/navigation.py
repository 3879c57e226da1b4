"""From a name to where it is declared, to all other places that mean the same, and to another name for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stmlang.check.modules import Reader
from stmlang.check.vocabulary import CORE, INPUTS, KINDS_OF_TOPOLOGY, MEANT, RESERVED, SIZES
from stmlang.lsp.document import Document, Text, is_library
from stmlang.lsp.symbols import Kind, Occurrence, is_core
from stmlang.source.advice import Edit, Rewrite, apply
from stmlang.source.diagnostic import Diagnostic, Severity
from stmlang.source.reading import from_text
from stmlang.source.span import SourceFile, Span
from stmlang.syntax.layout import NAME_KINDS
from stmlang.syntax.lexer import lex

FAR = frozenset({Kind.FUNCTION, Kind.TOPOLOGY, Kind.NUMBER, Kind.PARAMETER, Kind.FILE})
"""What other files can speak of."""
_RENAMED = frozenset({Kind.FUNCTION, Kind.TOPOLOGY, Kind.SCAN, Kind.GATE, Kind.NUMBER, Kind.PARAMETER, Kind.NODE})


@dataclass(frozen=True)
class Refused:
    """Why something is not done, in a sentence."""

    reason: str


def definition(document: Document, offset: int) -> Span | None:
    """Where the name at an offset is declared, in this file or in one that it imports; None for the language's own."""
    occurrence = document.at(offset)
    return None if occurrence is None else occurrence.declaration


def references(document: Document, offset: int, others: Iterable[Document]) -> list[tuple[Document, Occurrence]]:
    """All places that mean what stands at an offset, its declaration among them, in this text and in others."""
    occurrence = document.at(offset)
    if occurrence is None:
        return []
    if occurrence.declaration is None:  # a word of the language: as it is used in this text
        same = (entry for entry in document.occurrences if (entry.kind, entry.name) == (occurrence.kind, occurrence.name))
        return [(document, entry) for entry in same]
    key, name = document.key(occurrence.declaration), occurrence.name
    searched = [document]
    if occurrence.kind is Kind.FILE:
        searched += others
    elif occurrence.kind in FAR:
        searched += (other for other in others if name in other.source.text)
    return [(text, entry) for text in searched for entry in text.occurrences if _declared_at(text, entry) == key]


def _declared_at(document: Document, occurrence: Occurrence) -> tuple[str, int] | None:
    return None if occurrence.declaration is None else document.key(occurrence.declaration)


# --- renaming


def renamable(document: Document, offset: int) -> Span | Refused:
    """The name at an offset, if it is one that its author chose."""
    occurrence = document.at(offset)
    if occurrence is None:
        return Refused("there is no name here")
    if is_core(occurrence) or occurrence.kind not in _RENAMED or occurrence.declaration is None:
        return Refused(f"`{occurrence.name}` is a word of the language")
    if is_library(occurrence.declaration.file.name):
        return Refused(f"`{occurrence.name}` is declared in the installed library, {occurrence.declaration.file.name}")
    return occurrence.span


def rename(document: Document, offset: int, name: str, others: Iterable[Document]) -> dict[Document, Rewrite] | Refused:
    """The edits that give what stands at an offset another name everywhere, by text; refused where that is no name, is taken,
    or makes anything wrong that was right."""
    span = renamable(document, offset)
    if isinstance(span, Refused):
        return span
    occurrence = document.at(offset)
    assert occurrence is not None
    if (why := _no_name(name, occurrence.kind)) is not None:
        return Refused(why)
    edits: dict[Document, list[Edit]] = {}
    for text, entry in references(document, offset, others):
        edits.setdefault(text, []).append(Edit(entry.span, name))
    rewrites = {text: Rewrite(tuple(each)) for text, each in edits.items()}
    return _made_wrong(rewrites) or rewrites


def _no_name(name: str, kind: Kind) -> str | None:
    """Why something cannot be called so, if it cannot."""
    lexed = lex(SourceFile("", name))
    if lexed.diagnostics or len(lexed.tokens) != 2 or lexed.tokens[0].kind not in NAME_KINDS or lexed.tokens[0].text != name:
        return f"`{name}` is not a name"
    own = (*CORE, *INPUTS, *SIZES) if kind in (Kind.GATE, Kind.NUMBER, Kind.PARAMETER) else ()
    if kind in (Kind.SCAN, Kind.NODE):
        return None
    if kind is Kind.TOPOLOGY:
        return f"`{name}` {KINDS_OF_TOPOLOGY[name]}" if name in KINDS_OF_TOPOLOGY else None
    return f"`{name}` {RESERVED.get(name, MEANT)}" if name in RESERVED or name in own else None


def _made_wrong(rewrites: Mapping[Document, Rewrite]) -> Refused | None:
    """What would be wrong behind edits that is right now."""
    texts = {text: apply(rewrite).text for text, rewrite in rewrites.items()}
    saved = {text.path: content for text, content in texts.items() if text.path is not None}
    for text, content in texts.items():
        after = replace(text, text=Text(text.text.name, content), reader=_reading(saved, text.reader), kept=dict(text.kept))
        known = Counter(entry.code for entry in _errors(text))
        for error in _errors(after):
            known[error.code] -= 1
            if known[error.code] < 0:
                return Refused(f"then something would be wrong: {error.message}")
    return None


def _errors(document: Document) -> list[Diagnostic]:
    return [entry for entry in document.surveyed.diagnostics if entry.severity is Severity.ERROR]


def _reading(texts: Mapping[Path, str], reader: Reader) -> Reader:
    """A reader that has some files as they would be."""
    resolved = {path.resolve(): content for path, content in texts.items()}

    def read(path: Path, name: str) -> SourceFile:
        content = resolved.get(path.resolve())
        return reader(path, name) if content is None else from_text(content, name)

    return read
