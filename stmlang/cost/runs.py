"""Grids as chains of rows, and of runs of rows, that double in length until there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from stmlang.cost.candidate import Stage
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import array_stage

LONGEST = 8
"""Rows of a proposed first run at most: they are joined one by one, each in a program of its own."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a grid is cut: along which axis, of what size; how many rows the first runs hold, and how many such runs there are, a
    power of two, the last ones filled up; the other axes; and about how many targets are worked on at a time."""

    axis: int
    size: int
    rows: int
    runs: int
    others: tuple[int, ...]
    targets: int

    @classmethod
    def of(cls, axes: Sequence[int], axis: int, rows: int, targets: int) -> Self:
        """A grid of such axes."""
        runs = 1
        while rows * runs < axes[axis]:
            runs *= 2
        return cls(axis, axes[axis], rows, runs, (*axes[:axis], *axes[axis + 1 :]), targets)

    @property
    def width(self) -> int:
        """Nodes of a row, and edges between two."""
        return prod(self.others)

    @property
    def run(self) -> int:
        """Nodes of a first run."""
        return self.rows * self.width

    @property
    def nodes(self) -> int:
        """Of all runs, those included that they are filled up with."""
        return self.runs * self.run

    @property
    def missing(self) -> int:
        """Rows that the last runs are filled up with."""
        return self.rows * self.runs - self.size

    @property
    def levels(self) -> int:
        """How often runs are doubled until there is one."""
        return self.runs.bit_length() - 1

    def tile(self, level: int) -> int:
        """Targets that are worked on at a time where runs are `2^level` first runs long."""
        return targets_at_a_time(self.run << level, self.targets)

    def streams(self, level: int) -> bool:
        """Whether a level's blocks are worked on part by part."""
        return self.tile(level) < self.run << level

    def cut_first(self, entries: Sequence[int]) -> tuple[int, ...]:
        """What belongs to the axes, that of the cut one first."""
        return (entries[self.axis], *entries[: self.axis], *entries[self.axis + 1 :])


def targets_at_a_time(size: int, most: int) -> int:
    """The parts that so many targets are halved into until they have at most so many, or an odd number."""
    while size > most and size % 2 == 0:
        size //= 2
    return size


def axis_when_transposed(axis: int, rank: int) -> int:
    """The number of an axis after the last two of `rank` are exchanged."""
    return 2 * rank - 3 - axis if axis >= rank - 2 else axis


def _table_numbers(problem: Problem, cut: Cut) -> int:
    """`S` and `M` of all nodes and `T` of the first runs."""
    edges = edges_between(problem, cut)
    return problem.lanes * edges * (2 * cut.nodes + cut.runs * edges)


def edges_between(problem: Problem, cut: Cut) -> int:
    """Edges between two rows, each track one."""
    return cut.width * problem.track


def run_tables(problem: Problem, cut: Cut, target: Target) -> tuple[Stage, int]:
    """The making of `S`, `T` and `M`, and the bytes that those of one level hold.

    Rows, first runs, and runs twice as long level by level: `T`, half of `S` and half of `M` are multiplied by a `T`. Planes
    are merged of rows beforehand, and fitted apart.
    """
    lanes, edges = problem.lanes, edges_between(problem, cut)
    joined = 2 * lanes * cut.nodes * edges * edges * (cut.rows + 3)
    doubled = 2 * lanes * edges * edges * sum(cut.nodes + (cut.runs >> level) * edges for level in range(1, cut.levels))
    numbers = (1 + cut.levels) * _table_numbers(problem, cut) + lanes * cut.nodes * cut.run
    products = lanes * (cut.runs * (cut.rows - 1) + sum(2 * cut.runs >> level for level in range(1, cut.levels)))
    name = "rows and runs" if len(cut.others) == 1 and problem.track == 1 else "planes and runs"
    held = _table_numbers(problem, cut) * problem.accumulator
    return array_stage(target, name, "matmul", joined + doubled, numbers * problem.accumulator, held, products=products), held


def run_lengths(size: int) -> Iterator[int]:
    """Lengths of first runs: as short as doubling from them reaches the size, those first that fill up the least."""
    halvings = {-(-size // 2**level) for level in range(size.bit_length())}
    yield from sorted(length for length in halvings if length <= LONGEST)
