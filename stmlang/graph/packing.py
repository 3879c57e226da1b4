"""Graphs packed into cells of one size, as things into boxes; what is larger than a cell is cut into pieces first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.incidence import within

if TYPE_CHECKING:
    from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Packing:
    """`cells` cells of `size` places, laid end to end. Node `n` of all graphs, one after the other, has the place `place[n]`.

    Graph `i` has `pieces[i]` pieces of consecutive nodes, all but the last as large as a cell; `cell` is that of every
    piece, graph after graph. Several pieces may share a cell, of different graphs, none of them as large as it.
    """

    size: int
    cells: int
    place: Int64[np.ndarray, " nodes"]
    pieces: Int64[np.ndarray, " graphs"]
    cell: Int64[np.ndarray, " pieces"]

    @property
    def pairs(self) -> Int64[np.ndarray, "pairs 2"]:
        """The cells of every two pieces of a graph, in both orders: no pair is there twice, and none is a cell and itself."""
        first = np.cumsum(self.pieces) - self.pieces
        graph = np.repeat(np.arange(len(self.pieces)), self.pieces**2)
        number = within(self.pieces**2)
        target, source = number // self.pieces[graph], number % self.pieces[graph]
        apart = target != source
        return np.stack([self.cell[(first[graph] + piece)[apart]] for piece in (target, source)], axis=1)


def pieces(counts: Sequence[int] | Int64[np.ndarray, " graphs"], size: int) -> Int64[np.ndarray, " graphs"]:
    """How many pieces of at most `size` nodes graphs of so many nodes are cut into."""
    return -(-np.asarray(counts, np.int64) // size)


def packed(counts: Sequence[int], size: int) -> Packing:
    """Graphs of so many nodes, cut into as few pieces as possible. Those as large as a cell have one for themselves; the others
    go, the largest first, each into the fullest cell that has room for it. A `Batch` has its packing: this makes it."""
    sizes = np.asarray(counts, np.int64)
    piece_counts = pieces(sizes, size)
    whole = within(piece_counts) < np.repeat(sizes // size, piece_counts)
    cell, start = np.cumsum(whole) - 1, np.zeros(len(whole), np.int64)
    rest = np.flatnonzero(~whole)
    used = int(whole.sum())
    cell[rest], start[rest], more = _best_fit((sizes % size)[sizes % size > 0].tolist(), size)
    cell[rest] += used
    graph = np.repeat(np.arange(len(sizes)), sizes)
    number = within(sizes)
    piece = (np.cumsum(piece_counts) - piece_counts)[graph] + number // size
    return Packing(size, used + more, cell[piece] * size + start[piece] + number % size, piece_counts, cell)


def _best_fit(counts: list[int], size: int) -> tuple[list[int], list[int], int]:
    """The cell and the first place of pieces of so many nodes, and the number of cells."""
    cell, start = [0] * len(counts), [0] * len(counts)
    with_room: list[list[int]] = [[] for _ in range(size + 1)]  # cells by how many places they have left
    used = 0
    for piece in sorted(range(len(counts)), key=lambda number: -counts[number]):
        count = counts[piece]
        left = next((left for left in range(count, size + 1) if with_room[left]), None)
        if left is None:
            left, here, used = size, used, used + 1
        else:
            here = with_room[left].pop()
        cell[piece], start[piece] = here, size - left
        with_room[left - count].append(here)
    return cell, start, used
