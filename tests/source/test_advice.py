"""Edits of a text."""

from __future__ import annotations

import pytest

from stmlang.source.advice import Advice, Command, Edit, Rewrite, apply, fixes_of, inserted, replaced, words_of
from stmlang.source.span import SourceFile, Span

FILE = SourceFile("spec.stm", "abcdef")


def edit(start: int, end: int, text: str) -> Edit:
    return Edit(Span(FILE, start, end), text)


def test_edits_are_made_in_the_order_of_the_text() -> None:
    changed = apply(Rewrite((edit(4, 5, "E"), edit(0, 0, "<"), edit(1, 3, ""))))
    assert (changed.name, changed.text) == ("spec.stm", "<adEf")


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        apply(Rewrite((edit(0, 3, ""), edit(2, 4, ""))))
    with pytest.raises(ValueError, match="one text"):
        apply(Rewrite((edit(0, 1, ""), Edit(Span(SourceFile("o.stm", "abcdef"), 2, 3), ""))))


def test_advice_is_words_and_what_a_machine_can_do() -> None:
    span = Span(FILE, 1, 2)
    assert apply(replaced("w", span, "B").fixes[0]).text == "aBcdef"  # pyright: ignore[reportArgumentType]
    assert apply(inserted("w", span, "!").fixes[0]).text == "ab!cdef"  # pyright: ignore[reportArgumentType]
    command = Command(("stmlang", "doctor"))
    assert (words_of(Advice("w", (command,))), fixes_of(Advice("w", (command,)))) == ("w", (command,))
    assert (words_of("w"), fixes_of("w"), words_of(None), fixes_of(None)) == ("w", (), None, ())
