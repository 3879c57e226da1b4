"""What the compiler has to say about a user's text or data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from stmlang.source.advice import Fix
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
        from stmlang.source.render import render

        return "\n" + "\n\n".join(render(diagnostic) for diagnostic in self.diagnostics)
