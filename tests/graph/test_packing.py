"""Graphs packed into cells: every node in one, none on top of another, few cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stmlang.graph.packing import packed, pieces


@given(st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.lists(st.integers(0, 4 * size), max_size=60))))
def test_every_node_has_a_place_of_its_own_in_the_cell_of_its_piece(case: tuple[int, list[int]]) -> None:
    size, counts = case
    found = packed(counts, size)
    assert len(set(found.place.tolist())) == len(found.place) == sum(counts)
    assert not len(found.place) or 0 <= found.place.min() <= found.place.max() < size * found.cells
    assert found.pieces.tolist() == pieces(counts, size).tolist() == [-(-count // size) for count in counts]
    number = [node // size for count in counts for node in range(count)]
    first = np.repeat(np.cumsum(found.pieces) - found.pieces, counts)
    assert np.array_equal(found.place // size, found.cell[first + np.asarray(number, np.int64)])
    # Of two cells that are each at most half full the first would have taken what the second holds.
    assert found.cells <= 2 * -(-sum(counts) // size)


@given(st.integers(1, 9), st.lists(st.integers(0, 40), max_size=20))
def test_pairs_are_those_of_the_pieces_of_a_graph(size: int, counts: list[int]) -> None:
    found = packed(counts, size)
    ends = np.cumsum([0, *found.pieces]).tolist()
    cells = [found.cell[first:end].tolist() for first, end in pairwise(ends)]
    wanted = [(one, other) for own in cells for one in own for other in own if one != other]
    assert list(map(tuple, found.pairs.tolist())) == wanted
    assert len(set(wanted)) == len(wanted)


def test_molecules_fill_their_cells() -> None:
    counts = np.random.default_rng(0).integers(8, 60, 512).tolist()
    assert packed(counts, 64).cells <= 1.1 * sum(counts) / 64


def test_many_graphs_are_packed_quickly() -> None:
    counts = np.random.default_rng(0).integers(1, 256, 50_000).tolist()
    assert packed(counts, 64).cells <= 1.01 * sum(counts) / 64


def test_no_graphs() -> None:
    assert packed([], 8).cells == 0
    assert packed([0, 0], 8).place.tolist() == []
    assert packed([0, 0], 8).pairs.shape == (0, 2)
