"""Settings of `kernel_rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from stmlang.cost.runs import Cut, axis_when_transposed

TILE = 64
"""Nodes in a tile."""
NARROW = (16, 32)
"""What the rows of a tile may be filled up to; wider ones to a multiple of 64: a product adds up over a multiple of 16."""


@dataclass(frozen=True, slots=True)
class KernelRows:
    """The `axis` whose rows are taken, and how many `rows` a first run has: its nodes are filled up to whole tiles."""

    axis: int
    rows: int

    def cut(self, axes: Sequence[int]) -> Cut:
        """The runs of a grid."""
        return Cut.of(axes, self.axis, self.rows, TILE)

    def transposed(self, rank: int) -> Self:
        return type(self)(axis_when_transposed(self.axis, rank), self.rows)

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


@dataclass(frozen=True, slots=True)
class RunTiles:
    """Runs of `run` nodes in tiles: as many runs as hold nodes (`used`), which are doubled `levels` times."""

    run: int
    used: int
    levels: int

    @classmethod
    def of(cls, cut: Cut) -> Self:
        return cls(cut.run, -(-cut.size // cut.rows), cut.levels)

    @property
    def blocks(self) -> int:
        """Tiles of a run."""
        return -(-self.run // TILE)

    @property
    def tiles(self) -> int:
        return self.used * self.blocks


def padded(width: int) -> int:
    """What the rows of a tile are filled up to."""
    return next((narrow for narrow in NARROW if width <= narrow), -(-width // TILE) * TILE)
