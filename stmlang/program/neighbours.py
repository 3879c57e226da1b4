"""Whether there is a node at the other end of an edge: on grids by place and mask, elsewhere by the tables of edges."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from stmlang.lower.values import Frame, Value


def neighbour(frame: Frame, over: Literal["out", "in"]) -> Value:
    """One where an edge comes from a node (`in`) or leads to one (`out`), else zero."""
    if frame.sites is not None:
        ends = frame.sites.tail if over == "in" else frame.sites.head
        return Value(jnp.asarray(ends < frame.nodes).astype(frame.dtype).reshape(-1, *(1,) * (frame.rank - 1)), over)
    nodes = jnp.ones(frame.grid, bool) if frame.mask is None else frame.mask
    by_direction = [
        jnp.stack(
            [_there(nodes, axis, sense if over == "in" else -sense) for axis, sense in enumerate(direction.senses)], axis=-1
        )
        for direction in frame.scan.directions
    ]
    joined = jnp.stack(by_direction, axis=-2).astype(frame.dtype)
    before, behind = (frame.axis(over) - frame.site_axes - 2, frame.rank - frame.axis(over) - 1)
    shape = (*frame.grid, 1, len(by_direction), *(1,) * before, len(frame.ports), *(1,) * behind)
    return Value(joined.reshape(shape), "node")


def _there(nodes: Bool[Array, "*nodes"], axis: int, sense: int) -> Bool[Array, "*nodes"]:
    """Whether a node counts that lies one step back along an axis. On a chain those that do not count are skipped."""
    counts = nodes
    if nodes.ndim == 1:
        counts = jax.lax.cummax(nodes.astype(jnp.int32), axis=0, reverse=sense < 0) > 0
    none = jnp.zeros_like(jax.lax.slice_in_dim(counts, 0, min(1, counts.shape[axis]), axis=axis))
    if sense > 0:
        return jnp.concatenate([none, jax.lax.slice_in_dim(counts, 0, max(counts.shape[axis] - 1, 0), axis=axis)], axis=axis)
    return jnp.concatenate([jax.lax.slice_in_dim(counts, min(1, counts.shape[axis]), None, axis=axis), none], axis=axis)
