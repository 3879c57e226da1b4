"""A grid in raster order: nested scans, one for each axis, the last axis innermost.

The states that move along an axis are what the scan over that axis carries. Those that move along the others pass through it:
a step of the scan reads its share of them and leaves what they have become in the same place. So states are never gathered or
scattered, there is one live state for every line of the grid, and the program does not grow with the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
from jaxtyping import Array

States = tuple[Any, ...]
"""For each axis the states that move along it."""
Step = Callable[[States, Any], tuple[States, Any]]
"""`(states that enter a box, its data) -> (states that leave it, outputs)`."""
Body = Callable[[Any, Any], tuple[Any, Any]]


def walk(step: Step, states: States, data: Any, *, recompute: bool = False, segments: int = 1) -> tuple[States, Any]:
    """The states that leave a grid of boxes, and every box's outputs.

    `states[a]`, a pytree, has in front the axes of the grid without axis a; `data` and the outputs have all of them. With
    `recompute` a backward pass keeps the states that enter each slab of the outer axes, and runs the slab again; with
    `segments`, a divisor of the first axis, it keeps those that enter each segment of slabs, and runs the segment again.
    """
    rank = len(states)

    def level(axis: int, states: States, data: Any) -> tuple[States, Any]:
        if axis == rank:
            return step(states, data)

        def slab(carry: Any, rest: tuple[States, Any]) -> tuple[Any, tuple[States, Any]]:
            across, inside = rest
            after, outputs = level(axis + 1, (*across[:axis], carry, *across[axis:]), inside)
            return after[axis], (_without(after, axis), outputs)

        body = _recomputed(slab) if recompute and axis < rank - 1 else slab
        carry, (across, outputs) = _scan(body, states[axis], (_without(states, axis), data), segments if axis == 0 else 1)
        return (*across[:axis], carry, *across[axis:]), outputs

    return level(0, states, data)


def _without(states: Sequence[Any], axis: int) -> States:
    return (*states[:axis], *states[axis + 1 :])


def _recomputed(body: Body) -> Body:
    """The body of a scan, of which a backward pass keeps nothing but its arguments."""
    return cast(Body, jax.checkpoint(body, prevent_cse=False))


def _scan(body: Body, carry: Any, data: Any, segments: int) -> tuple[Any, Any]:
    """`lax.scan`, of which a backward pass keeps no more than the carry at the start of each segment."""
    if segments == 1:
        return jax.lax.scan(body, carry, data)

    def split(array: Array) -> Array:
        return array.reshape(segments, array.shape[0] // segments, *array.shape[1:])

    def joined(array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def segment(carry: Any, data: Any) -> tuple[Any, Any]:
        return jax.lax.scan(body, carry, data)

    carry, outputs = jax.lax.scan(_recomputed(segment), carry, jax.tree.map(split, data))
    return carry, jax.tree.map(joined, outputs)
