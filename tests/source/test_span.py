from __future__ import annotations

import pytest

from stmlang.source.span import SourceFile, Span


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_positions_count_lines_and_columns_from_one(newline: str) -> None:
    file = SourceFile("a", f"ab{newline}{newline}cd{newline}")
    assert file.position(0) == (1, 1)
    assert file.position(2) == (1, 3)
    assert file.position(file.text.index("d")) == (3, 2)
    assert file.position(len(file.text)) == (4, 1)
    assert [file.line(number) for number in (1, 2, 3, 4)] == ["ab", "", "cd", ""]


def test_spans_join() -> None:
    file = SourceFile("a", "abcdef")
    assert Span(file, 4, 5).to(Span(file, 1, 2)).text == "bcde"
