"""Settings of `rows`, and the cut that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self


@dataclass(frozen=True, slots=True)
class Rows:
    """The `axis` whose rows are taken, how many `rows` a first run has, and about how many `targets` are worked on at a
    time."""

    axis: int
    rows: int
    targets: int

    def cut(self, axes: Sequence[int]) -> Cut:
        """The runs of a grid."""
        runs = 1
        while self.rows * runs < axes[self.axis]:
            runs *= 2
        others = (*axes[: self.axis], *axes[self.axis + 1 :])
        return Cut(self.axis, axes[self.axis], self.rows, runs, others, self.targets)

    def transposed(self, rank: int) -> Self:
        axis = 2 * rank - 3 - self.axis if self.axis >= rank - 2 else self.axis
        return type(self)(axis, self.rows, self.targets)

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


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
