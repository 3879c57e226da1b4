"""Sizes that many graphs share."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.graph.buckets import EIGHTHS, LARGEST_TILE, TWENTIETHS, Needs, Room, levels_above, power_above, ratio_above
from stmlang.graph.packing import packed


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


def test_room() -> None:
    assert Room.of(100, 120, Needs(110, 140, 9, (40, 50))) == Room(100, 120, 168, 24, 64, 2)
    assert Room.of(16, 16, Needs(0, 0, 2, ())) == Room(16, 16, 16, 24, 16, 2)
    assert Room.of(1000, 1000, Needs(990, 990, 2, (300,))) == Room(1000, 1000, 1000, 24, 0, 0)
    assert Room.of(480, 480, Needs(400, 400, 2, (130, 40, 130))) == Room(480, 480, 480, 48, 256, 2)


def test_more_tiles_where_graphs_leave_room_in_them() -> None:
    """Up to twice the nodes: graphs a bit larger than half a tile."""
    assert [Room.of(1000, 16, Needs(1, 1, 2, (size,) * (998 // size))).tiles for size in (32, 25, 17)] == [34, 42, 63]


needs = st.builds(
    lambda edges, more, levels, graphs: Needs(edges, edges and edges + more, levels, tuple(graphs)),
    st.integers(0, 500),
    st.integers(0, 900),
    st.integers(2, 99),
    st.lists(st.integers(0, 300), max_size=20),
)


@given(st.lists(needs, min_size=1, max_size=4), st.integers(0, 200))
def test_rooms_hold_what_they_are_for(every: list[Needs], spare: int) -> None:
    nodes = max(sum(one.graphs) for one in every) + 2 + spare
    edges = max(one.edges for one in every) + 1 + spare
    together = Room.covering(nodes, edges, every)
    for one in every:
        room = Room.of(nodes, edges, one)
        assert room == Room.covering(nodes, edges, [one])
        for found in (room, together):
            assert found.lacks(one) is None
            assert (found.tiles == 0) == (found.tile == 0)
            assert found.line_edges >= found.edges
        if together.tile:
            assert packed(one.graphs, together.tile).tiles <= together.tiles
        else:
            assert max(max(one.graphs, default=0) for one in every) > LARGEST_TILE


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (Needs(110, 200, 9, (40, 50)), ("line edges", 210, 168)),
        (Needs(110, 140, 25, (40, 50)), ("levels", 25, 24)),
        (Needs(110, 140, 9, (65,)), ("nodes in one graph", 65, 64)),
        (Needs(110, 140, 9, (33, 33, 33)), ("tiles of graphs", 3, 2)),
    ],
    ids=["line edges", "levels", "nodes", "tiles"],
)
def test_what_a_room_lacks(other: Needs, wanted: tuple[str, int, int]) -> None:
    assert Room.of(100, 120, Needs(110, 140, 9, (40, 50))).lacks(other) == wanted
