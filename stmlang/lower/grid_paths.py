"""All paths between the nodes of a grid whose nodes have one state each: `(I - B)^-1` with a number `B` for each edge.

An edge along an axis leads from a node to the next one, so that a grid is a chain of planes: of two neighbouring runs of planes
a and b, what reaches b from a does so by the edges between the last plane of a and the first one of b,

    Z  =  [ Z_a   Z_a[., last] diag(step) Z_b[first, .] ]
          [  0                     Z_b                   ]

a product over as many numbers as a plane has nodes. Runs are halved down to planes, whose paths are those of a grid with an
axis less. The program grows with the logarithm of the sizes; nothing is divided, so zeros are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import matmul, times_transposed, transposed_times
from stmlang.lower.no_fusion import apart
from stmlang.lower.segment_products import paths

SHORT = 16
"""Lines up to this length are made at once, of products over their stretches."""

Steps = Sequence[Float[Array, "*batch_and_axes"]]
"""For each axis the numbers of the edges along it, each at the node that it enters; those that enter from outside unread."""


def grid_paths(steps: Steps) -> Float[Array, "*batch source target"]:
    """The sums over all paths between two nodes of the products of their edges' numbers, nodes in C order; one for a node and
    itself, zero where no path leads. As many arrays of steps as the grid has axes."""
    return _grid_paths(*steps)


def _plain(*steps: Array) -> Array:
    return _paths(steps)


def _forward(*steps: Array) -> tuple[Array, Array]:
    whole = _plain(*steps)
    return whole, whole


def _backward(steps: tuple[Any, ...], whole: Array, cotangent: Array) -> tuple[Any, ...]:
    return tuple(_back(steps, whole, cotangent))


_grid_paths = with_adjoint(_plain, _forward, _backward)


def _paths(steps: Steps) -> Array:
    """Those of grids `(*batch, *axes)`."""
    if len(steps) == 1 and steps[0].shape[-1] <= SHORT:
        return _line(steps[0])
    planes = _paths(steps[1:]) if len(steps) > 1 else jnp.ones((*steps[0].shape, 1, 1), steps[0].dtype)
    across = steps[0].reshape(*planes.shape[:-1])
    return _run(planes, across)


def _line(step: Float[Array, "*batch place"]) -> Array:
    between = jnp.swapaxes(paths(step).inside, -1, -2)
    own = jnp.eye(step.shape[-1], dtype=step.dtype)
    return between * step[..., None, :] + jnp.expand_dims(own, range(step.ndim - 1))


def _run(planes: Float[Array, "*batch plane node node"], across: Float[Array, "*batch plane node"]) -> Array:
    """The paths of a run of planes, `across` being the steps into each plane from the one before it."""
    count, width = planes.shape[-3:-1]
    if count == 1:
        return jnp.squeeze(planes, -3)
    halves = _run(_halved(planes, -3), _halved(across, -2))
    first, second = (jnp.squeeze(half, -3) for half in jnp.split(halves, 2, axis=-3))
    through = first[..., -width:] * across[..., None, (count + 1) // 2, :]
    top = jnp.concatenate([first, matmul(through, second[..., :width, :])], axis=-1)
    whole = jnp.concatenate([top, jnp.concatenate([jnp.zeros_like(first), second], axis=-1)], axis=-2)
    return whole[..., : count * width, : count * width]


def _halved(array: Array, axis: int) -> Array:
    """An axis as one of two halves and one of their entries, filled up with zeros."""
    axis, count = axis + array.ndim, array.shape[axis]
    half = (count + 1) // 2
    padding = [(0, 2 * half - count if k == axis else 0) for k in range(array.ndim)]
    return jnp.pad(array, padding).reshape(*array.shape[:axis], 2, half, *array.shape[axis + 1 :])


def read_before(rows: Float[Array, "*batch row node"], marks: Steps) -> Float[Array, "*batch row node"]:
    """At each node the sum over the axes of what the rows hold at the node before it, times the mark there. Marks are zero
    where there is none before; what is multiplied there stands elsewhere in the same row."""
    return _read_before(rows, *marks)


def _strides(marks: Steps, lead: int) -> list[int]:
    """How far before a node that is which stands before it along each axis."""
    axes = marks[0].shape[lead:]
    return [prod(axes[port + 1 :]) for port in range(len(axes))]


@apart
def _read(rows: Array, *marks: Array) -> Array:
    strides, nodes = _strides(marks, rows.ndim - 2), rows.shape[-1]
    padded = jnp.concatenate([rows[..., nodes - strides[0] :], rows], axis=-1)
    parts = [
        padded[..., strides[0] - stride :][..., :nodes] * mark.reshape(*rows.shape[:-2], 1, nodes)
        for stride, mark in zip(strides, marks, strict=True)
    ]
    return sum(parts[1:], start=parts[0])


@apart
def _sent(cotangent: Array, *marks: Array) -> Array:
    """What nodes get back of those that read them."""
    strides, nodes = _strides(marks, cotangent.ndim - 2), cotangent.shape[-1]

    def behind(array: Array, stride: int) -> Array:
        padded = jnp.concatenate([array, array[..., : strides[0]]], axis=-1)
        return padded[..., stride : stride + nodes]

    parts = [
        behind(cotangent, stride) * behind(mark.reshape(*cotangent.shape[:-2], 1, nodes), stride)
        for stride, mark in zip(strides, marks, strict=True)
    ]
    return sum(parts[1:], start=parts[0])


def _read_forward(rows: Array, *marks: Array) -> tuple[Array, tuple[()]]:
    return _read(rows, *marks), ()


def _read_backward(arguments: tuple[Any, ...], saved: tuple[()], cotangent: Array) -> tuple[Any, ...]:
    del saved
    rows, *marks = arguments
    met = [
        jnp.sum(rows[..., : rows.shape[-1] - stride] * cotangent[..., stride:], axis=-2)
        for stride in _strides(marks, rows.ndim - 2)
    ]
    padded = [jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(rows.shape[-1] - array.shape[-1], 0)]) for array in met]
    return _sent(cotangent, *marks), *(array.reshape(mark.shape) for array, mark in zip(padded, marks, strict=True))


_read_before = with_adjoint(_read, _read_forward, _read_backward)


# --- the adjoint -----------------------------------------------------------------------------------------------------
#
# Paths inside of a run are those inside of it in the whole, so that these are all that is kept.


def _back(steps: Steps, whole: Array, cotangent: Array) -> list[Array]:
    """The cotangents of steps of grids `(*batch, *axes)`."""
    if len(steps) == 1 and steps[0].shape[-1] <= SHORT:
        return [_line_back(whole, cotangent)]
    across = steps[0].reshape(*steps[0].shape[: whole.ndim - 1], -1)
    parts = _run_back(across, whole, cotangent)
    rest = _back(steps[1:], parts.planes, parts.cotangent) if len(steps) > 1 else []
    return [parts.across.reshape(steps[0].shape), *rest]


def _line_back(whole: Array, cotangent: Array) -> Array:
    """Every product through the edge into a place: `sum over s < j <= t of Z[s, j - 1] dZ[s, t] Z[j, t]`."""
    ahead = times_transposed(cotangent, whole)[..., 1:]
    met = jnp.sum(whole[..., :-1] * ahead, axis=-2)
    return jnp.pad(met, [(0, 0)] * (met.ndim - 1) + [(1, 0)])


class _Parts(NamedTuple):
    """The planes of a run, `(*batch, plane, node, node)`, their cotangent, and that of the steps between them."""

    planes: Array
    cotangent: Array
    across: Float[Array, "*batch plane node"]


def _run_back(across: Array, whole: Array, cotangent: Array) -> _Parts:
    count, width = across.shape[-2:]
    if count == 1:
        return _Parts(jnp.expand_dims(whole, -3), jnp.expand_dims(cotangent, -3), jnp.zeros_like(across))
    half = (count + 1) // 2
    size = half * width
    filled = [(0, 0)] * (whole.ndim - 2) + [(0, 2 * size - count * width)] * 2
    whole, cotangent = jnp.pad(whole, filled), jnp.pad(cotangent, filled)
    first, second = whole[..., :size, :size], whole[..., size:, size:]
    inside, crossed, later = cotangent[..., :size, :size], cotangent[..., :size, size:], cotangent[..., size:, size:]
    step, last = across[..., None, half, :], first[..., -width:]
    reached = times_transposed(crossed, second[..., :width, :])
    ends, starts = reached * step, transposed_times(last * step, crossed)
    inside = jnp.concatenate([inside[..., :-width], inside[..., -width:] + ends], axis=-1)
    later = jnp.concatenate([later[..., :width, :] + starts, later[..., width:, :]], axis=-2)
    halves = _run_back(_halved(across, -2), jnp.stack([first, second], -3), jnp.stack([inside, later], -3))
    planes, cotangents = (array.reshape(*whole.shape[:-2], 2 * half, width, width)[..., :count, :, :] for array in halves[:2])
    between = halves.across.reshape(*whole.shape[:-2], 2 * half, width)[..., :count, :]
    met = jnp.sum(last * reached, axis=-2)[..., None, :]
    return _Parts(planes, cotangents, jnp.concatenate([between[..., :half, :], met, between[..., half + 1 :, :]], axis=-2))
