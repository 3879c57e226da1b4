"""Whatever is typed, every question has an answer whose places lie in the text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stmlang.check import Kept, examine, open_spec
from stmlang.lsp.colours import painted
from stmlang.lsp.completion import completion
from stmlang.lsp.document import Document, Text
from stmlang.lsp.findings import findings, quick_fixes
from stmlang.lsp.hints import hints
from stmlang.lsp.hover import hover
from stmlang.lsp.navigation import Refused, definition, references, renamable, rename
from stmlang.lsp.positions import offset_at, place_at
from stmlang.lsp.signature import signature_help
from stmlang.lsp.structure import folds, formatting, outline
from stmlang.source.advice import Rewrite, apply
from stmlang.source.span import SourceFile, Span
from stmlang.syntax.formatter import format_source
from tests.lsp.helpers import CORPUS, document, saved

PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "=",
    "\n",
    "\r\n",
    "\r",
    ";",
    ",",
    "->",
    "|",
    "\0",
    "\ud800",
    "😀",
    "é",
    "\ufeff",
    '"',
    "#",
]
WORDS = [
    "scan ",
    "def f(a) = ",
    "use std.gates (",
    "topology t = ",
    "linear(x, ",
    "out = ",
    "k = ",
    "over = ",
    "transition[",
    "'",
]
TEXTS = {path: path.read_bytes().decode("utf-8", "replace") for path in CORPUS if path.stat().st_size < 4_000}


SEVERAL = [
    "topology t = grid(rows, cols)\n",
    "def f(a) = sigmoid(a)\n",
    "scan a on t {\n    source = f(linear(x))\n    transition[out, in] = 0.5\n}\n",
    "scan b(n = 3) on chain(time) {\n    g = f(0)\n    source = n * g\n    transition = tanh(linear(x))\n    unused = 1\n}\n",
    "scan c on t {\n    source = 1\n    transition = 2\n}\n",
]
"""Pieces of texts that see each other."""


@st.composite
def edited(draw: st.DrawFn) -> str:
    """A text of the corpus after a few edits."""
    text = draw(st.sampled_from(sorted(TEXTS.values())))
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, len(text))), draw(st.integers(0, 40))
        text = text[:start] + draw(st.sampled_from([*PIECES, *WORDS, ""])) + text[start + length :]
    return text


def inside(text: Document, span: Span) -> None:
    assert 0 <= span.start <= span.end <= len(span.file.text)
    if span.file.name == text.source.name:
        assert span.file == text.source


def ask_everything(text: Document, offset: int) -> None:
    shown = hover(text, offset)
    if shown is not None:
        inside(text, shown.span)
        assert shown.text
    place = definition(text, offset)
    if place is not None:
        inside(text, place)
    for _, entry in references(text, offset, ()):
        inside(text, entry.span)
    if not isinstance(renamable(text, offset), Refused):
        renamed = rename(text, offset, "another_name", ())
        assert isinstance(renamed, Refused) or all(apply(rewrite) for rewrite in renamed.values())
    for item in completion(text, offset):
        inside(text, item.span)
        assert item.span.end == offset
    help = signature_help(text, offset)
    assert help is None or help.active is None or help.active < len(help.arguments)


def ask_of_all(text: Document) -> None:
    length = len(text.source.text)
    for diagnostic in findings(text):
        assert diagnostic.span is not None
        inside(text, diagnostic.span)
    for fix in quick_fixes(text, 0, length):
        assert fix.title
        apply(fix.rewrite)
    assert all(0 <= hint.offset <= length for hint in hints(text, 0, length))
    for entry in outline(text):
        assert entry.span.start <= entry.name_span.start <= entry.name_span.end <= entry.span.end
    assert all(1 <= fold.first < fold.last <= len(text.source.line_starts) for fold in folds(text))
    pieces = painted(text)
    assert all(before.span.end <= after.span.start for before, after in pairwise(pieces))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edited(), st.integers(-3, 80), st.integers(-3, 200))
def test_every_question_about_any_text_is_answered(content: str, line: int, character: int) -> None:
    text = document(content)
    offset = offset_at(text.source, line, character)
    assert 0 <= offset <= len(text.source.text)
    ask_everything(text, offset)
    ask_of_all(text)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_kept_of_earlier_versions_changes_nothing(data: st.DataObject) -> None:
    content = "\n".join(data.draw(st.lists(st.sampled_from(SEVERAL), min_size=1, max_size=3)))
    kept: Kept = {}
    for _ in range(3):
        text, fresh = Document(Text("a.stm", content), kept=kept), document(content)
        assert findings(text) == findings(fresh)
        assert [scan for _, scan in text.surveyed.scans] == [scan for _, scan in fresh.surveyed.scans]
        assert hints(text, 0, len(content)) == hints(fresh, 0, len(content))
        start, length = data.draw(st.integers(0, len(content))), data.draw(st.integers(0, 3))
        content = content[:start] + data.draw(st.sampled_from(["", "0", "x", " ", "\n", "2 * "])) + content[start + length :]


UTF_8 = [path for path in CORPUS if "\N{REPLACEMENT CHARACTER}" not in path.read_bytes().decode("utf-8", "replace")]


@pytest.mark.parametrize("path", UTF_8[::9], ids=lambda path: path.stem)
def test_findings_are_those_of_check(path: Path) -> None:
    text = saved(path)
    said = [(entry.code, entry.message) for entry in text.surveyed.diagnostics]
    if text.text.refused:
        return
    examined = examine(open_spec(path))
    assert said == [(entry.code, entry.message) for entry in examined.diagnostics]
    assert len(findings(text)) >= len(said)


@given(st.text(st.sampled_from("ab\n\r😀é\t#"), max_size=30))
def test_positions_there_and_back(content: str) -> None:
    source = SourceFile("a", content)
    for offset in range(len(content) + 1):
        if content[offset - 1 : offset + 1] != "\r\n":
            assert offset_at(source, *place_at(source, offset)) == offset


def test_positions_outside_of_the_text_lead_to_its_edges() -> None:
    source = SourceFile("a", "ab\n😀c")
    assert [offset_at(source, 0, 99), offset_at(source, 99, 0), offset_at(source, -1, 5), offset_at(source, 0, -5)] == [
        2,
        5,
        0,
        0,
    ]
    assert [offset_at(source, 1, units) for units in range(5)] == [3, 3, 4, 5, 5]  # a half of a character is its beginning
    assert place_at(source, 4) == (1, 2)
    assert place_at(source, -7) == (0, 0)


@pytest.mark.parametrize("path", [path for path in CORPUS if path.parent.name == "good"][::6], ids=lambda path: path.stem)
def test_formatting_is_that_of_fmt(path: Path) -> None:
    text = saved(path)
    messy = document(text.source.text.replace("    ", " ").replace(" = ", "="))
    expected = format_source(SourceFile("a", messy.source.text))
    edits = formatting(messy)
    assert (apply(Rewrite(tuple(edits))).text if edits else messy.source.text) == expected


def test_a_text_that_is_none_is_answered_too() -> None:
    for content in ("\0", "scan s on chain(t) {\x01}", "a" * (1 << 20) + "b", "\ud800", ""):
        text = Document(Text("a.stm", content))
        ask_everything(text, min(3, len(content)))
        ask_of_all(text)
        assert bool(findings(text)) == bool(content)
