"""Graphs packed into tiles of one size, as things into boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Packing:
    """Graph `i` has the places `start[i], start[i] + 1, ...` of tile `tile[i]`; there are `tiles` tiles of `size` places."""

    size: int
    tiles: int
    tile: Int64[np.ndarray, " graphs"]
    start: Int64[np.ndarray, " graphs"]

    def places(self, counts: Sequence[int]) -> Int64[np.ndarray, " nodes"]:
        """The place of every node of graphs of so many nodes, one graph after the other, tiles laid end to end."""
        sizes = np.asarray(counts, np.int64)
        first = np.cumsum(sizes) - sizes
        return np.repeat(self.tile * self.size + self.start - first, sizes) + np.arange(int(sizes.sum()))


def packed(counts: Sequence[int], size: int) -> Packing:
    """Graphs of so many nodes, none more than `size`, the largest first, each into the fullest tile that has room for it."""
    tile, start = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    with_room: list[list[int]] = [[] for _ in range(size + 1)]  # tiles by how many places they have left
    used = 0
    for graph in sorted(range(len(counts)), key=lambda number: -counts[number]):
        count = counts[graph]
        left = next((left for left in range(count, size + 1) if with_room[left]), None)
        if left is None:
            left, here, used = size, used, used + 1
        else:
            here = with_room[left].pop()
        tile[graph], start[graph] = here, size - left
        with_room[left - count].append(here)
    return Packing(size, used, tile, start)
