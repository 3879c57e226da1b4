"""Decays over the stretches of lines, as sums of products of a source's number with a target's: one product for each level of a
binary tree at which two places can part, and for a pair that of the level at which it does.

Two directions that run along a line in opposite senses never share a pair. So they share arrays: of places in the left half of
a block the source is that of the forward sense and the target that of the backward one, in the right half the other way around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.no_fusion import apart
from stmlang.lower.segment_products import levels

Numbers = Float[Array, "head y x down along index"]
"""Numbers of nodes, an entry for each sense in which paths go down columns with each in which they go along lines."""
Merged = Float[Array, "head y x sense index"]
"""The same where the two senses along one of the two axes share an array."""


Sides = tuple[Array, Array]
"""Numbers of the forward sense along an axis and of the backward one; zero where no path goes that way."""


@dataclass(frozen=True)
class Stretches:
    """Products of decays strictly between places of one axis, 1 for y and 2 for x, for the senses in which it is walked: at
    every level at which places part those after a place in its half of a block, if that is the left one, else those before it.
    """

    axis: int
    senses: Sequence[int]
    within: Sequence[Sides]

    def sources(self, factor: Numbers) -> list[Merged]:
        """Those of sources, times a factor of theirs, level by level."""
        return self._merged(*_sides(factor, self.axis, self.senses))

    def targets(self, factor: Numbers) -> list[Merged]:
        """Those of targets, times a factor of theirs, level by level."""
        return self._merged(*_sides(factor, self.axis, self.senses), swapped=True)

    def _merged(self, forward: Array, backward: Array, *, swapped: bool = False) -> list[Merged]:
        """In left halves of blocks those of the forward sense, in right halves those of the other one; or `swapped`."""
        merged = list[Merged]()
        for level, (ahead, back) in enumerate(self.within):
            right = _in_right(max(ahead, back, key=jnp.ndim).shape[self.axis], level, 4 - self.axis)
            first = ~right if swapped else right
            merged.append(jnp.where(first, back, ahead) * jnp.where(first, backward, forward))
        return merged


def _sides(numbers: Numbers, axis: int, senses: Sequence[int]) -> Sides:
    """Taken apart by one split: its transpose is one concatenation."""
    entries = [jnp.squeeze(entry, axis + 2) for entry in jnp.split(numbers, len(senses), axis + 2)]
    nothing = jnp.zeros((), numbers.dtype)
    forward, backward = (entries[senses.index(sense)] if sense in senses else nothing for sense in (1, -1))
    return forward, backward


def _in_right(places: int, level: int, behind: int) -> Bool[Array, "places ..."]:
    """Which places are in the right half of a block of `2^(level + 1)`, with so many axes behind."""
    return ((jnp.arange(places, dtype=jnp.int32) >> level) % 2 == 1).reshape(-1, *(1,) * behind)


def stretches(decay: Numbers, axis: int, senses: Sequence[int]) -> Stretches:
    """Those of decays along an axis."""
    depth = (decay.shape[axis] - 1).bit_length()
    forward, backward = (_within(side, axis, depth) for side in _sides(decay, axis, senses))
    return Stretches(axis, senses, list(zip(forward, backward, strict=True)))


def _within(decay: Array, axis: int, depth: int) -> list[Array]:
    if decay.ndim == 0:
        return [decay] * depth
    pairs = levels(decay.reshape(*decay.shape[: axis + 1], -1)).pairs
    places = decay.shape[axis]
    return [
        jnp.where(_in_right(places, level, 1), before, after).reshape(decay.shape)
        for level, (after, before) in enumerate(pairs)
    ]


Table = Sequence[Merged]
"""Numbers of nodes level by level."""
Parting = Int[Array, "y x"]
"""At which level, counted from one, the places of a pair part: of those in a line, or of those in a column."""


def pairs_along(axis: int) -> Callable[[Table, Table, Parting], Float[Array, "head y x sense place index"]]:
    """`(moved, still, parting) -> entries`: numbers of nodes with those of places of their line (`axis` 2), or of their column
    (1), which are moved to an axis of their own: the product of the level at which a place parts from the node's own, and zero
    where it is the same. `parting` broadcasts against `(y, x, 1, 1, place)`.

    The adjoint sums one product for each level, where default differentiation would keep all of them.
    """

    def moved_out(table: Array) -> Array:
        return jnp.expand_dims(jnp.moveaxis(table, axis, 3), axis)

    def moved_back(table: Array) -> Array:
        return jnp.moveaxis(jnp.squeeze(table, axis), 3, axis)

    def levels_of(moved: Table, still: Table) -> list[tuple[Array, Array]]:
        return [(moved_out(a), b[..., None, :]) for a, b in zip(moved, still, strict=True)]

    @apart
    def entries(moved: Table, still: Table, parting: Array) -> Array:
        products: Array = jnp.zeros((), moved[0].dtype)
        for level, (a, b) in enumerate(levels_of(moved, still), 1):
            products = jnp.where(parting == level, a * b, products)
        return products

    @apart
    def pulled(moved: Table, still: Table, parting: Array, cotangent: Array) -> tuple[list[Array], list[Array]]:
        of_moved, of_still = list[Array](), list[Array]()
        for level, (a, b) in enumerate(levels_of(moved, still), 1):
            parted = jnp.where(parting == level, cotangent, 0)
            of_moved.append(moved_back(_summed(parted * b, a.shape)))
            of_still.append(jnp.squeeze(_summed(parted * a, b.shape), -2))
        return of_moved, of_still

    def forward(moved: Table, still: Table, parting: Array) -> tuple[Array, tuple[()]]:
        return entries(moved, still, parting), ()

    def backward(arguments: tuple[Any, ...], saved: Any, cotangent: Array) -> tuple[list[Array], list[Array], None]:
        del saved
        return (*pulled(*arguments, cotangent), None)

    return with_adjoint(entries, forward, backward)


def _summed(array: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes along which a shape has size one."""
    axes = tuple(axis for axis, size in enumerate(shape) if size < array.shape[axis])
    return array.sum(axes, keepdims=True)


pairs_in_lines = pairs_along(2)
pairs_in_columns = pairs_along(1)
