"""Settings of `delta_separable`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.lines import Lines


@dataclass(frozen=True, slots=True)
class LineBlocks:
    """Blocks of `rows` lines of targets, each of which meets the lines that lie before it in a direction's sense."""

    rows: int

    def blocks(self, lines: Lines) -> list[slice]:
        """The lines of each block; the last one may be shorter."""
        return [slice(start, min(start + self.rows, lines.count)) for start in range(0, lines.count, self.rows)]

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
