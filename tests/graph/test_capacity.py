"""Sizes that many graphs share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.graph.capacity import (
    EIGHTHS,
    LARGEST_CELL,
    MOST_PACKED,
    SPREADS,
    TWENTIETHS,
    Capacity,
    Demand,
    cell_size,
    levels_above,
    power_above,
    ratio_above,
    spread_above,
)
from stmlang.graph.packing import Packing, packed, pieces


def room_of(nodes: int, edges: int, demand: Demand) -> Capacity:
    """The room by rule for one batch."""
    return Capacity.of(nodes, edges, demand, packing_of(demand, cell_size(demand.largest)))


def packing_of(demand: Demand, size: int) -> Packing | None:
    """Its graphs in cells of a size, of which there are none for size 0."""
    return packed(demand.graphs, size) if size else None


def lacking(room: Capacity, demand: Demand) -> tuple[str, int, int] | None:
    return room.lacks(demand, packing_of(demand, room.cell))


def test_powers() -> None:
    assert [power_above(count) for count in (0, 1, 2, 3, 4, 5, 1024, 1025)] == [1, 1, 2, 4, 4, 8, 1024, 2048]
    assert power_above(10**30) == 2**100


def test_levels() -> None:
    assert [levels_above(count) for count in (0, 24, 25, 97, 193, 289, 1675)] == [24, 24, 48, 192, 288, 384, 2304]


@given(st.integers(1, 2**40), st.integers(1, 2**31), st.sampled_from([EIGHTHS, TWENTIETHS]))
def test_ratios(count: int, base: int, steps: tuple[int, ...]) -> None:
    """The least of those that there are."""
    found, wanted = Fraction(*ratio_above(count, base, steps)), Fraction(count, base)
    exponent = count.bit_length() - base.bit_length()
    every = [Fraction(step, steps[0]) * Fraction(2) ** (exponent + k) for k in (-2, -1, 0, 1, 2) for step in steps]
    assert found == min(ratio for ratio in every if ratio >= wanted)
    assert found <= 1.25 * wanted


@given(st.integers(0, 2**31), st.integers(0, 2**31), st.integers(1, MOST_PACKED // LARGEST_CELL))
def test_spreads(items: int, more: int, most: int) -> None:
    rows = min(items + more, most * items)
    found = spread_above(rows, items)
    assert found == min(spread for spread in SPREADS if 4 * rows <= spread * items)
    assert items == 0 or found <= 2 * max(4, 4 * rows / items)


def test_room() -> None:
    assert room_of(100, 120, Demand(110, 140, 9, (40, 50))) == Capacity(100, 120, 168, 24, 64, 2, 4)
    assert room_of(16, 16, Demand(0, 0, 2, ())) == Capacity(16, 16, 16, 24, 16, 2, 4)
    assert room_of(3000, 3000, Demand(2990, 2990, 2, (1025,))) == Capacity(3000, 3000, 3000, 24, 0, 0, 0)
    assert room_of(480, 480, Demand(400, 400, 2, (130, 40, 130), 12)) == Capacity(480, 480, 480, 48, 64, 8, 12)
    assert room_of(480, 480, Demand(400, 400, 2, (130, 40, 130), 12)).pairs == 30


def test_more_cells_where_graphs_leave_room_in_them() -> None:
    """Up to twice the nodes: graphs a bit larger than half a cell."""
    assert [room_of(1000, 16, Demand(1, 1, 2, (size,) * (998 // size))).cells for size in (32, 25, 17)] == [34, 42, 63]


def needed(edges: int, more: int, levels: int, graphs: list[int]) -> Demand:
    """What nobody's edges need more rows than: those of the largest graph."""
    cells = int(pieces([max(graphs, default=0)], LARGEST_CELL)[0])
    return Demand(edges, edges and edges + more, levels, tuple(graphs), spread_above(min(max(cells, 1), 16), 1))


needs = st.builds(
    needed,
    st.integers(0, 500),
    st.integers(0, 900),
    st.integers(2, 99),
    st.lists(st.integers(0, 300) | st.integers(900, 1100), max_size=20),
)


@given(st.lists(needs, min_size=1, max_size=4), st.integers(0, 200))
def test_rooms_hold_what_they_are_for(every: list[Demand], spare: int) -> None:
    nodes = max(sum(one.graphs) for one in every) + 2 + spare
    edges = max(one.edges for one in every) + 1 + spare
    together = Capacity.covering(nodes, edges, every)
    for one in every:
        room = room_of(nodes, edges, one)
        assert room == Capacity.covering(nodes, edges, [one])
        for found in (room, together):
            assert lacking(found, one) is None
            assert (found.cells == 0) == (found.cell == 0)
            assert found.line_edges >= found.edges
        if together.cells:
            packing = packed(one.graphs, together.cell)
            assert packing.cells <= together.cells
            assert len(packing.pairs) <= together.pairs
            assert sum(np.asarray(one.graphs) * packing.pieces) <= together.rows(sum(one.graphs))
        else:
            assert max(max(one.graphs, default=0) for one in every) > MOST_PACKED


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (Demand(110, 200, 9, (40, 50)), ("line edges", 210, 168)),
        (Demand(110, 140, 25, (40, 50)), ("levels", 25, 24)),
        (Demand(110, 140, 9, (1025,), 64), ("nodes in one graph", 1025, 1024)),
        (Demand(110, 140, 9, (33, 33, 33)), ("cells of graphs", 3, 2)),
        (Demand(110, 140, 9, (65,), 8), ("rows for four items", 8, 4)),
    ],
    ids=["line edges", "levels", "nodes", "cells", "rows"],
)
def test_what_a_room_lacks(other: Demand, wanted: tuple[str, int, int]) -> None:
    assert lacking(room_of(100, 120, Demand(110, 140, 9, (40, 50))), other) == wanted


def test_small_cells_take_no_larger_graph() -> None:
    assert lacking(room_of(100, 120, Demand(110, 140, 9, (20, 30))), Demand(110, 140, 9, (33,))) == (
        "nodes in one graph",
        33,
        32,
    )
