"""Settings of `rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from stmlang.cost.runs import Cut, axis_when_transposed


@dataclass(frozen=True, slots=True)
class Rows:
    """The `axis` whose rows are taken, how many `rows` a first run has, and about how many `targets` are worked on at a
    time."""

    axis: int
    rows: int
    targets: int

    def cut(self, axes: Sequence[int]) -> Cut:
        """The runs of a grid."""
        return Cut.of(axes, self.axis, self.rows, self.targets)

    def transposed(self, rank: int) -> Self:
        return type(self)(axis_when_transposed(self.axis, rank), self.rows, self.targets)

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
