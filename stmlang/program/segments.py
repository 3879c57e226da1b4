"""Packed sequences, and images side by side: a node sees along an axis only a neighbour that has the same number.

Where its neighbour has another one, what enters a node is neither read nor passed on: mark and transition are zero for that
edge. So what is left are the pieces by themselves, in value and gradient, whatever evaluates them. Initial states enter the
pieces at the border they come from, and final states leave those at the other border.

On a chain the neighbour is the last node before that counts, where a mask leaves nodes out.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from stmlang.lower.operands import Delta, Deltas, Factors, Operands, flip
from stmlang.program.node_mask import Mask
from stmlang.scan.scan import Direction

Segments = Int[Array, "*nodes"]
Borders = Bool[Array, "direction *nodes in"]


def borders(segments: Segments, mask: Mask | None, directions: Sequence[Direction]) -> Borders:
    """Where what enters a node along a port comes from another piece, in every direction's own coordinates."""
    own = jnp.ones(segments.shape, jnp.bool_) if mask is None else mask

    def oriented(direction: Direction) -> Bool[Array, "*nodes in"]:
        numbers, counted = (flip(array, direction.senses, 0) for array in (segments, own))
        if segments.ndim == 1:
            return _along_chain(numbers, counted)[:, None]
        return jnp.stack([_along(numbers, axis) for axis in range(segments.ndim)], -1)

    return jnp.stack([oriented(direction) for direction in directions])


def _along(numbers: Segments, axis: int) -> Bool[Array, "*nodes"]:
    """Where the node before along an axis has another number; the first has none before it."""
    first = jnp.zeros_like(jax.lax.slice_in_dim(numbers, 0, 1, axis=axis), jnp.bool_)
    later = jax.lax.slice_in_dim(numbers, 1, numbers.shape[axis], axis=axis)
    return jnp.concatenate([first, later != jax.lax.slice_in_dim(numbers, 0, numbers.shape[axis] - 1, axis=axis)], axis)


def _along_chain(numbers: Segments, counted: Mask) -> Bool[Array, " nodes"]:
    """Where a node that counts has another number than the last one before it that does."""
    nothing = jnp.full(1, -1, jnp.int32)
    place = jnp.where(counted, jnp.arange(len(numbers), dtype=jnp.int32), nothing)
    before = jnp.concatenate([nothing, jax.lax.cummax(place)[:-1]])
    return counted & (before >= 0) & (numbers != jnp.take(numbers, before, mode="clip"))


def separated(operands: Operands, closed: Borders) -> Operands:
    """Operands of a regular topology where nothing passes the borders."""
    transition = _zero(closed[..., None, :], operands.transition)
    operands = operands._replace(transition=transition, mark=_zero(closed, operands.mark))
    if operands.factors is not None:
        operands = operands._replace(factors=Factors(operands.factors.out, _zero(closed, operands.factors.into)))
    if operands.deltas is not None:
        operands = operands._replace(deltas=_overwriting(operands.deltas, closed))
    return operands


def _overwriting(deltas: Deltas, closed: Borders) -> Deltas:
    """Gates of the delta rule's form, of scale zero at the borders."""
    step, mark, shares = deltas
    ports = closed.shape[-1]

    def scaled(form: Delta, *entering: int) -> Delta:
        """`entering` are the axes of the ports."""
        scale = jnp.ones((*form.strength.shape, *entering), form.strength.dtype) if form.scale is None else form.scale
        return form._replace(scale=_zero(closed[..., None, :] if len(entering) > 1 else closed, scale))

    if shares is not None:
        shares = shares._replace(into=_zero(closed, shares.into))
    return Deltas(scaled(step, ports, ports), None if mark is None else scaled(mark, ports), shares)


def _zero(closed: Bool[Array, "direction *sites"], gate: Array) -> Array:
    """A gate `(direction, head, *sites, ...)` that is zero at the borders."""
    shape = (closed.shape[0], 1, *closed.shape[1:], *(1,) * (gate.ndim - closed.ndim - 1))
    return jnp.where(closed.reshape(shape), jnp.zeros((1,) * gate.ndim, gate.dtype), gate)
