"""Which edges meet where pieces of a graph are merged: of boxes of a grid, and of intervals of a DAG's nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from stmlang.lower.summary import Summary, Wiring, merge
from stmlang.lower.tables import Indices, by_track, padded, select


@dataclass(frozen=True)
class Border:
    """The names of a block's entering and leaving edges, in order."""

    entering: tuple[Hashable, ...]
    leaving: tuple[Hashable, ...]


def wire(a: Border, b: Border) -> tuple[Wiring, Border]:
    """How two blocks are joined, and the border of the result: a's entering and b's fresh ones; a's kept and b's leaving."""
    position = {edge: k for k, edge in enumerate(b.entering)}
    left = set(a.leaving)
    kept = [k for k, edge in enumerate(a.leaving) if edge not in position]
    passed = [k for k, edge in enumerate(a.leaving) if edge in position]
    taken = [position[a.leaving[k]] for k in passed]
    fresh = [k for k, edge in enumerate(b.entering) if edge not in left]
    border = Border(
        (*a.entering, *(b.entering[k] for k in fresh)),
        (*(a.leaving[k] for k in kept), *b.leaving),
    )
    tables = (np.asarray(indices, np.int32) for indices in (kept, passed, taken, fresh))
    return Wiring._make(tables), border


# --- grids: boxes of equal size --------------------------------------------------------------------------------------

Edge = tuple[int, tuple[int, ...]]
"""An edge of a grid: its port, and the node that it enters, which may lie one past the border."""


def node_border(rank: int) -> Border:
    """A single node at the origin: one edge in, one out for each port."""
    origin = (0,) * rank
    return Border(
        tuple((port, origin) for port in range(rank)),
        tuple((port, _moved(origin, port, 1)) for port in range(rank)),
    )


def _moved(place: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return (*place[:axis], place[axis] + by, *place[axis + 1 :])


def _shifted(border: Border, axis: int, by: int) -> Border:
    def shift(edges: Sequence[Any]) -> tuple[Edge, ...]:
        return tuple((port, _moved(place, axis, by)) for port, place in edges)

    return Border(shift(border.entering), shift(border.leaving))


def merge_grid(nodes: Summary, sizes: Sequence[int], tracks: int = 1) -> tuple[Summary, Border]:
    """A whole box, from its nodes as blocks of shape `(*batch, *sizes, ...)`; all sizes at least one. Of several tracks the
    blocks have an edge for each, those of an edge of the border behind each other.

    Axes are merged from the last to the first, so that the nodes of the result stand in C order. Along an axis equal
    blocks are merged in pairs, all at once, and what is left over at the end is merged onto the next one: the number of
    operations grows with the logarithm of the size, and no size is padded.
    """
    block, border = nodes, node_border(len(sizes))
    for axis in reversed(range(len(sizes))):
        steps, border = _fold_steps(border, axis, sizes[axis])
        block = _fold(block, [_step_by_track(step, tracks) for step in steps])
    return block, border


def box_border(sizes: Sequence[int]) -> Border:
    """The border that `merge_grid` gives a box, in its order."""
    border = node_border(len(sizes))
    for axis in reversed(range(len(sizes))):
        border = _fold_steps(border, axis, sizes[axis])[1]
    return border


class _FoldStep(NamedTuple):
    """One round of merging `blocks` equal ones: the last one joins the rest where there is an odd one out (no wiring: it is
    the rest), and the others are joined in pairs if there are any."""

    blocks: int
    rest: Wiring | None
    pairs: Wiring | None


def _step_by_track(step: _FoldStep, tracks: int) -> _FoldStep:
    def wide(wiring: Wiring | None) -> Wiring | None:
        return None if wiring is None else Wiring(*(by_track(np.asarray(edges), tracks) for edges in wiring))

    return _FoldStep(step.blocks, wide(step.rest), wide(step.pairs))


def _fold_steps(border: Border, axis: int, count: int) -> tuple[list[_FoldStep], Border]:
    """How `count` blocks, each one node long along an axis, are merged along it, and the border of the result."""
    steps: list[_FoldStep] = []
    extent, rest = 1, None
    while True:
        joined, pairs = None, None
        if count % 2:
            if rest is None:
                rest = border
            else:
                joined, rest = wire(border, _shifted(rest, axis, extent))
        if count > 1:
            pairs, border = wire(border, _shifted(border, axis, extent))
        steps.append(_FoldStep(count, joined, pairs))
        if count <= 1:
            assert rest is not None
            return steps, rest
        count, extent = count // 2, 2 * extent


def _fold(blocks: Summary, steps: Sequence[_FoldStep]) -> Summary:
    """Merge the blocks that stand along the last batch axis."""
    rest: Summary | None = None
    for count, joined, pairs in steps:
        if count % 2:
            last = _along(blocks, slice(count - 1, count))
            rest = last if joined is None or rest is None else merge(last, rest, joined)
        if pairs is not None:
            even = count // 2 * 2
            blocks = merge(_along(blocks, slice(0, even, 2)), _along(blocks, slice(1, even, 2)), pairs)
    assert rest is not None
    return Summary(*(jnp.squeeze(array, -3) for array in rest))


def _along(blocks: Summary, span: slice) -> Summary:
    return Summary(*(array[..., span, :, :] for array in blocks))


# --- DAGs: intervals of a topological order --------------------------------------------------------------------------


class Level(NamedTuple):
    """How the blocks of one level are joined in pairs: index tables with a leading axis of pairs, padded past the end.

    `leaving` and `entering` bring the result's edges into their own order, without the gaps that padding leaves.
    """

    kept: Int[Indices, "pairs kept"]
    passed: Int[Indices, "pairs passed"]
    taken: Int[Indices, "pairs passed"]
    fresh: Int[Indices, "pairs fresh"]
    entering: Int[Indices, "pairs entering"]
    leaving: Int[Indices, "pairs leaving"]


def wire_level(borders: Sequence[Border]) -> tuple[Level, list[Border]]:
    """Join an even number of blocks in neighbouring pairs."""
    width_entering = max(len(border.entering) for border in borders)
    joined = [wire(a, b) for a, b in zip(borders[::2], borders[1::2], strict=True)]
    tables = [padded([list(wiring[k]) for wiring, _ in joined]) for k in range(4)]
    width_kept = tables[0].shape[1]
    entering: list[list[int]] = []
    leaving: list[list[int]] = []
    for (wiring, _), a, b in zip(joined, borders[::2], borders[1::2], strict=True):
        entering.append([*range(len(a.entering)), *(width_entering + k for k in range(len(wiring.fresh)))])
        leaving.append([*range(len(wiring.kept)), *(width_kept + k for k in range(len(b.leaving)))])
    kept, passed, taken, fresh = tables
    return Level(kept, passed, taken, fresh, padded(entering), padded(leaving)), [border for _, border in joined]


def level_by_track(level: Level, tracks: int) -> Level:
    """The same of blocks that have an edge for each track."""
    return Level(*(by_track(np.asarray(edges), tracks) for edges in level))


def merge_level(blocks: Summary, level: Level) -> Summary:
    """All pairs of one level at once: blocks `(*batch, blocks, ...)` to `(*batch, blocks / 2, ...)`."""

    def join(a: Summary, b: Summary, tables: Level) -> Summary:
        merged = merge(a, b, Wiring(tables.kept, tables.passed, tables.taken, tables.fresh))
        return Summary(
            select(merged.source, tables.leaving, -1),
            select(select(merged.transition, tables.leaving, -1), tables.entering, -2),
            select(merged.mark, tables.entering, -2),
            merged.gating,
        )

    pairs = jax.vmap(join, in_axes=(-3, -3, 0), out_axes=-3)
    return pairs(_along(blocks, slice(0, None, 2)), _along(blocks, slice(1, None, 2)), level)
