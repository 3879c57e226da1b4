"""What a node reads, without the states that its mark and direct gates would make: a gate that acts along rows, or is one
number, goes to the query, one that acts along columns to the result.

    q . (M C)  =  (q o M) . C        q . (D o outer(k, v))  =  (q . (D o k)) v
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.contractions import contract

Numbers = Float[Array, "head direction #track #key #value"]
"""A gate that acts elementwise."""


def read_whole(query: Float[Array, "head direction key"], state: Float[Array, "head direction track key value"]) -> Array:
    """`sum over track and key of q[k] C[track, k, v]`."""
    return contract("...k,...kv->...v", query, state.sum(-3))


def read_through(mark: Numbers, query: Float[Array, "head direction key"], state: Array) -> Array:
    """`q . (M C)`, summed over tracks."""
    tracks, _, values = mark.shape[-3:]
    if values > 1 and mark[..., 0].size > mark[..., 0, 0, 0].size:
        return read_whole(query, mark * state)
    if values > 1:
        return mark[..., 0, 0, :] * read_whole(query, state)
    if tracks == 1:
        return read_whole(query * mark[..., 0, :, 0], state)
    weights = jnp.broadcast_to(mark[..., 0] * query[..., None, :], state.shape[:-1])
    # Tracks and keys as one axis in the order of memory: told of two, einsum would exchange them, and move the state.
    rows = state.shape[-3] * state.shape[-2]
    return contract("...r,...rv->...v", weights.reshape(*weights.shape[:-2], rows), state.reshape(*state.shape[:-3], rows, -1))


def read_written(
    direct: Float[Array, "head direction #key #value"],
    query: Float[Array, "head direction key"],
    key: Float[Array, "head direction key"],
    value: Float[Array, "head direction value"],
) -> Array:
    """`q . (D o outer(k, v))`."""
    both = query * key
    if direct.shape[-2] > 1 and direct.shape[-1] > 1:
        return contract("...k,...kv->...v", both, direct) * value
    if direct.shape[-1] > 1:
        return both.sum(-1, keepdims=True) * direct[..., 0, :] * value
    return (both * direct[..., 0]).sum(-1, keepdims=True) * value
