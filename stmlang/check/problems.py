"""Collecting what is wrong with a spec: everything once, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from stmlang.check.foreign_names import DEGREES, FUNCTIONS, NAMES, NO_FUNCTIONS, NO_NAMES
from stmlang.check.search_path import library_functions
from stmlang.source.advice import Advice, fixes_of, replaced, words_of, written
from stmlang.source.diagnostic import Diagnostic, Label, Severity
from stmlang.source.span import SourceFile, Span
from stmlang.source.suggest import nearest

MOST_LISTED = 40
"""Names in a message: a list of thousands helps nobody, and one in each of thousands of messages is too much to print."""


class Problems:
    """Diagnostics found so far. The same finding at the same place counts once, however often it is reached."""

    def __init__(self, main: SourceFile) -> None:
        self._main = main
        self._characters = 300_000  # to be compared for suggestions in all, so that a long text full of errors stays fast
        self._reported: dict[tuple[str, str, Span | None], Diagnostic] = {}
        self._failed = False

    def error(
        self,
        code: str,
        message: str,
        span: Span | None,
        *notes: str,
        help: str | Advice | None = None,
        labels: Iterable[Label] = (),
        severity: Severity = Severity.ERROR,
    ) -> None:
        self.add(Diagnostic(code, message, span, notes, words_of(help), tuple(labels), severity, fixes_of(help)))

    def warn(self, code: str, message: str, span: Span, *notes: str, help: str | Advice | None = None) -> None:
        self.error(code, message, span, *notes, help=help, severity=Severity.WARNING)

    def add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.message, diagnostic.span)
        self._reported.setdefault(key, diagnostic)
        self._failed |= diagnostic.severity is Severity.ERROR

    def near(
        self, name: str, known: Iterable[str], form: str = "{}", *, at: Span | None = None, put: str | None = None
    ) -> str | Advice | None:
        """`did you mean ...?` if a known name is near; `form` is how that name is shown, `at` where the wrong one stands, and
        `put` how the right one is written there if not by itself."""
        cost = len(name) + 4  # looking at a candidate at all costs something
        candidates = list(islice(known, self._characters // cost))
        self._characters -= len(candidates) * cost
        near = nearest(name, candidates)
        if near is None:
            return None
        words = f"did you mean `{form.format(near)}`?"
        return words if at is None else replaced(words, at, (put or "{}").format(near))

    def meant(self, name: str, known: Iterable[str], at: Span) -> str | Advice | None:
        """What to write for the name of a value that means nothing: its name here, or else a known name that is near."""
        if name in NO_NAMES:
            return NO_NAMES[name]
        return written(at, NAMES[name]) if name in NAMES else self.near(name, known, at=at)

    def called(self, name: str, known: Iterable[str], at: Span) -> str | Advice | None:
        """The same for the name of a function."""
        if name in NO_FUNCTIONS:
            return NO_FUNCTIONS[name]
        if name in DEGREES:
            return f"write `{DEGREES[name]}`"
        if name in FUNCTIONS:
            return written(at, FUNCTIONS[name])
        return self.near(name, known, at=at) or _of_the_library(name, at)

    @property
    def failed(self) -> bool:
        """Whether an error was found."""
        return self._failed

    @property
    def count(self) -> int:
        """How many things were found."""
        return len(self._reported)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """Findings without a place first, then those of imported files, then those of the text itself, each in its order."""

        def place(diagnostic: Diagnostic) -> tuple[int, str, int, int]:
            span = diagnostic.span
            if span is None:
                return 0, "", 0, 0
            return 2 if span.file is self._main else 1, span.file.name, span.start, span.end

        return tuple(sorted(self._reported.values(), key=place))


def _of_the_library(name: str, at: Span) -> Advice | None:
    """The import that brings a function of the installed library."""
    path = library_functions().get(name)
    if path is None:
        return None
    line = f"use {path} ({name})"
    return replaced(f"`{line}` brings it", Span(at.file, 0, 0), f"{line}\n")


def arrows(names: Sequence[str]) -> str:
    """`a -> b -> a`, with the middle left out where it is long."""
    shown = names if len(names) <= 20 else [*names[:10], "...", *names[-10:]]
    return " -> ".join(shown)


def listed(names: Iterable[str], word: str = "and") -> str:
    """`a`, `b` and `c`; of many names the first ones."""
    quoted = [f"`{name}`" for name in islice(names, MOST_LISTED + 1)]
    if len(quoted) > MOST_LISTED:
        quoted[-1] = "others"
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}" if quoted else "none"
