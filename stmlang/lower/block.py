"""A piece of a DAG seen from its border: what enters, what leaves, and what its nodes see of each other."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

PRECISION = lax.Precision.HIGHEST
"""Of every contraction: reassociating a product of gates is exactly what low-precision matrix units are bad at."""


class Block(NamedTuple):
    """A convex set of nodes as one node with matrix gates (paper, appendix on hierarchical parallelization).

    `source[n, o]`: what node n's input contributes to leaving edge o; `transition[i, o]`: what entering edge i passes on to o;
    `mark[i, n]`: what node n reads of i; `gating[m, n]`: what node n reads of node m's input, `direct` left out. These are
    sums over all paths inside the block. Nodes are in a topological order. Axes in front are batches.
    """

    source: Float[Array, "*batch node leaving"]
    transition: Float[Array, "*batch entering leaving"]
    mark: Float[Array, "*batch entering node"]
    gating: Float[Array, "*batch node node"]


def matmul(a: Array, b: Array) -> Array:
    """A batched matrix product in full precision.

    Batch axes are made one: XLA's CPU kernels abort on products of eight axes, and callers bring batch axes of their own.
    """
    if a.shape[-1] == 1:
        return a * b  # an outer product, and no call of a matrix kernel for each of many small ones
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    count = prod(batch)  # not -1: a graph without open edges has matrices without rows
    flat = (jnp.broadcast_to(part, (*batch, *part.shape[-2:])).reshape(count, *part.shape[-2:]) for part in (a, b))
    product = jnp.einsum("bij,bjk->bik", *flat, precision=PRECISION)
    return product.reshape(*batch, a.shape[-2], b.shape[-1])


def transposed(a: Array) -> Array:
    """The last two axes exchanged."""
    return jnp.swapaxes(a, -1, -2)


def contract(equation: str, *arrays: Array) -> Array:
    """An einsum in full precision."""
    return jnp.einsum(equation, *arrays, precision=PRECISION)


def attend(gating: Array, query: Array, key: Array, value: Array) -> Array:
    """`h[n] = sum over m of gating[m, n] (q[n] . k[m]) v[m]`: masked linear attention, ((Q K^T) o G^T) V."""
    return matmul(transposed(matmul(key, transposed(query)) * gating), value)


def read(mark: Array, query: Array, state: Array) -> Array:
    """`h[n] = q[n] . sum over i of mark[i, n] C[i]`, the states `(*batch, entering, key, value)` being those that enter."""
    *batch, entering, key, value = state.shape
    weighted = transposed(mark)[..., :, :, None] * query[..., :, None, :]
    flat = weighted.reshape(*weighted.shape[:-2], entering * key)
    return matmul(flat, state.reshape(*batch, entering * key, value))


def write(source: Array, key: Array, value: Array) -> Array:
    """`C[o] = sum over n of source[n, o] outer(k[n], v[n])`: (*batch, leaving, key, value)."""
    weighted = transposed(source)[..., :, None, :] * transposed(key)[..., None, :, :]
    *batch, leaving, size, nodes = weighted.shape
    flat = matmul(weighted.reshape(*batch, leaving * size, nodes), value)
    return flat.reshape(*batch, leaving, size, value.shape[-1])


def advance(transition: Array, state: Array) -> Array:
    """`C[o] = sum over i of transition[i, o] C[i]`."""
    *batch, entering, key, value = state.shape
    flat = matmul(transposed(transition), state.reshape(*batch, entering, key * value))
    return flat.reshape(*flat.shape[:-1], key, value)
