"""Grids of two axes on which paths turn at most once, as lines."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.cost.candidate import Stage
from stmlang.cost.problem import Problem
from stmlang.facts import Facts

MOST_PAIRS = 46_340**2
"""Of a block's targets with all sources: beyond, one head has 2^31 of them."""
TABLES = 8
"""Tables in all: for each sense along the first axis three of the first walk, one of the last, and their making."""


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


def needs_one_turn(problem: Problem) -> str | None:
    """Why a problem is no grid of two axes on which paths turn at most once."""
    if problem.axes is None or len(problem.axes) != 2:
        return "it needs a grid of two axes"
    if problem.facts is None or first_axis(problem.facts) is None:
        return "it needs one of the two turns between the axes to be zero by the equations, so that a path turns at most once"
    return "there are no nodes" if problem.counts.nodes == 0 else None


def lines_in(problem: Problem) -> Lines:
    """The lines of a problem that has them."""
    assert problem.facts is not None
    assert problem.axes is not None
    return lines_of(problem.facts, problem.axes)


def too_many_pairs(lines: Lines, rows: int) -> str | None:
    """Why the pairs of so many lines of targets with all sources cannot be numbered."""
    targets = rows * lines.size
    fits = targets * lines.nodes <= MOST_PAIRS
    return None if fits else f"{targets:,} targets times {lines.nodes:,} nodes are too many pairs to number"


def walk_tables(problem: Problem, lines: Lines) -> tuple[Stage, int]:
    """The tables of all directions, and the bytes that they hold."""
    lanes = problem.batch * problem.heads * problem.directions
    numbers = lanes * lines.nodes * (lines.size + lines.count)
    held = TABLES * numbers // 2 * problem.accumulator
    return Stage("tables of decays", "vector", numbers, held), held
