from __future__ import annotations

import re
from typing import SupportsIndex

import pytest

from stmlang.source.diagnostic import Diagnostic, Label, Severity, SpecError, render, to_json
from stmlang.source.drawing import WIDTH
from stmlang.source.span import SourceFile, Span


def mark(text: str, start: int, end: int, name: str = "spec.stm", **extra: object) -> Diagnostic:
    return Diagnostic("STM0201", "message", Span(SourceFile(name, text), start, end), **extra)  # pyright: ignore


def caret(text: str, start: int, end: int) -> tuple[str, str]:
    """The source line and the line under it, without the margin."""
    lines = render(mark(text, start, end)).splitlines()
    return lines[3].split("| ", 1)[1], lines[4].split("| ", 1)[1]


def test_the_whole() -> None:
    text = "first\nlet x = 1\n\n\nlet x = 2\n"
    file = SourceFile("a/b.stm", text)
    found = Diagnostic(
        "STM0201",
        "`x` is declared twice",
        Span(file, 22, 23),
        notes=("names are unique", "really\nso"),
        help="rename it",
        labels=(Label(Span(file, 10, 11), "first here"),),
    )
    assert render(found) == (
        "error[STM0201]: `x` is declared twice\n"
        " --> a/b.stm:5:5\n"
        "  |\n"
        "2 | let x = 1\n"
        "  |     - first here\n"
        "  :\n"
        "5 | let x = 2\n"
        "  |     ^\n"
        "  = note: names are unique\n"
        "  = note: really\n"
        "          so\n"
        "  = help: rename it"
    )


def test_labels_in_other_files_name_them() -> None:
    other = Label(Span(SourceFile("other.stm", "def f(a) = a"), 4, 5), "declared here")
    lines = render(mark("x = f(1)", 4, 5, labels=(other,))).splitlines()
    assert lines[5:] == [" ::: other.stm:1:5", "  |", "1 | def f(a) = a", "  |     - declared here"]


@pytest.mark.parametrize(
    ("text", "start", "end", "line", "under"),
    [
        ("\ta\tbb = 1", 3, 5, "    a   bb = 1", "        ^^"),
        ("ab\tc", 2, 3, "ab  c", "  ^^"),
        ("日本 = x", 5, 6, "日本 = x", "       ^"),
        ("日本 = x", 1, 2, "日本 = x", "  ^^"),
        ("e\u0301x y", 4, 5, "e\u0301x y", "   ^"),
        ("a = ", 4, 4, "a = ", "    ^"),
        ("a = 1\n", 5, 5, "a = 1", "     ^"),
        ("a = 1\r\nb", 5, 6, "a = 1", "     ^"),
        ("a = (1\n+ 2)", 4, 12, "a = (1", "    ^^"),
        ("a\x1b[31m", 0, 1, "a\ufffd[31m", "^"),
    ],
)
def test_carets_stand_under_what_they_mean(text: str, start: int, end: int, line: str, under: str) -> None:
    assert caret(text, start, end) == (line, under)


def test_the_end_of_an_empty_text() -> None:
    assert render(mark("", 0, 0)).splitlines()[-1] == "  | ^"


@pytest.mark.parametrize("at", [0, 70, 5_000, 9_998])
def test_long_lines_are_shown_in_part(at: int) -> None:
    text = "a" * at + "bb" + "c" * (9_998 - at)
    line, under = caret(text, at, at + 2)
    assert len(line) <= WIDTH + 2
    assert line[under.index("^") :][:2] == "bb"
    assert under.count("^") == 2


def test_of_a_long_line_only_what_is_shown_is_looked_at() -> None:
    """A line may be as long as a text, and thousands of errors may point into it."""

    class Counted(str):
        __slots__ = ()
        seen = 0

        def __getitem__(self, key: SupportsIndex | slice) -> str:
            found = super().__getitem__(key)
            Counted.seen += len(found)
            return found

    text = Counted("a = b; " * 10_000)
    assert "^" in render(mark(text, 35_000, 35_001))
    assert 0 < Counted.seen < 2 * WIDTH


def test_no_text_to_point_at() -> None:
    found = Diagnostic("STM0001", "there is no file `x`", None, help="look elsewhere", severity=Severity.WARNING)
    assert render(found) == "warning[STM0001]: there is no file `x`\n  = help: look elsewhere"
    assert to_json(found)["line"] is None


def test_colour_only_on_request_and_only_around_the_same_text() -> None:
    found = mark("a = 1", 0, 1, notes=("why",), help="how")
    plain, coloured = render(found), render(found, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_words_are_broken_to_fit_and_the_source_is_not() -> None:
    text = "gate = " + "a + " * 20 + "a"
    notes = ("one two three four five six", "first\nsecond which is far too long to fit")
    found = Diagnostic("STM0201", "a message of several words here", Span(SourceFile("a.stm", text), 0, 4), notes, help="short")
    assert render(found, width=40).splitlines() == [
        "error[STM0201]: a message of several",
        "    words here",
        " --> a.stm:1:1",
        "  |",
        f"1 | {text}",
        "  | ^^^^",
        "  = note: one two three four five six",
        "  = note: first",
        "          second which is far too long",
        "          to fit",
        "  = help: short",
    ]
    assert re.sub(r"\x1b\[[0-9;]*m", "", render(found, colour=True, width=40)) == render(found, width=40)


def test_json() -> None:
    label = Label(Span(SourceFile("o.stm", "x"), 0, 1), "here")
    assert to_json(mark("a\n\tbc", 3, 5, notes=("n",), labels=(label,))) == {
        "code": "STM0201",
        "severity": "error",
        "message": "message",
        "file": "spec.stm",
        "line": 2,
        "column": 2,
        "end_line": 2,
        "end_column": 4,
        "notes": ["n"],
        "help": None,
        "labels": [{"message": "here", "file": "o.stm", "line": 1, "column": 1, "end_line": 1, "end_column": 2}],
        "fixes": [],
    }


def test_an_error_prints_all_its_diagnostics() -> None:
    text = str(SpecError([mark("a", 0, 1), mark("b", 0, 1)]))
    assert text.count("error[STM0201]") == 2
