"""Settings of `corners`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.lines import Lines


@dataclass(frozen=True, slots=True)
class Columns:
    """The corners of `columns` columns are worked on at a time. All at once, training keeps what is made of them; else it makes
    that again."""

    columns: int

    def blocks(self, lines: Lines) -> int:
        """How many blocks of columns there are, the last one filled up."""
        return -(-lines.size // self.columns)

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
