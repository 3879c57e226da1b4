"""Grids of two axes on which paths turn at most once, as lines."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.facts import Facts


@dataclass(frozen=True, slots=True)
class Lines:
    """A grid of two axes as `count` lines of `size` nodes along the axis `first`, which paths walk along first."""

    first: int
    count: int
    size: int

    @property
    def nodes(self) -> int:
        return self.count * self.size


def first_axis(facts: Facts) -> int | None:
    """The axis of a grid of two that paths walk along first; None where both turns are possible."""
    allowed = facts.bounds.allowed
    return None if allowed.shape != (2, 2) or (allowed[0, 1] and allowed[1, 0]) else 0 if allowed[1, 0] else 1


def lines_of(facts: Facts, axes: tuple[int, ...]) -> Lines:
    """The lines of a grid on which paths turn at most once."""
    first = first_axis(facts)
    assert first is not None
    return Lines(first, axes[1 - first], axes[first])
