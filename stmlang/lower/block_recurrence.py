"""The recurrence over blocks: a scan over levels, all blocks of a level at once, states in a buffer of slots.

A slot holds the state of one edge from the level that writes it to the level that reads it. On a grid an axis has one live edge
for each of its lines, so the slots are the grid's border and the buffer is the scan's initial state before the first level
and its final state after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stmlang.lower.merge import Border
from stmlang.lower.tables import PAD, Indices, take

Step = Callable[[Any, Array], tuple[Array, Array]]
"""`(blocks of one level, states that enter them) -> (states that leave them, outputs)`, each with the blocks of the level in
front: `(block, entering, track, key, value)` to `(block, leaving, track, key, value)` and any outputs."""


class Sweep(NamedTuple):
    """Index tables of a sweep; what is absent is `PAD`."""

    order: Int[Indices, "level width"]
    place: Int[Indices, " block"]
    enter: Int[Indices, "level width entering"]
    leave: Int[Indices, "level width leaving"]


def run_sweep(tables: Sweep, blocks: Any, step: Step, slots: Float[Array, "slot track key value"]) -> tuple[Array, Array]:
    """Outputs `(block, ...)` in order of block number, and the slots after the last level.

    `blocks` is a pytree of arrays with a leading axis of blocks. Blocks that only fill up a level read zeros and write nothing.
    """
    levels, width = tables.order.shape
    flat = jnp.reshape(tables.order, -1)

    def by_level(array: Array) -> Array:
        taken = take(array, flat, 0)
        return taken.reshape(levels, width, *array.shape[1:])

    def one_level(state: Array, level: tuple[Any, Indices, Indices]) -> tuple[Array, Array]:
        blocks, enter, leave = level
        entering = take(state, enter, 0)
        leaving, outputs = step(blocks, entering)
        return state.at[leave].set(leaving, mode="drop"), outputs

    final, outputs = jax.lax.scan(one_level, slots, (jax.tree.map(by_level, blocks), tables.enter, tables.leave))
    outputs = outputs.reshape(levels * width, *outputs.shape[2:])
    return jnp.take(outputs, tables.place, axis=0), final


def line_counts(sizes: Sequence[int]) -> list[int]:
    """How many lines run along each axis of a grid: the states on its border, port by port."""
    return [prod([*sizes[:axis], *sizes[axis + 1 :]]) for axis in range(len(sizes))]


def grid_sweep(sizes: Sequence[int], tile: Sequence[int], border: Border) -> Sweep:
    """The wavefronts of a grid of equal tiles. `sizes` are multiples of `tile`; `border` is a tile's, in its own coordinates.

    Slots are ordered by port and, in each port, as the C-ordered array of the other axes.
    """
    tiles = [size // side for size, side in zip(sizes, tile, strict=True)]
    places = np.stack(np.unravel_index(np.arange(prod(tiles)), tiles), axis=-1) if tiles else np.zeros((1, 0), np.int64)
    levels = places.sum(axis=1)
    order, place = _by_level(levels)
    offsets = np.concatenate([[0], np.cumsum(line_counts(sizes))])

    def slots(edges: Sequence[Any]) -> np.ndarray:
        columns: list[np.ndarray] = []
        for port, inside in edges:
            node = places * np.asarray(tile) + np.asarray(inside)
            others = [axis for axis in range(len(sizes)) if axis != port]
            line = np.zeros(len(places), np.int64)
            for axis in others:
                line = line * sizes[axis] + node[:, axis]
            columns.append(offsets[port] + line)
        return np.stack(columns, axis=-1)

    return Sweep(order, place, _at_levels(slots(border.entering), order), _at_levels(slots(border.leaving), order))


def _by_level(levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks as a table of levels, and each one's place in that table, flattened."""
    count = int(levels.max(initial=-1)) + 1
    sizes = np.bincount(levels, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ordered = np.argsort(levels, kind="stable")
    column = np.arange(len(levels)) - starts[levels[ordered]]
    order = np.full((count, int(sizes.max(initial=0))), PAD, np.int32)
    order[levels[ordered], column] = ordered
    place = np.empty(len(levels), np.int32)
    place[ordered] = levels[ordered] * order.shape[1] + column
    return order, place


def _at_levels(table: np.ndarray, order: np.ndarray) -> np.ndarray:
    rows = np.where(order[..., None] == PAD, PAD, table[np.minimum(order, len(table) - 1)])
    return rows.astype(np.int32)


def assign_slots(
    reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]], initial: Sequence[int]
) -> tuple[dict[int, int], int]:
    """Slots for edges when blocks run one after the other: block `t` reads and frees the edges `reads[t]`, then writes
    `writes[t]`. `initial` edges are there from the start, and edges nobody reads keep their slot. Returns the slots and how
    many there are."""
    slot, free, count = dict[int, int](), list[int](), 0
    for edge in initial:
        slot[edge], count = count, count + 1
    for read, written in zip(reads, writes, strict=True):
        free.extend(slot[edge] for edge in reversed(read))
        for edge in written:
            if free:
                slot[edge] = free.pop()
            else:
                slot[edge], count = count, count + 1
    return slot, count
