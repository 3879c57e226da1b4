"""A grid in raster order: nested scans, one for each axis, the last axis innermost.

The states that move along an axis are what the scan over that axis carries. Those that move along the others pass through it:
a step of the scan reads its share of them and leaves what they have become in the same place. So states are never gathered or
scattered, there is one live state for every line of the grid, and the program does not grow with the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import jax
from jaxtyping import Array

States = tuple[Any, ...]
"""For each axis the states that move along it."""
Step = Callable[[States, Any], tuple[States, Any]]
"""`(states that enter a box, its inputs) -> (states that leave it, outputs)`."""
Body = Callable[[Any, Any], tuple[Any, Any]]


def walk(step: Step, states: States, inputs: Any, *, recompute: bool = False) -> tuple[States, Any]:
    """The states that leave a grid of boxes, and every box's outputs.

    `states[a]`, a pytree, has in front the axes of the grid without axis a; `inputs` and the outputs have all of them. With
    `recompute` a backward pass keeps the states that enter each slab of the outer axes, and runs the slab again.
    """
    rank = len(states)

    def level(axis: int, states: States, inputs: Any) -> tuple[States, Any]:
        if axis == rank:
            return step(states, inputs)

        def slab(carry: Any, rest: tuple[States, Any]) -> tuple[Any, tuple[States, Any]]:
            across, inside = rest
            after, outputs = level(axis + 1, (*across[:axis], carry, *across[axis:]), inside)
            return after[axis], (_without(after, axis), outputs)

        body = recomputed(slab) if recompute and axis < rank - 1 else slab
        carry, (across, outputs) = jax.lax.scan(body, states[axis], (_without(states, axis), inputs))
        return (*across[:axis], carry, *across[axis:]), outputs

    return level(0, states, inputs)


def in_segments(step: Step, states: States, inputs: Any, segments: int) -> tuple[States, Any]:
    """A step that takes slabs of the first axis, run on so many segments of them one after the other.

    What `walk` gives where the step walks through its slabs; but a backward pass keeps no more than the states that enter
    each segment, and runs the segment again.
    """
    if segments == 1:
        return step(states, inputs)

    def split(array: Array) -> Array:
        return array.reshape(segments, array.shape[0] // segments, *array.shape[1:])

    def joined(array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    def segment(carry: Any, rest: tuple[States, Any]) -> tuple[Any, tuple[States, Any]]:
        across, inside = rest
        after, outputs = step((carry, *across), inside)
        return after[0], (after[1:], outputs)

    carry, rest = jax.lax.scan(recomputed(segment), states[0], jax.tree.map(split, (states[1:], inputs)))
    across, outputs = jax.tree.map(joined, rest)
    return (carry, *across), outputs


def recomputed(body: Body) -> Body:
    """The body of a scan, of which a backward pass keeps nothing but its arguments."""
    return cast(Body, jax.checkpoint(body, prevent_cse=False))


def _without(states: States, axis: int) -> States:
    return (*states[:axis], *states[axis + 1 :])
