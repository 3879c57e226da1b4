"""What the strategies share that cut a regular topology into tiles."""

from __future__ import annotations

from collections.abc import Sequence


def tile_within(axes: Sequence[int], tile: Sequence[int]) -> tuple[int, ...] | str:
    """A tile's sides, none longer than its axis; or what is wrong with them."""
    if any(side < 1 for side in tile):
        return f"the sides of a tile are positive, not {'x'.join(map(str, tile))}"
    return tuple(min(side, size) for side, size in zip(tile, axes, strict=True))
