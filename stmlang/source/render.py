"""Diagnostics as text for people and as plain data for editors."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from stmlang.source.advice import Call, Command, Fix, Rewrite
from stmlang.source.columns import wrapped
from stmlang.source.diagnostic import Diagnostic, Severity
from stmlang.source.span import Span

TAB = 4
"""Columns from one tab stop to the next."""
WIDTH = 120
"""Source lines longer than this many characters are shown in part, around the caret."""

_Paint = Callable[[str, str], str]
_SEVERITY_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_BOLD, _FRAME, _LABEL = "1", "34", "36"


@dataclass(frozen=True)
class _Mark:
    """A place to be underlined, with what stands behind the line under it."""

    span: Span
    message: str
    primary: bool


def render(diagnostic: Diagnostic, colour: bool = False, width: int | None = None) -> str:
    """The diagnostic as lines of text without a final line end.

    Every place shows its source line with a line of carets (or, for labels, dashes) under it. Tabs are expanded in both, wide
    characters count two columns, combining ones none. Characters that a terminal would obey are shown as `\ufffd`. Words that
    are longer than `width` columns go on in the next line, set in; lines of the source are as they are, and so is what stands
    behind their carets.
    """
    paint = _paint if colour else _plain
    tone = _SEVERITY_COLOURS[diagnostic.severity]
    lines = _head(diagnostic, tone, paint, width)
    marks = [_Mark(diagnostic.span, "", True)] if diagnostic.span is not None else []
    marks += [_Mark(label.span, label.message, False) for label in diagnostic.labels]
    gutter = max((len(str(mark.span.file.position(mark.span.start)[0])) for mark in marks), default=1)
    if marks:
        lines += _places(marks, gutter, tone, paint)
    for kind, text in [("note", note) for note in diagnostic.notes] + [("help", diagnostic.help or "")]:
        if text:
            lines += _remark(kind, printable(text, keep="\n"), gutter, paint, width)
    return "\n".join(lines)


def _head(diagnostic: Diagnostic, tone: str, paint: _Paint, width: int | None) -> list[str]:
    """What is wrong, behind how bad it is and the code."""
    label = f"{diagnostic.severity.value}[{diagnostic.code}]"
    first, *rest = wrapped(f"{label}: {printable(diagnostic.message)}", width)
    return [paint(label, tone) + paint(first.removeprefix(label), _BOLD), *(paint(line, _BOLD) for line in rest)]


def _remark(kind: str, text: str, gutter: int, paint: _Paint, width: int | None) -> list[str]:
    """A note or the help, all its lines under the beginning of its words."""
    blanks = " " * gutter
    label = f"{blanks} = {kind}:"
    first, *rest = text.split("\n")
    lines = wrapped(f"{label} {first}", width, len(label) - gutter)
    for line in rest:
        lines += wrapped(" " * (len(label) + 1) + line, width, 0)
    return [blanks + paint(" = ", _FRAME) + paint(kind, _BOLD) + ":" + lines[0].removeprefix(label), *lines[1:]]


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The diagnostic as plain data. Lines and columns count from one, columns in characters; the end is exclusive. Where there
    is no text to point at, the file and the places are None."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        **_place(diagnostic.span),
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "labels": [{"message": label.message, **_place(label.span)} for label in diagnostic.labels],
        "fixes": [_fix(fix) for fix in diagnostic.fixes],
    }


def _fix(fix: Fix) -> dict[str, Any]:
    match fix:
        case Rewrite(edits=edits):
            return {"kind": "edits", "edits": [{"text": edit.text, **_place(edit.span)} for edit in edits]}
        case Command(words=words):
            return {"kind": "command", "words": list(words)}
        case Call(code=code):
            return {"kind": "call", "code": code}
        case _:
            assert_never(fix)


def printable(text: str, keep: str = "") -> str:
    """The text with every character that is not printable replaced, except those of `keep`."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in keep else "\ufffd" for character in text)


def _place(span: Span | None) -> dict[str, Any]:
    if span is None:
        return dict.fromkeys(("file", "line", "column", "end_line", "end_column"))
    line, column = span.file.position(span.start)
    end_line, end_column = span.file.position(span.end)
    return {"file": span.file.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _plain(text: str, _: str) -> str:
    return text


def _paint(text: str, tone: str) -> str:
    return f"\x1b[{tone}m{text}\x1b[0m"


def _places(marks: list[_Mark], gutter: int, tone: str, paint: _Paint) -> list[str]:
    """All places in the order of the text, the file of the first mark first; marks next to each other share their line."""
    main = marks[0].span.file
    order = sorted(marks, key=lambda mark: (mark.span.file is not main, mark.span.file.name, mark.span.start, not mark.primary))
    line, column = main.position(marks[0].span.start)
    lines = [" " * gutter + paint("--> ", _FRAME) + f"{printable(main.name)}:{line}:{column}"]
    margin = " " * gutter + paint(" |", _FRAME)
    shown = (main, 0)
    lines.append(margin)
    for mark in order:
        file = mark.span.file
        number, start = file.position(mark.span.start)
        begin, end = file.bounds(number)
        window, prefix, width = _window(file.text, begin, end, mark.span)
        if file is not shown[0]:
            lines += [" " * gutter + paint("::: ", _FRAME) + f"{printable(file.name)}:{number}:{start}", margin]
        elif shown[1] and number > shown[1] + 1:
            lines.append(" " * gutter + paint(" :", _FRAME))
        if (file, number) != shown or end - begin > WIDTH:
            lines.append(paint(f"{number:>{gutter}} | ", _FRAME) + window)
        shown = (file, number)
        under = paint("^" * width, tone) if mark.primary else paint("-" * width, _LABEL)
        lines.append(f"{margin} {' ' * prefix}{under} {printable(mark.message)}".rstrip())
    return lines


def _window(text: str, begin: int, end: int, span: Span) -> tuple[str, int, int]:
    """The line of a text that begins and ends at two offsets, as shown; how many columns stand before its marked part, and how
    many columns that has, at least one. Of a long line no more is looked at than is shown: many errors may point into one."""
    start = min(span.start, end)
    stop = max(start, min(span.end, end))
    left, right = "", ""
    if end - begin > WIDTH:
        first = max(begin, min(start - WIDTH // 2, end - WIDTH))
        left, right = "…" if first > begin else "", "…" if first + WIDTH < end else ""
        begin, end = first, first + WIDTH
        stop = min(stop, end)
    before, marked, after = text[begin:start], text[start:stop], text[stop:end]
    shown = _expand(left + before, 0)
    prefix = _columns(shown)
    middle = _expand(marked, prefix)
    rest = _expand(after, prefix + _columns(middle))
    return shown + middle + rest + right, prefix, max(1, _columns(middle))


def _expand(text: str, column: int) -> str:
    """The text, which begins at a column, with tabs as blanks and nothing that a terminal would obey."""
    if "\t" not in text:
        return printable(text)
    parts: list[str] = []
    for piece in text.split("\t"):
        parts.append(printable(piece))
        column += _columns(parts[-1])
        blanks = TAB - column % TAB
        parts.append(" " * blanks)
        column += blanks
    return "".join(parts[:-1])


def _columns(text: str) -> int:
    """How many terminal columns a text without tabs takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
