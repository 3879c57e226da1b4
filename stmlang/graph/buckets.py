"""Few shapes for many graphs: sizes far enough apart that most batches of a data set share them.

What grows with the size of a batch is rounded up once, for its nodes; the rest follows in proportion, by ratios out of few. The
graphs of a data set have much the same ratios however they are drawn, so that batches differ in size and in little else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stmlang.graph.packing import packed

SMALLEST_TILE, LARGEST_TILE = 16, 256
FEWEST_LEVELS, MANY_LEVELS = 24, 192
EIGHTHS = (8, 9, 10, 12, 14)
"""Ratios of edges to nodes, in eighths, and their products with powers of two."""
TWENTIETHS = (20, 24, 28, 35)
"""Ratios of arcs to edges, in twentieths, likewise."""
TILE_RATIOS = ((17, 16), (4, 3), (2, 1))
"""Places of tiles for each node. Of two tiles one at least is half full, so that the last ratio always does."""


def power_above(count: int) -> int:
    """The least power of two that is at least `count`."""
    return 1 << max(count - 1, 0).bit_length()


def ratio_above(count: int, base: int, steps: Sequence[int]) -> tuple[int, int]:
    """The least ratio that is at least `count / base`, as a numerator and a denominator, out of `steps / steps[0]` times powers
    of two. `count` and `base` are positive."""
    numerator, denominator = 1, 1
    while 2 * numerator * base <= denominator * count:
        numerator *= 2
    while numerator * base > denominator * count:
        denominator *= 2
    wanted = denominator * steps[0] * count
    step = next((step for step in steps if numerator * step * base >= wanted), 2 * steps[0])
    return numerator * step, denominator * steps[0]


def levels_above(count: int) -> int:
    """The least of 24, 48, 96, 192, 288, 384, 576, ... that is at least `count`: deep graphs take a step for each level, and so
    sizes lie closer there."""
    size = FEWEST_LEVELS
    while size < count:
        size *= 2
    return 3 * size // 4 if size > MANY_LEVELS and 3 * size // 4 >= count else size


@dataclass(frozen=True)
class Room:
    """What a program for graphs that come at run time has room for: nodes and edges, as many as their bucket has; `line_edges`
    and levels. Graphs of at most `tile` nodes, a power of two, are packed into `tiles` tiles; where one is larger than any tile
    there are none, and both numbers are 0.

    `line_edges` is no less than the arcs of a sweep over edge states, which are the line edges and one for each edge that is
    not the end of any, whichever way the edges point; so that it is no less than the edges either.
    """

    nodes: int
    edges: int
    line_edges: int
    levels: int
    tile: int
    tiles: int

    @classmethod
    def of(cls, nodes: int, edges: int, needs: Needs) -> Room:
        """The room that batches with such needs share in a bucket of so many nodes and edges."""
        numerator, denominator = ratio_above(max(needs.arcs, 1), max(needs.edges, 1), TWENTIETHS)
        line_edges = max(edges, -(-edges * numerator // denominator))
        tile = max(SMALLEST_TILE, power_above(needs.largest))
        if tile > LARGEST_TILE:
            return cls(nodes, edges, line_edges, levels_above(needs.levels), 0, 0)
        levels = levels_above(max(needs.levels, 3 * tile // 16))
        return cls(nodes, edges, line_edges, levels, tile, _tiles(nodes, tile, packed(needs.graphs, tile).tiles))

    @classmethod
    def covering(cls, nodes: int, edges: int, every: Sequence[Needs]) -> Room:
        """The room that holds batches of all these needs, in a bucket that has room for their nodes and edges."""
        rooms = [cls.of(nodes, edges, needs) for needs in every]
        line_edges, levels = max(room.line_edges for room in rooms), max(room.levels for room in rooms)
        if any(room.tile == 0 for room in rooms):
            return cls(nodes, edges, line_edges, levels, 0, 0)
        tile = max(room.tile for room in rooms)
        most = max(packed(needs.graphs, tile).tiles for needs in every)
        return cls(nodes, edges, line_edges, levels, tile, _tiles(nodes, tile, most))

    def lacks(self, needs: Needs) -> tuple[str, int, int] | None:
        """Of what such a batch, with its padding, needs more than there is: what, how much, and how much there is."""
        arcs = needs.arcs + self.edges - needs.edges
        counts = [("line edges", arcs, self.line_edges), ("levels", needs.levels, self.levels)]
        if self.tile:
            counts.append(("nodes in one graph", needs.largest, self.tile))
        found = next((count for count in counts if count[1] > count[2]), None)
        if found is not None or not self.tile:
            return found
        tiles = packed(needs.graphs, self.tile).tiles
        return ("tiles of graphs", tiles, self.tiles) if tiles > self.tiles else None


def _tiles(nodes: int, tile: int, needed: int) -> int:
    """Tiles for so many nodes, of which at least so many are needed."""
    rooms = (nodes * numerator // (denominator * tile) + 1 for numerator, denominator in TILE_RATIOS)
    return next((tiles for tiles in rooms if tiles >= needed), needed)


@dataclass(frozen=True)
class Needs:
    """What the graphs of a batch take beside nodes and edges: arcs of a sweep over their edge states, levels (two at least,
    which padding has), and the nodes of each."""

    edges: int
    arcs: int
    levels: int
    graphs: tuple[int, ...]

    @property
    def largest(self) -> int:
        """The nodes of the largest graph."""
        return max(self.graphs, default=0)
