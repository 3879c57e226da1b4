"""Documents for tests, with the place at hand marked by `|`."""

from __future__ import annotations

from pathlib import Path

from stmlang.check import library
from stmlang.lsp.document import Document, Text
from tests.check.programs import PROGRAMS

CORPUS = sorted([*library().rglob("*.stm"), *PROGRAMS.rglob("*.stm")])
"""The library's specs and the good and bad programs of the tests."""


def marked(text: str, path: Path | None = None) -> tuple[Document, int]:
    """A document, and the offset of the mark in it, which is taken out."""
    offset = text.index("|")
    return document(text[:offset] + text[offset + 1 :], path), offset


def document(text: str, path: Path | None = None) -> Document:
    return Document(Text("a.stm" if path is None else str(path), text), path, "" if path is None else path.as_uri())


def saved(path: Path) -> Document:
    """A file as an editor opens it, whatever its bytes are."""
    return document(path.read_bytes().decode("utf-8", "replace"), path)
