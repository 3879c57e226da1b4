"""What the strategies share that cut a regular topology into tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from stmlang.cost.chains import odd_length
from stmlang.cost.work import boundary


@dataclass(frozen=True, slots=True)
class Tiling:
    """A grid cut into `tiles` along each axis, with sides `tile`, and filled up at its far ends where they do not divide its
    sizes."""

    tile: tuple[int, ...]
    tiles: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Those of the filled up grid."""
        return tuple(count * side for count, side in zip(self.tiles, self.tile, strict=True))

    @property
    def count(self) -> int:
        """Tiles in all."""
        return prod(self.tiles)

    @property
    def nodes(self) -> int:
        """In a tile."""
        return prod(self.tile)

    @property
    def edges(self) -> int:
        """That enter a tile; as many leave it."""
        return boundary(self.tile)


def tiling(axes: Sequence[int], tile: tuple[int, ...]) -> Tiling:
    """The fewest tiles that cover a grid."""
    return Tiling(tile, tuple(-(-size // side) for size, side in zip(axes, tile, strict=True)))


def tile_within(axes: Sequence[int], tile: Sequence[int]) -> tuple[int, ...] | str:
    """A tile's sides, none longer than its axis; or what is wrong with them."""
    if any(side < 1 for side in tile):
        return f"the sides of a tile are positive, not {'x'.join(map(str, tile))}"
    return tuple(min(side, size) for side, size in zip(tile, axes, strict=True))


def transposed_tile(tile: tuple[int, ...]) -> tuple[int, ...]:
    """The sides of a tile on a grid whose last two axes have changed places."""
    return (*tile[:-2], tile[-1], tile[-2])


def odd_tiles(axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Single nodes, and a tile none of whose sides divides its axis, where there is one."""
    return (1,) * len(axes), tuple(map(odd_length, axes))
