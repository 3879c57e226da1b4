"""Settings of `separable`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.lines import Lines


@dataclass(frozen=True, slots=True)
class Separable:
    """Blocks of `rows` lines of targets are worked on at a time: all lines for all pairs of nodes at once."""

    rows: int

    def blocks(self, lines: Lines) -> int:
        """How many blocks there are, the last one filled up."""
        return -(-lines.count // self.rows)

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
