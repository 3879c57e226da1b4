"""Tables and paragraphs that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.source.columns import columns, table, wrapped
from stmlang.source.wording import count

ROWS = [
    ("", "candidate", "flops", "ops", "time", "why it lost"),
    (">", "rows axis=0 rows=7", "130 M", "1,483", "6.38 ms", "chosen"),
    ("", "raster segments=1", "2.79 G", "1,472", "39.2 ms", "6.1x slower: raster sweep, adjoint takes 22.6 ms for 1.81 Gflop"),
]


def test_with_room_it_is_a_table():
    assert table(ROWS, {0, 1, 5}) == table(ROWS, {0, 1, 5}, 200, (3, 2)) == columns(ROWS, {0, 1, 5})


def test_columns_are_left_out_before_words_are_broken():
    lines = table(ROWS, {0, 1, 5}, 70, (3, 2))
    assert max(map(len, lines)) <= 70
    assert lines[0].split()[:3] == ["candidate", "flops", "time"]
    assert lines[-1] == "(ops: in a wider window)"
    assert lines[2].rstrip().endswith("6.1x slower: raster sweep,")


def test_words_stand_below_where_there_is_no_room():
    lines = table(ROWS, {0, 1, 5}, 45, (3, 2))
    assert max(map(len, lines)) <= 45
    assert "    chosen" in lines
    assert "why it lost" not in "\n".join(lines)


@given(st.integers(30, 200), st.lists(st.lists(st.text("ab ", max_size=30), min_size=4, max_size=4), min_size=2, max_size=5))
def test_nothing_is_lost_but_what_is_named(width: int, rows: list[list[str]]):
    given = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    text = " ".join(" ".join(table(given, {0, 3}, width, (2,))).split())
    for row in given[1:]:
        for cell in (row[0], row[1]):
            assert cell in text
        for word in row[3].split():
            assert word in text


@pytest.mark.parametrize("width", [60, 80])
def test_paragraphs(width):
    lines = wrapped("short\n    " + "word " * 60, width)
    assert max(map(len, lines)) <= width
    assert lines[1].startswith("    word")
    assert lines[2].startswith("        word")


def test_counts():
    assert [count(number, "head") for number in (0, 1, 2, 2000)] == ["0 heads", "1 head", "2 heads", "2,000 heads"]
    assert count(2, "entry", "entries") == "2 entries"
