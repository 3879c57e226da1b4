"""What can be done about a finding, so that a machine can do it: an editor's quick fix, or a test that follows every word.

Words for people stand in a diagnostic's `help`. The fixes beside them are alternatives; each is whole by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stmlang.source.span import SourceFile, Span


@dataclass(frozen=True)
class Edit:
    """What is to stand in place of a piece of a text; an empty span is a place to insert at."""

    span: Span
    text: str


@dataclass(frozen=True)
class Rewrite:
    """Edits of one text that belong together and do not overlap."""

    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Command:
    """A command line, a word for each argument: `("stmlang", "check", "x.stm")`."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """A Python expression, with `stmlang`, `jax` and what the caller has under the names that the message uses."""

    code: str


Fix = Rewrite | Command | Call


@dataclass(frozen=True)
class Advice:
    """What to do about a finding: in words, and as far as a machine can do it, how."""

    text: str
    fixes: tuple[Fix, ...] = ()


def replaced(text: str, span: Span, by: str) -> Advice:
    """The advice to write something in place of a piece of the text."""
    return Advice(text, (Rewrite((Edit(span, by),)),))


def written(span: Span, by: str) -> Advice:
    """The advice, in the plainest words, to write something in place of a piece of the text."""
    return replaced(f"write `{by}`", span, by)


def inserted(text: str, span: Span, piece: str) -> Advice:
    """The advice to write something right behind a piece of the text."""
    return replaced(text, Span(span.file, span.end, span.end), piece)


def words_of(help: str | Advice | None) -> str | None:
    """What people read of an advice."""
    return help.text if isinstance(help, Advice) else help


def fixes_of(help: str | Advice | None) -> tuple[Fix, ...]:
    """What a machine can do of an advice."""
    return help.fixes if isinstance(help, Advice) else ()


def apply(rewrite: Rewrite) -> SourceFile:
    """The text with all edits made.

    Raises ValueError where edits overlap or are of several texts: whoever wrote the suggestion is wrong then.
    """
    edits = sorted(rewrite.edits, key=lambda edit: (edit.span.start, edit.span.end))
    file = edits[0].span.file
    return SourceFile(file.name, "".join(_pieces(file, edits)))


def _pieces(file: SourceFile, edits: Iterable[Edit]) -> Iterable[str]:
    at = 0
    for edit in edits:
        if edit.span.file is not file or edit.span.start < at:
            raise ValueError("edits of one text must not overlap")
        yield file.text[at : edit.span.start]
        yield edit.text
        at = edit.span.end
    yield file.text[at:]
