"""Settings of `walk`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Walk:
    """Training keeps the states that enter every `every`-th place of the first axis, a node of a chain or a row of a grid, and
    makes those between two of them again."""

    every: int

    def kept(self, axes: tuple[int, ...]) -> int:
        """At how many places of the first axis states are kept."""
        return -(-axes[0] // self.every)

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        return self if axes is None else type(self)(max(1, min(self.every, axes[0])))
