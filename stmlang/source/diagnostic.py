"""What the compiler has to say about a user's text or data, as text for people and as plain data for editors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, assert_never

from stmlang.source.advice import Call, Command, Fix, Rewrite
from stmlang.source.drawing import Mark, gutter_of, headline, painter, printable, remark, underlined
from stmlang.source.span import Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Label:
    """A second place that explains the first one: where a name was declared, the other half of a clash."""

    span: Span
    message: str


@dataclass(frozen=True)
class Diagnostic:
    """One finding. `code` is a key of `stmlang.source.codes.CODES`.

    `message` says what is wrong in one sentence; `notes` say why or what the rule is; `help` says what to write instead, and
    `fixes` say it to a machine as far as it can be said: alternatives, the likeliest first.
    `span` is None only where there is no text to point at (a run-time graph, a command line).
    """

    code: str
    message: str
    span: Span | None
    notes: tuple[str, ...] = ()
    help: str | None = None
    labels: tuple[Label, ...] = ()
    severity: Severity = Severity.ERROR
    fixes: tuple[Fix, ...] = ()


class StabilityWarning(UserWarning):
    """A stability mode was inserted that nobody asked for: where the transition is larger than the mode allows, numbers are
    others than the equations say."""


class SpecError(Exception):
    """The user's spec or data is wrong. Carries every diagnostic that was found, in source order."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(diagnostics)

    def __str__(self) -> str:
        return "\n" + "\n\n".join(render(diagnostic) for diagnostic in self.diagnostics)


class UnavailableError(SpecError, AttributeError):
    """For an attribute that an object of this type has in general and cannot say yet. `hasattr`, `getattr` with a default,
    `inspect` and completion take it for one that is not there; whoever asks for it reads why."""


_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}


def render(diagnostic: Diagnostic, colour: bool = False, width: int | None = None) -> str:
    """The diagnostic as lines of text without a final line end.

    Every place shows its source line with a line of carets (or, for labels, dashes) under it. Tabs are expanded in both, wide
    characters count two columns, combining ones none. Characters that a terminal would obey are shown as `\ufffd`. Words that
    are longer than `width` columns go on in the next line, set in; lines of the source are as they are, and so is what stands
    behind their carets.
    """
    paint = painter(colour)
    tone = _COLOURS[diagnostic.severity]
    label = f"{diagnostic.severity.value}[{diagnostic.code}]"
    lines = headline(label, diagnostic.message, tone, paint, width)
    marks = [Mark(diagnostic.span, "", True)] if diagnostic.span is not None else []
    marks += [Mark(label.span, label.message, False) for label in diagnostic.labels]
    gutter = gutter_of(marks)
    if marks:
        lines += underlined(marks, gutter, tone, paint)
    for kind, text in [("note", note) for note in diagnostic.notes] + [("help", diagnostic.help or "")]:
        if text:
            lines += remark(kind, printable(text, keep="\n"), gutter, paint, width)
    return "\n".join(lines)


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


def _place(span: Span | None) -> dict[str, Any]:
    if span is None:
        return dict.fromkeys(("file", "line", "column", "end_line", "end_column"))
    line, column = span.file.position(span.start)
    end_line, end_column = span.file.position(span.end)
    return {"file": span.file.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column}
