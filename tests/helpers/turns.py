"""Compiling takes all the time, so where many cases are met in many ways, cases take turns with half of the ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")
halves = pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in turn", "the others"])
"""A parameter `late` for `half`: what is always tried, and what slow tests try besides."""


def half(ways: Sequence[T], number: int, late: bool) -> list[T]:
    """Every other of some ways: for cases of even number the first, third and so on, for those of odd number the second, fourth
    and so on; the rest where it is `late`. A single way is there both times."""
    return list(ways[(number + late) % 2 :: 2] or ways)
