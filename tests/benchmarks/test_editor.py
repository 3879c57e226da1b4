"""The benchmark of the language server measures what it says: every question, on a text that is right."""

from __future__ import annotations

from benchmarks.editor import LINES, QUESTIONS, measure, text_of
from stmlang.lsp.findings import errors
from tests.lsp.helpers import document


def test_the_text_is_long_and_right() -> None:
    text = text_of(LINES)
    assert LINES <= text.count("\n") <= LINES + 60
    assert errors(document(text)) == 0


def test_every_question_is_timed() -> None:
    seconds = measure(LINES, 1)
    assert set(seconds) == set(QUESTIONS)
    assert all(len(times) == 1 and min(times) > 0 for times in seconds.values())
