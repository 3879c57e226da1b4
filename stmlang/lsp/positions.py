"""Places as editors count them, in lines and UTF-16 units, and as texts do, in characters. Nothing else converts them."""

from __future__ import annotations

from bisect import bisect_right

from stmlang.source.span import SourceFile


def offset_at(source: SourceFile, line: int, character: int) -> int:
    """The offset of a place. One that is not in the text is moved to where it leads: behind the end of its line to that end,
    behind the last line to the end of the text, into the middle of a character to its beginning."""
    if line < 0:
        return 0
    if line >= len(source.line_starts):
        return len(source.text)
    start, end = source.bounds(line + 1)
    text = source.text[start:end]
    if text.isascii():
        return start + min(max(character, 0), len(text))
    units = 0
    for place, letter in enumerate(text):
        units += _units(letter)
        if units > character:
            return start + place
    return end


def place_at(source: SourceFile, offset: int) -> tuple[int, int]:
    """Line and UTF-16 unit of an offset, which may lie outside of the text."""
    offset = min(max(offset, 0), len(source.text))
    line = bisect_right(source.line_starts, offset) - 1
    text = source.text[source.line_starts[line] : offset]
    return line, len(text) if text.isascii() else units(text)


def units(text: str) -> int:
    """How many UTF-16 units a text has."""
    return sum(map(_units, text))


def _units(letter: str) -> int:
    return 2 if letter > "\uffff" else 1
