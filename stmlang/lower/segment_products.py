"""Products of decays over every stretch of a chunk, without logarithms and without a division: zeros and signs are exact.

A pair `m < n` of places in a chunk parts at one level of a binary tree, the one of the highest bit in which m and n differ:
there m is in the left half of some block and n in the right half of it. So the product of the decays strictly between them is

    after[level, m] * before[level, n]

what is left of m's half after m, times what there is of n's half before n. The tables have log2(chunk) rows, come from each
other by doubling, and the chunk's matrix is a choice among as many outer products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import contract


class Levels(NamedTuple):
    """Products within the block of `2^level` places where a place is, one entry for each level: of those `after` it and of
    those `before` it. The last level is the whole chunk, and `through` the product of all."""

    after: tuple[Float[Array, "*batch place index *matrix"], ...]
    before: tuple[Float[Array, "*batch place index *matrix"], ...]
    through: Float[Array, "*batch index *matrix"]

    @property
    def pairs(self) -> list[tuple[Array, Array]]:
        """`(after, before)` of every level at which places part."""
        return list(zip(self.after[:-1], self.before[:-1], strict=True))


def levels(decay: Float[Array, "*batch place index"]) -> Levels:
    """The tables of a chunk of any length."""
    *lead, places, index = decay.shape
    depth = max(places - 1, 0).bit_length()
    padding = [(0, 0)] * len(lead) + [(0, 2**depth - places), (0, 0)]
    product = jnp.pad(decay, padding, constant_values=1)[..., None, :]
    after = before = jnp.ones_like(product)
    tables = [(after, before)]
    for _ in range(depth):
        # (*batch, blocks, places, index): neighbouring blocks become the halves of one.
        left, right = product[..., 0::2, :, :], product[..., 1::2, :, :]
        after = jnp.concatenate([after[..., 0::2, :, :] * right, after[..., 1::2, :, :]], axis=-2)
        before = jnp.concatenate([before[..., 0::2, :, :], before[..., 1::2, :, :] * left], axis=-2)
        product = left * right
        tables.append((after, before))

    def flat(array: Array) -> Array:
        return array.reshape(*lead, 2**depth, index)[..., :places, :]

    return Levels(
        tuple(flat(after) for after, _ in tables),
        tuple(flat(before) for _, before in tables),
        product.reshape(*lead, index),
    )


def matrix_levels(decay: Float[Array, "*batch place index track track"]) -> Levels:
    """The same tables of matrices, `(*batch, place, index, track, track)` each, the later node's to the left."""
    *lead, places, index, track, _ = decay.shape
    depth = max(places - 1, 0).bit_length()
    identity = jnp.broadcast_to(jnp.eye(track, dtype=decay.dtype), (*lead, 2**depth, index, track, track))
    axis = len(lead)
    padded = lax.dynamic_update_slice_in_dim(identity, decay, 0, axis)

    def pairs(array: Array) -> tuple[Array, Array]:
        """Neighbouring blocks; `array` has axes of blocks and of places, `(*batch, block, place, ...)`."""
        split = array.reshape(*lead, -1, 2, *array.shape[axis + 1 :])
        return lax.index_in_dim(split, 0, axis + 1, keepdims=False), lax.index_in_dim(split, 1, axis + 1, keepdims=False)

    def then(first: Array, second: Array) -> Array:
        return jnp.sum(second[..., :, :, None] * first[..., None, :, :], axis=-2)

    product = jnp.expand_dims(padded, axis + 1)
    after = before = jnp.expand_dims(identity, axis + 1)
    tables = [(after, before)]
    for _ in range(depth):
        (left, right), afters, befores = pairs(product), pairs(after), pairs(before)
        after = jnp.concatenate([then(afters[0], right), afters[1]], axis=axis + 1)
        before = jnp.concatenate([befores[0], then(left, befores[1])], axis=axis + 1)
        product = then(left, right)
        tables.append((after, before))

    def flat(array: Array) -> Array:
        whole = array.reshape(*lead, 2**depth, index, track, track)
        return lax.slice_in_dim(whole, 0, places, axis=axis)

    return Levels(
        tuple(flat(after) for after, _ in tables),
        tuple(flat(before) for _, before in tables),
        product.reshape(*lead, index, track, track),
    )


def parted(places: int, level: int) -> Bool[Array, "target source"]:
    """Which pairs of a target and an earlier source part at a level: are in the two halves of one block of `2^(level + 1)`."""
    target, source = _places(places)
    return (target ^ source) >> level == jnp.where(target > source, 1, -1)


def _places(places: int) -> tuple[Int[Array, "target source"], Int[Array, "target source"]]:
    shape = (places, places)
    return lax.broadcasted_iota(jnp.int32, shape, 0), lax.broadcasted_iota(jnp.int32, shape, 1)


class Paths(NamedTuple):
    """Scalar decays: from each source to each later target, from the chunk's start to each target, from each source to the
    chunk's end, and from start to end."""

    inside: Float[Array, "*batch target source"]
    into: Float[Array, "*batch target"]
    out: Float[Array, "*batch source"]
    through: Float[Array, "*batch"]


def _paths(decay: Float[Array, "*batch place"]) -> Paths:
    tables = levels(decay[..., None])
    places = decay.shape[-1]
    inside: Array = jnp.zeros((), decay.dtype)
    for level, (after, before) in enumerate(tables.pairs):
        inside = jnp.where(parted(places, level), before * jnp.swapaxes(after, -1, -2), inside)
    inside = jnp.broadcast_to(inside, (*decay.shape, places))
    return Paths(inside, tables.before[-1][..., 0], tables.after[-1][..., 0], tables.through[..., 0])


def _saving(decay: Array) -> tuple[Paths, Paths]:
    segment_paths = _paths(decay)
    return segment_paths, segment_paths


def _pull(args: tuple[Any, ...], paths: Paths, cotangent: Paths) -> tuple[Array]:
    """Every product through a place, without that place's own factor: `sum over m < j < n of L[j, m] dL[n, m] L[n, j]`, the
    start of the chunk being one more source and its end one more target."""
    del args
    inside, into, out, _ = paths
    met = contract("...nj,...nm->...jm", inside, cotangent.inside) + out[..., :, None] * cotangent.out[..., None, :]
    entering = contract("...nj,...n->...j", inside, cotangent.into) + out * cotangent.through[..., None]
    return ((inside * met).sum(-1) + into * entering,)


paths = with_adjoint(_paths, _saving, _pull)
"""The products over all stretches of a chunk. Their adjoint is a product of the matrix with what is asked of it, where default
differentiation would sum over the matrix twice for each level."""
