"""Settings of `raster`, and the cut that they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from stmlang.cost.tiles import Tiling, tiling, transposed_tile


@dataclass(frozen=True, slots=True)
class Raster:
    """The sides of a `tile`, and in how many `segments` the slabs of tiles along the first axis are run again by a backward
    pass."""

    tile: tuple[int, ...]
    segments: int = 1

    def cut(self, axes: Sequence[int]) -> Tiling:
        """The tiles of a grid, filled up to whole segments."""
        first, *others = tiling(axes, self.tile).tiles
        return Tiling(self.tile, (-(-first // self.segments) * self.segments, *others))

    def transposed(self, rank: int) -> Self:
        del rank
        return type(self)(transposed_tile(self.tile), self.segments)

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        """There are no more segments than places on the first axis."""
        return self if axes is None else type(self)(self.tile, max(1, min(self.segments, axes[0])))
