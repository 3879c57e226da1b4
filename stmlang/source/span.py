"""Source texts and places in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class SourceFile:
    """A named text. `name` is what a person reads in front of a line number: a path, `std:...` or `<text>`.

    The text is kept as written except that a byte order mark is dropped (`stmlang.source.reading` does that), so offsets are
    offsets into `text`. Lines end at `\\n`, `\\r\\n` or a lone `\\r`.
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset at which each line begins; the first is 0."""
        return (0, *(end.end() for end in _LINE_END.finditer(self.text)))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from one; a column counts characters, a tab being one."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line counted from one, without its line end."""
        start, end = self.bounds(number)
        return self.text[start:end]

    def bounds(self, number: int) -> tuple[int, int]:
        """The offsets at which a line counted from one begins and, without its line end, ends."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end


@dataclass(frozen=True)
class Span:
    """The half-open range `[start, end)` of a file's text."""

    file: SourceFile
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(self.file, min(self.start, other.start), max(self.end, other.end))

    @property
    def text(self) -> str:
        return self.file.text[self.start : self.end]

    def __repr__(self) -> str:
        line, column = self.file.position(self.start)
        return f"<{self.file.name}:{line}:{column}>"
