"""Few shapes for many graphs: sizes far enough apart that most batches of a data set share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stmlang.graph.packing import packed

SMALLEST_TILE, LARGEST_TILE = 16, 256


def power_above(count: int, base: int) -> int:
    """The least power of `base` that is at least `count`."""
    size = 1
    while size < count:
        size *= base
    return size


def half_octave_above(count: int) -> int:
    """The least of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... that is at least `count`."""
    size = power_above(count, 2)
    return 3 * size // 4 if 1 < count <= 3 * size // 4 else size


@dataclass(frozen=True)
class Room:
    """What a program for graphs that come at run time has room for: nodes and edges exactly, as many as their bucket has, a
    power of two of line edges, at least one for each edge, a power of four of levels. Graphs of at most `tile` nodes, a power
    of two, are packed into `tiles` tiles; of larger ones there are no tiles."""

    nodes: int
    edges: int
    line_edges: int
    levels: int
    tile: int
    tiles: int

    @classmethod
    def of(cls, nodes: int, edges: int, line_edges: int, levels: int, graphs: Sequence[int]) -> Room:
        """The room for a batch of graphs of so many nodes each."""
        tile = max(SMALLEST_TILE, power_above(max(graphs, default=0), 2))
        tiles = half_octave_above(packed(graphs, tile).tiles) if tile <= LARGEST_TILE else 0
        return cls(nodes, edges, power_above(max(line_edges, edges), 2), power_above(levels, 4), tile, tiles)
