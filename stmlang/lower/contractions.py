"""Products of matrices and of other arrays, in full precision."""

from __future__ import annotations

from math import prod

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

PRECISION = lax.Precision.HIGHEST
"""Of every contraction: reassociating a product of gates is exactly what low-precision matrix units are bad at."""


def contract(equation: str, *arrays: Array) -> Array:
    """An einsum in full precision."""
    return jnp.einsum(equation, *arrays, precision=PRECISION)


def matmul(a: Array, b: Array) -> Array:
    """A batched matrix product in full precision.

    Batch axes are made one: XLA's CPU kernels abort on products of eight axes, and callers bring batch axes of their own.
    """
    if a.shape[-1] == 1:
        return a * b  # an outer product, and no call of a matrix kernel for each of many small ones
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    flat = (_one_batch_axis(array, batch) for array in (a, b))
    return contract("bij,bjk->bik", *flat).reshape(*batch, a.shape[-2], b.shape[-1])


def times_transposed(a: Array, b: Array) -> Array:
    """`a b^T`. No transpose is written down, which XLA might carry out."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    flat = (_one_batch_axis(array, batch) for array in (a, b))
    return contract("bij,bkj->bik", *flat).reshape(*batch, a.shape[-2], b.shape[-2])


def transposed_times(a: Array, b: Array) -> Array:
    """`a^T b`, likewise."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    flat = (_one_batch_axis(array, batch) for array in (a, b))
    return contract("bji,bjk->bik", *flat).reshape(*batch, a.shape[-1], b.shape[-1])


def transposed(a: Array) -> Array:
    """The last two axes exchanged."""
    return jnp.swapaxes(a, -1, -2)


def matrix_product(a: Array, b: Array, axis: int) -> Array:
    """`sum over the axis of a * b`, which broadcast; the axis is kept at size one. Axes that only `a` has are rows, those that
    only `b` has are columns, and the rest is batch."""
    others = [each for each in range(a.ndim) if each != axis]
    rows = [each for each in others if a.shape[each] > 1 and b.shape[each] == 1]
    columns = [each for each in others if b.shape[each] > 1 and a.shape[each] == 1]
    batch = [each for each in others if each not in rows and each not in columns]
    left = jnp.transpose(a, [*batch, *rows, *columns, axis])
    right = jnp.transpose(b, [*batch, *rows, axis, *columns])
    left = left.reshape(*left.shape[: len(batch)], prod(a.shape[each] for each in rows), a.shape[axis])
    right = right.reshape(*right.shape[: len(batch)], b.shape[axis], prod(b.shape[each] for each in columns))
    whole = matmul(left, right)
    sizes = [*whole.shape[: len(batch)], *(a.shape[each] for each in rows), *(b.shape[each] for each in columns), 1]
    order = [*batch, *rows, *columns, axis]
    return jnp.transpose(whole.reshape(sizes), [order.index(each) for each in range(a.ndim)])


def _one_batch_axis(array: Array, batch: tuple[int, ...]) -> Array:
    """Matrices repeated for every member of a batch, whose axes are made one."""
    count = prod(batch)  # not -1: a graph without open edges has matrices without rows
    return jnp.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(count, *array.shape[-2:])
