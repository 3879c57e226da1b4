"""Settings of `chunkwise`, and the cut that they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stmlang.cost.tiles import transposed_tile


@dataclass(frozen=True, slots=True)
class Chunkwise:
    """On a regular topology the sides of a `tile`, on another the number of nodes in a `block`, a power of two."""

    tile: tuple[int, ...] | None = None
    block: int | None = None

    def blocks(self, nodes: int) -> int:
        """How many blocks so many nodes make, the last one filled up."""
        assert self.block is not None
        return -(-nodes // self.block)

    def transposed(self, rank: int) -> Self:
        del rank
        return self if self.tile is None else type(self)(transposed_tile(self.tile))

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self
