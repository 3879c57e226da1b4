"""One version of a text and all that is known of it, each found when it is first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from stmlang.check import Kept, Spec, Surveyed, survey
from stmlang.check.modules import Loader, Module, Reader
from stmlang.check.problems import Problems
from stmlang.check.search_path import STANDARD, Place, library, place_of, search_folders
from stmlang.lsp.symbols import Occurrence, occurrences_of
from stmlang.scan.scan import Scan
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.reading import from_text, read
from stmlang.source.span import SourceFile, Span
from stmlang.syntax import tree
from stmlang.syntax.lexer import Token
from stmlang.syntax.parser import Parsed, parse_all

_UNREADABLE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Text:
    """A text under the name that messages call it by; `text` is as the editor has it, a byte order mark included."""

    name: str
    text: str

    @cached_property
    def source(self) -> SourceFile:
        """What offsets count in."""
        return SourceFile(self.name, _UNREADABLE.sub("\ufffd", self.text))

    @cached_property
    def refused(self) -> tuple[Diagnostic, ...]:
        """Why this is no text of the language at all: too long, or with characters that no text has."""
        try:
            from_text(self.text, self.name)
        except SpecError as error:
            return error.diagnostics
        return ()

    @cached_property
    def parsed(self) -> Parsed:
        """The text as far as it can be read."""
        if self.refused:
            end = len(self.source.text)
            return Parsed(tree.File(self.source, (), ()), [Token("$END", "", end, end)], self.refused)
        return parse_all(self.source)


@dataclass(frozen=True, eq=False)
class Document:
    """A text in its surroundings: the file it is saved as, if it is one, what its editor calls it, and where the files that
    it imports come from."""

    text: Text
    path: Path | None = None
    uri: str = ""
    search_path: tuple[Path, ...] = ()
    reader: Reader = read
    kept: Kept = field(default_factory=dict[Any, Scan])
    """The scans of earlier versions, for later ones."""

    @property
    def source(self) -> SourceFile:
        return self.text.source

    @property
    def parsed(self) -> Parsed:
        return self.text.parsed

    @property
    def place(self) -> Place:
        """From where it imports files."""
        if self.path is None:
            return place_of(Path())
        inside = self.path.is_relative_to(library())
        return Place(self.path.parent, library() if inside else self.path.parent)

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The search path, that of the environment included."""
        return search_folders(self.search_path)

    @cached_property
    def module(self) -> Module:
        """The names of the file and of those that it imports, found without a look at what they mean."""
        path = None if self.path is None else self.path.resolve()
        loader = Loader(Problems(self.source), self.folders, path, self.reader)
        return loader.module(self.source, self.parsed.file, self.place, path)

    @cached_property
    def surveyed(self) -> Surveyed:
        """What the checker says."""
        spec = Spec(self.source, None, self.place, self.path)
        return survey(spec, self.parsed, search_path=self.folders, reader=self.reader, kept=self.kept)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every name that stands in the text and what it means, in the order of the text."""
        return occurrences_of(self.parsed.file, self.module)

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The files of this text and of those that it imports, by the names that spans have them under."""
        known: dict[str, Path] = {}
        waiting: list[Module] = [self.module]
        while waiting:
            module = waiting.pop()
            if module.source.name not in known and module.path is not None:
                known[module.source.name] = module.path
                waiting += module.imports.values()
        return known

    def at(self, offset: int) -> Occurrence | None:
        """The name at an offset, else the one that ends there."""
        touching = [entry for entry in self.occurrences if entry.span.start <= offset <= entry.span.end]
        return next((entry for entry in touching if offset < entry.span.end), touching[-1] if touching else None)

    def scan_at(self, offset: int) -> tuple[tree.ScanItem, Scan | None] | None:
        """The scan around an offset, as written and as typed."""
        return next((pair for pair in self.surveyed.scans if pair[0].span.start <= offset <= pair[0].span.end), None)

    def key(self, declaration: Span) -> tuple[str, int]:
        """What tells a declaration apart from all others, whichever text it is seen from."""
        name = declaration.file.name
        return str(self.paths.get(name, name)), declaration.start


def is_library(name: str) -> bool:
    """Whether a file's name in messages is that of one of the installed library, which is nobody's to change."""
    return name.startswith(f"{STANDARD}:")
