"""What is wrong with a text, and what can be done about it at a click."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stmlang.lsp.document import Document
from stmlang.lsp.knowledge import facts_about
from stmlang.lsp.symbols import gates_of
from stmlang.scan.scan import Mode
from stmlang.source.advice import Rewrite
from stmlang.source.diagnostic import Diagnostic, Label, Severity
from stmlang.source.span import Span
from stmlang.syntax import tree

UNUSED = frozenset({"STM1034", "STM1035", "STM2042"})
"""The codes of what means nothing and can be left away."""
_MOST = 60
"""Characters of a fix's title that come from the text it writes."""


def findings(document: Document) -> tuple[Diagnostic, ...]:
    """Everything that `stmlang check` says of a text, each finding at a place of this text: one of an imported file stands
    where that is imported, with the other place as a label."""
    surveyed = document.surveyed
    changes: tuple[Diagnostic, ...] = ()
    if surveyed.scan is not None and surveyed.scan.stabilize is not Mode.NONE:
        facts = facts_about(surveyed.scan)
        item = next(item for item, scan in surveyed.scans if scan is surveyed.scan)
        changes = () if facts is None else tuple(replace(change, span=_transition(item)) for change in facts.changes)
    return tuple(_here(document, diagnostic) for diagnostic in (*surveyed.diagnostics, *changes))


def _transition(item: tree.ScanItem) -> Span:
    """Where a scan's transition is written in this version of the text."""
    return gates_of(item)["transition"][0].target.span


def _here(document: Document, diagnostic: Diagnostic) -> Diagnostic:
    span = diagnostic.span
    if span is not None and span.file == document.source:
        return diagnostic
    if document.text.refused and span is not None:  # a text that is none: its places are those of a readable copy
        shift = len(document.source.text) - len(span.file.text)  # a byte order mark
        return replace(diagnostic, span=Span(document.source, span.start + shift, span.end + shift))
    own = next((label.span for label in diagnostic.labels if label.span.file is document.source), Span(document.source, 0, 0))
    there = () if span is None else (Label(span, diagnostic.message),)
    return replace(diagnostic, span=own, labels=(*there, *diagnostic.labels))


def words_of(diagnostic: Diagnostic) -> str:
    """A finding as an editor shows it: what is wrong, why, and what to write instead."""
    help = [f"help: {diagnostic.help}"] if diagnostic.help else []
    return "\n".join([diagnostic.message, *diagnostic.notes, *help])


@dataclass(frozen=True)
class QuickFix:
    """Edits that do what a finding suggests."""

    title: str
    diagnostic: Diagnostic
    rewrite: Rewrite


def quick_fixes(document: Document, start: int, end: int) -> list[QuickFix]:
    """What machines can do about the findings that touch a range, the likeliest first for each."""
    fixes: list[QuickFix] = []
    for diagnostic in findings(document):
        span = diagnostic.span
        if span is None or span.end < start or span.start > end:
            continue
        rewrites = [fix for fix in diagnostic.fixes if isinstance(fix, Rewrite)]
        for place, rewrite in enumerate(rewrites):
            title = diagnostic.help if place == 0 and diagnostic.help else _title(rewrite)
            fixes.append(QuickFix(" ".join(title.replace("`", "").split()), diagnostic, rewrite))
    return fixes


def _title(rewrite: Rewrite) -> str:
    """What a fix does, by its first edit."""
    edit = rewrite.edits[0]
    shown = " ".join(edit.text.split())
    shown = shown if len(shown) <= _MOST else f"{shown[:_MOST]}..."
    if not shown:
        return f"take away {edit.span.text.strip()[:_MOST]}"
    return f"write {shown}"


def errors(document: Document) -> int:
    """How many errors there are."""
    return sum(diagnostic.severity is Severity.ERROR for diagnostic in findings(document))
