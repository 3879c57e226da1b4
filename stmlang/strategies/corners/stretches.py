"""Decays over the stretches of lines, as sums of products of a source's number with a target's: one product for each level of a
binary tree at which two places can part, and for a pair that of the level at which it does.

Two directions that run along a line in opposite senses never share a pair. So they share arrays: of places in the left half of a
block the source is that of the forward sense and the target that of the backward one, in the right half the other way around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.no_fusion import apart
from stmlang.lower.segment_products import levels

Numbers = Float[Array, "y x head down along index"]
"""Numbers of nodes, an entry for each sense in which paths go down columns with each in which they go along lines."""
Merged = Float[Array, "y x head sense index"]
"""The same where the two senses along one of the two axes share an array."""


@dataclass(frozen=True)
class Stretches:
    """Products of decays strictly between places of one axis, 0 for y and 1 for x, for the senses in which it is walked: `after`
    a place in its half of a block and `before` it, at every level at which places part."""

    axis: int
    senses: Sequence[int]
    after: Sequence[Numbers]
    before: Sequence[Numbers]

    def sources(self, factor: Numbers) -> list[Merged]:
        """Those of sources, times a factor of theirs, level by level."""
        return self._merged(factor, 1)

    def targets(self, factor: Numbers) -> list[Merged]:
        """Those of targets, times a factor of theirs, level by level."""
        return self._merged(factor, -1)

    def _merged(self, factor: Numbers, left: int) -> list[Merged]:
        """Of places in left halves of blocks what lies after them, in the sense `left`, of those in right halves what lies before
        them, in the other sense."""
        merged = list[Merged]()
        for level, (after, before) in enumerate(zip(self.after, self.before, strict=True)):
            place = jnp.arange(after.shape[self.axis], dtype=jnp.int32).reshape(-1, *(1,) * (4 - self.axis))
            in_right = (place >> level) % 2 == 1
            merged.append(
                jnp.where(in_right, self._of_sense(before * factor, -left), self._of_sense(after * factor, left))
            )
        return merged

    def _of_sense(self, numbers: Numbers, sense: int) -> Array:
        """The entry of a sense; zero where no path goes that way."""
        if sense not in self.senses:
            return jnp.zeros((), numbers.dtype)
        return lax.index_in_dim(numbers, self.senses.index(sense), 3 + self.axis, keepdims=False)


def stretches(decay: Numbers, axis: int, senses: Sequence[int]) -> Stretches:
    """Those of decays along an axis."""
    lines = decay.reshape(*decay.shape[: axis + 1], -1)
    pairs = levels(lines).pairs
    after, before = ([table[side].reshape(decay.shape) for table in pairs] for side in (0, 1))
    return Stretches(axis, senses, after, before)


Parting = Int[Array, "*pairs"]
"""At which level, counted from one, the places of a pair part."""


@apart
def _pairs(sources: list[Array], targets: list[Array], parting: Parting) -> Array:
    entries: Array = jnp.zeros((), sources[0].dtype)
    for level, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        entries = jnp.where(parting == level, source * target, entries)
    return entries


@apart
def _pulled(sources: list[Array], targets: list[Array], parting: Parting, cotangent: Array) -> tuple[list[Array], list[Array]]:
    of_sources, of_targets = list[Array](), list[Array]()
    for level, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        parted = jnp.where(parting == level, cotangent, 0)
        of_sources.append(_summed(parted * target, source.shape))
        of_targets.append(_summed(parted * source, target.shape))
    return of_sources, of_targets


def _summed(array: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes along which a shape has size one."""
    axes = tuple(axis for axis, size in enumerate(shape) if size < array.shape[axis])
    return array.sum(axes, keepdims=True)


def _forward(sources: list[Array], targets: list[Array], parting: Parting) -> tuple[Array, tuple[()]]:
    return _pairs(sources, targets, parting), ()


def _backward(arguments: tuple[Any, ...], saved: Any, cotangent: Array) -> tuple[list[Array], list[Array], None]:
    del saved
    sources, targets, parting = arguments
    return (*_pulled(sources, targets, parting, cotangent), None)


pairs: Callable[[list[Array], list[Array], Parting], Array] = with_adjoint(_pairs, _forward, _backward)
"""`(sources, targets, parting) -> entries` of pairs: source times target of the level at which a pair parts, zero where it parts
at none. All broadcast. The adjoint sums one product for each level, where default differentiation would keep them all."""

