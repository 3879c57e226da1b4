"""What every strategy on a regular topology shares: nodes as blocks, tiles, and the state on the border."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.block_recurrence import line_counts
from stmlang.lower.gates import passing
from stmlang.lower.operands import Operands, Scalars
from stmlang.lower.summary import Summary


def node_blocks(gates: Scalars) -> Summary:
    """Every node as a block: gates `(*batch, *sizes, ...)` to blocks `(*batch, *sizes, ., .)`."""
    source, mark = gates.source[..., None, :], gates.mark[..., :, None]
    return Summary(source, jnp.swapaxes(gates.transition, -1, -2), mark, jnp.zeros((*source.shape[:-1], 1), source.dtype))


def pad_grid(operands: Operands, sizes: Sequence[int], target: Sequence[int]) -> Operands:
    """The grid enlarged at its far ends by nodes that pass every state straight on and touch nothing else.

    Not for factored operands: a node that passes its states straight on has no rank-one transition.
    """
    assert operands.factors is None
    extra = [goal - size for size, goal in zip(sizes, target, strict=True)]
    if not any(extra):
        return operands

    def pad(array: Array) -> Array:
        widths = [(0, 0), (0, 0), *((0, n) for n in extra), *((0, 0) for _ in range(array.ndim - 2 - len(extra)))]
        return jnp.pad(array, widths)

    padded = jax.tree.map(pad, operands)
    inside = jnp.zeros((), bool)
    for axis, size in enumerate(sizes):
        beyond = jnp.arange(target[axis]) >= size
        inside = inside | beyond.reshape([-1 if k == axis else 1 for k in range(len(sizes))])
    ports = len(sizes)
    state = padded.transition.ndim - 4 - len(sizes)
    straight = jnp.eye(ports, dtype=padded.transition.dtype).reshape(ports, ports, *(1,) * state)
    straight = straight * passing(padded.transition)[None, None]
    beyond = inside.reshape(*inside.shape, *(1,) * (2 + state))
    return padded._replace(transition=jnp.where(beyond, straight, padded.transition))


def tiled(array: Array, tiles: Sequence[int], tile: Sequence[int], batch: int) -> Array:
    """`(*batch, *sizes, ...)` to `(*batch, *tiles, *tile, ...)`."""
    rank, tail = len(tile), array.shape[batch + len(tile) :]
    split = [n for pair in zip(tiles, tile, strict=True) for n in pair]
    array = array.reshape(*array.shape[:batch], *split, *tail)
    outer, inner = [batch + 2 * k for k in range(rank)], [batch + 2 * k + 1 for k in range(rank)]
    rest = range(batch + 2 * rank, array.ndim)
    return jnp.transpose(array, [*range(batch), *outer, *inner, *rest])


def untiled(array: Array, tiles: Sequence[int], tile: Sequence[int], batch: int) -> Array:
    """The inverse of `tiled`."""
    rank = len(tile)
    order = [*range(batch), *(axis for k in range(rank) for axis in (batch + k, batch + rank + k))]
    array = jnp.transpose(array, [*order, *range(batch + 2 * rank, array.ndim)])
    sizes = [a * b for a, b in zip(tiles, tile, strict=True)]
    return array.reshape(*array.shape[:batch], *sizes, *array.shape[batch + 2 * rank :])


def pad_border(state: Array, sizes: Sequence[int], target: Sequence[int]) -> Array:
    """A border state `(*batch, slots, track, key, value)` of a grid as that of the enlarged one; new lines hold zero."""
    return _resize_border(state, sizes, target)


def crop_border(state: Array, sizes: Sequence[int], target: Sequence[int]) -> Array:
    """The inverse of `pad_border`."""
    return _resize_border(state, target, sizes)


def _resize_border(state: Array, old: Sequence[int], new: Sequence[int]) -> Array:
    if tuple(old) == tuple(new):
        return state
    resized: list[Array] = []
    batch, start = state.ndim - 4, 0
    for axis, count in enumerate(line_counts(old)):
        before, after = ([*sizes[:axis], *sizes[axis + 1 :]] for sizes in (old, new))
        lines = state[..., start : start + count, :, :, :]
        lines = lines.reshape(*lines.shape[:batch], *before, *lines.shape[-3:])
        window = tuple(slice(0, min(a, b)) for a, b in zip(before, after, strict=True))
        lines = lines[(..., *window, slice(None), slice(None), slice(None))]
        widths = [(0, 0)] * batch + [(0, max(0, b - a)) for a, b in zip(before, after, strict=True)] + [(0, 0)] * 3
        lines = jnp.pad(lines, widths)
        resized.append(lines.reshape(*lines.shape[:batch], prod(after), *lines.shape[-3:]))
        start += count
    return jnp.concatenate(resized, axis=-4)
