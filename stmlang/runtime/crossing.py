"""The states that cross a cut, as lanes, numbers that are mixed and columns that are alike (`stmlang.cost.exchange`)."""

from __future__ import annotations

from math import prod
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.cost.exchange import Border
from stmlang.scan.scan import Scan


def _axes(scan: Scan, rank: int) -> tuple[list[int], list[int], list[int]]:
    """The axes of states that cross the cut, `(*others, head, [track], key, value)`: those along which `T` is diagonal,
    those that it mixes and those along which it is the same."""
    names = ("track", "key", "value") if scan.track > 1 else ("key", "value")
    first = rank - len(names)
    indices = cast(tuple[str, ...], scan.gate("transition").indices)
    lanes, mixed, free = [first - 1], list(range(first - 1)), list[int]()
    for axis, name in enumerate(names, first):
        group = mixed if f"{name}'" in indices else lanes if name in indices else free
        group.append(axis)
    return lanes, mixed, free


def border_of(scan: Scan, shape: tuple[int, ...], bytes: int) -> Border:
    """Of states of a shape, in numbers of so many bytes."""
    lanes, mixed, free = (prod(shape[axis] for axis in axes) for axes in _axes(scan, len(shape)))
    return Border(lanes, mixed, free, bytes)


def laid(scan: Scan, state: Array) -> Float[Array, "lane mixed free"]:
    """A state so laid out."""
    order = _axes(scan, state.ndim)
    sizes = [prod(state.shape[axis] for axis in axes) for axes in order]
    return jnp.transpose(state, [axis for axes in order for axis in axes]).reshape(sizes)


def unlaid(scan: Scan, lanes: Array, shape: tuple[int, ...]) -> Array:
    """The state of a shape that is laid out so."""
    order = [axis for axes in _axes(scan, len(shape)) for axis in axes]
    return jnp.transpose(lanes.reshape([shape[axis] for axis in order]), np.argsort(order).tolist())


def unit_states(scan: Scan, shape: tuple[int, ...], turn: int) -> Array:
    """States whose columns that are alike are unit vectors, one after the other, from the first of a turn on."""
    _, mixed, free = _axes(scan, len(shape))

    def number(axes: list[int]) -> Array:
        total = jnp.zeros(shape, jnp.int32)
        for axis in axes:
            total = total * shape[axis] + jax.lax.broadcasted_iota(jnp.int32, shape, axis)
        return total

    return number(mixed) == number(free) + turn * prod(shape[axis] for axis in free)
