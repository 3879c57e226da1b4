"""Few shapes for many graphs: sizes far enough apart that most batches of a data set share them.

What grows with the size of a batch is rounded up once, for its nodes; the rest follows in proportion, by ratios out of few. The
graphs of a data set have much the same ratios however they are drawn, so that batches differ in size and in little else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from stmlang.graph.limits import LARGEST
from stmlang.graph.packing import Packing, packed

RATIO = 1.5
"""Neighbouring sizes differ by this factor, unless a call says otherwise."""
RATIOS = (1.01, 16.0)
"""The factors that may be asked for."""
ALIGNMENT = 16
"""Sizes are multiples of this."""
SMALLEST_CELL, LARGEST_CELL = 16, 64
MOST_PACKED = 1024
"""The nodes of the largest graph that is cut into cells: each of its items has a row for every cell that it takes."""
EXPECTED_LARGEST = 256
"""Up to so many nodes the largest graph says how many levels there is room for at least."""
FEWEST_LEVELS, MANY_LEVELS = 24, 192
EIGHTHS = (8, 9, 10, 12, 14)
"""Ratios of edges to nodes, in eighths, and their products with powers of two."""
TWENTIETHS = (20, 24, 28, 35)
"""Ratios of arcs to edges, in twentieths, likewise."""
SPREADS = (4, 5, 8, 12, 16, 24, 32, 48, 64)
"""Ratios of rows to items, in quarters: at most as many as the largest graph has cells."""
CELL_RATIOS = ((17, 16), (4, 3), (2, 1))
"""Indices in cells for each node. Of two cells one at least is half full, so that the last ratio always does."""


def size_above(count: int, ratio: float = RATIO) -> int:
    """The least size of the sequence 16, 32, 48, 80, ... that is at least `count`, each `ratio` times the one before. One
    product of two floats a step: the same on every machine."""
    size = ALIGNMENT
    while size < count:
        size = ALIGNMENT * ceil(size * ratio / ALIGNMENT)
    return min(size, max(count, LARGEST))


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
    scaled_count = denominator * steps[0] * count
    step = next((step for step in steps if numerator * step * base >= scaled_count), 2 * steps[0])
    return numerator * step, denominator * steps[0]


def levels_above(count: int) -> int:
    """The least of 24, 48, 96, 192, 288, 384, 576, ... that is at least `count`: deep graphs take a step for each level, and so
    sizes lie closer there."""
    size = FEWEST_LEVELS
    while size < count:
        size *= 2
    return 3 * size // 4 if size > MANY_LEVELS and 3 * size // 4 >= count else size


def spread_above(rows: int, items: int) -> int:
    """Rows for four items, where so many items have so many: the least of `SPREADS` that will do, or else the last, which does
    for all graphs that are packed."""
    return next((spread for spread in SPREADS if 4 * rows <= spread * items), SPREADS[-1])


def cell_size(largest: int) -> int:
    """The nodes of the cells that graphs are packed into of which the largest has so many nodes: a power of two, or 0 where it
    is too large to be packed."""
    return 0 if largest > MOST_PACKED else min(max(SMALLEST_CELL, power_above(largest)), LARGEST_CELL)


@dataclass(frozen=True)
class Capacity:
    """What a program for graphs that come at run time has room for: nodes and edges, as many as their bucket has; `line_edges`
    and levels. Graphs are packed into `cells` cells of `cell` nodes each, a power of two, larger ones in pieces; where one has
    too many nodes for that there are none, and both numbers are 0.

    Of a node, an edge or a line edge of a graph in several cells there is a row for each of them: `rows`, `spread` for four
    items. `line_edges` is no less than the arcs of a sweep over edge states, which are the line edges and one for each edge
    that is not the end of any, whichever way the edges point; so that it is no less than the edges either.
    """

    nodes: int
    edges: int
    line_edges: int
    levels: int
    cell: int
    cells: int
    spread: int

    @classmethod
    def of(cls, nodes: int, edges: int, demand: Demand, packing: Packing | None) -> Capacity:
        """The room that batches of such a demand share in a bucket of so many nodes and edges. `packing` is that of its graphs
        in cells of `cell_size(demand.largest)`."""
        return cls._for(nodes, edges, [demand], 0 if packing is None else packing.cells)

    @classmethod
    def covering(cls, nodes: int, edges: int, demands: Sequence[Demand]) -> Capacity:
        """The room that holds batches of all these demands, in a bucket that has room for their nodes and edges. It packs each
        of them: they share the cells of the largest graph of all, where each has a packing in those of its own."""
        size = cell_size(max((demand.largest for demand in demands), default=0))
        return cls._for(
            nodes, edges, demands, max((packed(demand.graphs, size).cells for demand in demands if size), default=0)
        )

    @classmethod
    def _for(cls, nodes: int, edges: int, demands: Sequence[Demand], cells: int) -> Capacity:
        """The room for all these demands, the graphs of each of which fit into so many cells."""
        line_edges, levels = edges, FEWEST_LEVELS
        for demand in demands:
            numerator, denominator = ratio_above(max(demand.arcs, 1), max(demand.edges, 1), TWENTIETHS)
            line_edges = max(line_edges, -(-edges * numerator // denominator))
            levels = max(levels, levels_above(demand.levels))
        largest = max((demand.largest for demand in demands), default=0)
        cell = cell_size(largest)
        if not cell:
            return cls(nodes, edges, line_edges, levels, 0, 0, 0)
        levels = max(levels, levels_above(3 * min(power_above(largest), EXPECTED_LARGEST) // 16))
        spread = max((demand.spread for demand in demands), default=4)
        return cls(nodes, edges, line_edges, levels, cell, _cells(nodes, cell, cells), spread)

    def rows(self, items: int) -> int:
        """The rows that there is room for, of so many items."""
        return -(-items * self.spread // 4)

    @property
    def pairs(self) -> int:
        """The ordered pairs of cells that share a graph. A graph in `p > 1` of them has `p (p - 1)`, and more than
        `(p - 1) cell` nodes, each with `p - 1` rows more than one: so for every `cell` such rows there are less than two."""
        return 2 * (self.rows(self.nodes) - self.nodes) // self.cell if self.cell else 0

    def lacks(self, demand: Demand, packing: Packing | None) -> tuple[str, int, int] | None:
        """Of what such a batch, with its padding, needs more than there is: what, how much, and how much there is. `packing` is
        that of its graphs in the cells of this room, None where it has none."""
        arcs = demand.arcs + self.edges - demand.edges
        counts = [("line edges", arcs, self.line_edges), ("levels", demand.levels, self.levels)]
        if self.cell:
            most = self.cell if self.cell < LARGEST_CELL else MOST_PACKED
            counts.append(("nodes in one graph", demand.largest, most))
        lacking = next((count for count in counts if count[1] > count[2]), None)
        if lacking is not None or packing is None:
            return lacking
        counts = [("cells of graphs", packing.cells, self.cells), ("rows for four items", demand.spread, self.spread)]
        return next((count for count in counts if count[1] > count[2]), None)


def _cells(nodes: int, cell: int, needed: int) -> int:
    """Cells for so many nodes, of which at least so many are needed."""
    rooms = (nodes * numerator // (denominator * cell) + 1 for numerator, denominator in CELL_RATIOS)
    return next((cells for cells in rooms if cells >= needed), needed)


@dataclass(frozen=True)
class Demand:
    """What the graphs of a batch take beside nodes and edges: arcs of a sweep over their edge states, levels (two at least,
    which padding has), the nodes of each, and how many rows there are for four items where no cell is larger."""

    edges: int
    arcs: int
    levels: int
    graphs: tuple[int, ...]
    spread: int = 4

    @property
    def largest(self) -> int:
        """The nodes of the largest graph."""
        return max(self.graphs, default=0)
