"""Settings of `impulse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.tiles import transposed_tile


@dataclass(frozen=True, slots=True)
class Impulse:
    """The sides of a `tile` of targets that are worked on at a time: those of the grid for all at once."""

    tile: tuple[int, ...]

    def whole(self, axes: tuple[int, ...]) -> bool:
        """Whether the mask of a grid is made at once."""
        return self.tile == axes

    def transposed(self, rank: int) -> Self:
        del rank
        return type(self)(transposed_tile(self.tile))

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
