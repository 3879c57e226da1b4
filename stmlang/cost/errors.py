"""Raising what the planner has to say."""

from __future__ import annotations

from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.span import Span


def plan_error(
    code: str, message: str, *, span: Span | None = None, notes: tuple[str, ...] = (), help: str | None = None
) -> SpecError:
    """A SpecError with one diagnostic."""
    return SpecError([Diagnostic(code, message, span, notes, help)])
