"""Index tables: integer arrays that say where things stand, known while a program is built or given to it as arguments."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from stmlang.lower.mesh_axes import alike

Indices = np.ndarray | Array
"""Positions along an axis; those past its end stand for something that is not there, and read zero."""

PAD = np.int32(2**31 - 1)
"""Past the end of every axis."""


def padded(rows: Sequence[Sequence[int]], width: int | None = None) -> Int[np.ndarray, "rows width"]:
    """Rows of unequal length as one table, filled up with `PAD`."""
    width = max((len(row) for row in rows), default=0) if width is None else width
    table = np.full((len(rows), width), PAD, np.int32)
    for k, row in enumerate(rows):
        table[k, : len(row)] = row
    return table


def by_track(indices: np.ndarray, tracks: int, axis: int = -1) -> np.ndarray:
    """A table along whose axis are edges, and in it edges, as one with all tracks of each, behind each other."""
    if tracks == 1:
        return indices
    axis %= indices.ndim
    own = np.arange(tracks, dtype=indices.dtype).reshape(-1, *(1,) * (indices.ndim - axis - 1))
    edges = np.expand_dims(indices, axis + 1)
    wide = np.where(edges == PAD, PAD, np.where(edges == PAD, 0, edges) * tracks + own)
    return wide.reshape(*indices.shape[:axis], -1, *indices.shape[axis + 1 :])


def select(array: Array, indices: Indices, axis: int) -> Array:
    """Entries along an axis. Indices known now that are contiguous become a slice, all of them in order the array itself."""
    if isinstance(indices, np.ndarray) and indices.ndim == 1:
        if len(indices) == 0:
            return jax.lax.slice_in_dim(array, 0, 0, axis=axis % array.ndim)
        first, last = int(indices[0]), int(indices[-1])
        if last - first + 1 == len(indices) and bool((np.diff(indices) == 1).all()):
            if len(indices) == array.shape[axis]:
                return array
            return jax.lax.slice_in_dim(array, first, last + 1, axis=axis % array.ndim)
    return take(array, indices, axis)


def take(array: Array, indices: Indices, axis: int) -> Array:
    """Entries along an axis, zero for what is not there; the axes of `indices` take the axis's place."""
    if array.size == 0:  # jnp.take then forgets the shape of the indices
        axis %= array.ndim
        return alike(jnp.zeros((*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :]), array.dtype), array)
    return jnp.take(array, indices, axis=axis, mode="fill", fill_value=0)
