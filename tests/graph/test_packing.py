"""Graphs packed into tiles: none cut, none on top of another, few tiles."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stmlang.graph.packing import packed


@given(st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.lists(st.integers(0, size), max_size=60))))
def test_every_node_has_a_place_of_its_own_in_the_tile_of_its_graph(case: tuple[int, list[int]]) -> None:
    size, counts = case
    found = packed(counts, size)
    places = found.places(counts)
    assert len(set(places.tolist())) == len(places) == sum(counts)
    assert not len(places) or 0 <= places.min() <= places.max() < size * found.tiles
    assert np.array_equal(places // size, np.repeat(found.tile, counts))
    # Of two tiles that are each at most half full the first would have taken what the second holds.
    assert found.tiles <= 2 * -(-sum(counts) // size) + (0 in counts)


def test_molecules_fill_their_tiles() -> None:
    counts = np.random.default_rng(0).integers(8, 60, 512).tolist()
    assert packed(counts, 64).tiles <= 1.1 * sum(counts) / 64


def test_many_graphs_are_packed_quickly() -> None:
    counts = np.random.default_rng(0).integers(1, 256, 50_000).tolist()
    assert packed(counts, 256).tiles <= 1.01 * sum(counts) / 256


def test_no_graphs() -> None:
    assert packed([], 8).tiles == 0
    assert packed([0, 0], 8).places([0, 0]).tolist() == []
