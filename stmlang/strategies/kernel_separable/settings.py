"""Settings of `kernel_separable`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.lines import Lines

TILE = 64
"""Nodes in a tile of targets."""
WIDTHS = (16, 32, 64)
"""The places of a line in a tile: a product of tiles adds up over a multiple of 16."""


@dataclass(frozen=True, slots=True)
class KernelSeparable:
    """A tile has `width` places of a line; one of targets has as many lines as make 64 nodes."""

    width: int

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


@dataclass(frozen=True, slots=True)
class GridTiles:
    """`lines` of `size` places in tiles."""

    lines: int
    size: int
    width: int

    @classmethod
    def of(cls, lines: Lines, settings: KernelSeparable) -> Self:
        return cls(lines.count, lines.size, settings.width)

    @property
    def nodes(self) -> int:
        return self.lines * self.size

    @property
    def rows(self) -> int:
        """Lines in a tile of targets."""
        return TILE // self.width

    @property
    def blocks(self) -> int:
        """Tiles along a line."""
        return -(-self.size // self.width)

    @property
    def groups(self) -> int:
        """Tiles of targets across the lines."""
        return -(-self.lines // self.rows)

    @property
    def targets(self) -> int:
        return self.groups * self.blocks

    @property
    def sources(self) -> int:
        return self.lines * self.blocks
