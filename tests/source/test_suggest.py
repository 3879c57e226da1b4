from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.source.suggest import edit_distance, nearest
from stmlang.source.wording import MAX_QUOTED, listing, quoted


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("sigmod", ["sigmoid", "softplus"], "sigmoid"),
        ("Source", ["source_", "source"], "source"),
        ("soruce", ["source"], "source"),
        ("transitoin", ["transition"], "transition"),
        ("x", ["q", "k"], None),
        ("ot", ["out", "in"], "out"),
        ("decay", ["delta"], None),
        ("same", ["same"], None),
        ("abc", [], None),
        ("rows", ["cols", "row"], "row"),
    ],
)
def test_nearest(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(name, candidates) == expected


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.integers(0, 6))
def test_edit_distance_is_symmetric_and_capped(left: str, right: str, limit: int) -> None:
    distance = edit_distance(left, right, limit)
    assert distance == edit_distance(right, left, limit) <= limit + 1
    assert (distance == 0) == (left == right)


def test_words() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"], "and") == "a, b and c"
    assert listing([]) == ""
    assert quoted("a") == "`a`"
    assert len(quoted("a" * 1000)) == MAX_QUOTED + 2
