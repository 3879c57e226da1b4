"""The texts that an editor has open, and those that lie in files beside them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from stmlang.check.search_path import library, library_specs, specs_below
from stmlang.lsp.document import Document, Text
from stmlang.source.diagnostic import SpecError
from stmlang.source.reading import from_text, read
from stmlang.source.span import SourceFile
from stmlang.syntax import tree

MOST_FILES = 500
"""Files that are searched for references in each folder."""


class Desk:
    """Documents by their URIs. One that is open counts before the file of its path. Documents are versions: whatever changes
    makes new ones of all that may depend on it."""

    def __init__(self, search_path: Sequence[Path] = ()) -> None:
        self.roots: list[Path] = []
        self._search_path = tuple(search_path)
        self._open: dict[str, Document] = {}
        self._saved: dict[Path, tuple[tuple[int, int], Document]] = {}

    def put(self, uri: str, text: str) -> Document:
        """A text that was opened or changed."""
        path = path_of(uri)
        content, before = Text(_shown(path) or uri, text), self._open.get(uri)
        document = Document(content, path, uri, self._search_path, self._read, {} if before is None else before.kept)
        self._open[uri] = document
        self._refresh(uri)
        return document

    def drop(self, uri: str) -> None:
        """A text that was closed: from now on its file counts."""
        self._open.pop(uri, None)
        self._refresh(uri)

    def refresh(self) -> None:
        """Files have changed."""
        self._refresh("")

    def dependants(self, changed: str = "") -> list[str]:
        """The open texts that may depend on a change elsewhere."""
        return [uri for uri, document in self._open.items() if uri != changed and _reads_files(document)]

    def _refresh(self, changed: str) -> None:
        for uri in self.dependants(changed):
            self._open[uri] = replace(self._open[uri])
        self._saved.clear()

    def get(self, uri: str) -> Document | None:
        """The document of a URI: as it is open, else as it is saved, None where it is neither."""
        path = path_of(uri)
        return self._open.get(uri) or (None if path is None else self._file(path))

    def others(self, document: Document) -> Iterator[Document]:
        """All other texts that may speak of the same: open ones, those in the folders at hand, and the library's."""
        seen = {document.uri}
        opened = tuple(self._open.values())
        paths = {other.path: other for other in opened}
        for other in opened:
            if other.uri not in seen:
                seen.add(other.uri)
                yield other
        for path in self._paths(document):
            if path not in paths and path != document.path and (found := self._file(path)) is not None:
                paths[path] = found
                yield found

    def _paths(self, document: Document) -> Iterator[Path]:
        beside = [] if document.path is None else [document.path.parent]
        for folder in dict.fromkeys((*self.roots, *beside, *document.folders)):
            yield from map(Path, specs_below(folder)[:MOST_FILES])
        yield from (library() / f"{name}.stm" for name in library_specs())

    def _file(self, path: Path) -> Document | None:
        """A file that is not open, read again only after it changed."""
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if path not in self._saved or self._saved[path][0] != stamp:
                text = Text(_shown(path) or str(path), read(path).text)
                self._saved[path] = stamp, Document(text, path, uri_of(path), self._search_path, self._read)
        except (OSError, ValueError, SpecError):
            return None
        return self._saved[path][1]

    def _read(self, path: Path, name: str) -> SourceFile:
        """A file that is imported, as it is open if it is."""
        for document in tuple(self._open.values()):
            if document.path is not None and (document.path == path or document.path == path.resolve()):
                return from_text(document.text.text, name)
        return read(path, name)


def settle() -> None:
    """Have the garbage collector pass over what is there from the start, and come by itself only where memory asks for it: a
    version of a text is many small values, and a collection takes longer than an answer. It is called when nobody waits."""
    gc.freeze()
    gc.set_threshold(1_000_000, 5, 5)


def _reads_files(document: Document) -> bool:
    return any(isinstance(item, tree.UseItem) for item in document.parsed.file.items) or "from" in document.source.text


def _shown(path: Path | None) -> str | None:
    """What messages call a file: one of the library by its name there."""
    if path is None:
        return None
    if path.is_relative_to(library()):
        return f"std:{path.relative_to(library()).with_suffix('').as_posix()}"
    return str(path)


def path_of(uri: str) -> Path | None:
    """The file of a URI; None where it is none, as of a text that was never saved."""
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or "\0" in unquote(parts.path):
            return None
        return Path(url2pathname(parts.path))
    except ValueError:
        return None


def uri_of(path: Path) -> str:
    """The URI of a file."""
    return path.absolute().as_uri()
