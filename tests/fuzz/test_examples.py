"""Examples by number, and shrinking."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from stmlang.fuzz.examples import example, shrink

LISTS = st.lists(st.integers(0, 1000), max_size=8)


def test_an_example_depends_on_its_number_and_the_seed_alone():
    forward = [example(LISTS, 3, number) for number in range(30)]
    backward = [example(LISTS, 3, number) for number in reversed(range(30))]
    assert forward == backward[::-1]
    assert len({str(found) for found in forward}) > 20
    assert forward != [example(LISTS, 4, number) for number in range(30)]


def test_bytes_that_make_no_example():
    assert example(LISTS.filter(lambda _: False), 0, 0) is None


def failing(limit: int = 500) -> tuple[list[list[int]], list[list[int]]]:
    """What was asked for, and what of it failed: an entry of at least 100, first of all the first one that was drawn."""
    number = next(number for number in range(50) if max(example(LISTS, 0, number) or [0]) >= 100)
    asked: list[list[int]] = []
    failed: list[list[int]] = []

    def fails(found: list[int]) -> bool:
        asked.append(found)
        if max(found, default=0) >= 100:
            failed.append(found)
        return max(found, default=0) >= 100

    shrink(LISTS, 0, number, fails, limit)
    return asked, failed


def test_shrinking_ends_at_the_smallest():
    asked, failed = failing()
    assert failed[-1] == [100]
    assert len({str(found) for found in asked}) == len(asked)
    assert failing() == (asked, failed)


def test_shrinking_asks_no_more_often_than_it_may():
    asked, failed = failing(6)
    assert len(asked) == 5  # the first one is known to fail
    assert failed


@pytest.mark.parametrize("raised", [ValueError("no"), pytest.fail.Exception("time is up"), SystemExit(3), KeyboardInterrupt()])
def test_what_is_raised_while_asking_ends_the_search(raised: BaseException):
    asked: list[list[int]] = []

    def fails(found: list[int]) -> bool:
        asked.append(found)
        if len(asked) == 4:
            raise raised
        return True

    with pytest.raises(type(raised)) as caught:
        shrink(LISTS, 0, 0, fails, 500)
    assert caught.value is raised
    assert len(asked) == 4
