"""The impulse response of a regular scan whose gates are the same at all nodes.

What node n reads of node m then depends on `n - m` alone: `G[m, n] = g(n - m)`, and `g` is what a single unit written at the
origin gives at every place of the grid. Its states `c`, arriving along each port, obey

    c[o](n + e_o)  =  sum over i of T[o, i] c[i](n)  +  S[o] (n = 0)          g(n)  =  sum over i of M[i] c[i](n)

where `e_o` is one step along the axis of port o. Missing neighbours at the grid's far ends take nothing away from what comes
before them, so one response serves sources everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


class Gates(NamedTuple):
    """Gates that hold at every node; axes in front are batches."""

    source: Float[Array, "lane out"]
    transition: Float[Array, "lane out in"]
    mark: Float[Array, "lane in"]


def impulse_response(gates: Gates, sizes: Sequence[int]) -> Float[Array, "lane *sizes"]:
    """`g` at the offsets `0, ..., size - 1` along every axis; zero at the origin, which is the direct gate's.

    A chain's is a power in closed form. On grids wavefronts are swept, as many as the sum of the sizes: the work and the
    numbers held are those of the grid (of a square one; twice that are swept). All sizes at least one.
    """
    axes = sorted((axis for axis, size in enumerate(sizes) if size > 1), key=lambda axis: -sizes[axis])
    lanes = gates.source.shape[0]
    if not axes:
        return jnp.zeros((lanes, *sizes), gates.source.dtype)
    # What leaves along an axis of size one has left the grid; and the longest axis is the one not held.
    kept, lengths = jnp.asarray(axes), [sizes[axis] for axis in axes]
    inner = Gates(
        gates.source[:, kept],
        gates.transition[:, kept[:, None], kept],
        gates.mark[:, kept],
    )
    response = _chain(inner, lengths[0]) if len(axes) == 1 else _grid(inner, lengths)
    order = sorted(range(len(axes)), key=lambda place: axes[place])
    return jnp.transpose(response, (0, *(1 + place for place in order))).reshape(lanes, *sizes)


# --- chains ----------------------------------------------------------------------------------------------------------


def _chain(gates: Gates, size: int) -> Array:
    """`g(n) = M T^(n-1) S`."""
    transition_powers = powers(gates.transition[:, 0, 0], size - 1)
    return jnp.pad(gates.mark * gates.source * transition_powers, [(0, 0), (1, 0)])


def powers(base: Array, count: int) -> Array:
    """`base^0, ..., base^(count - 1)` along a new last axis: exact for 0, 1 and -1, and for others to the last digits, which
    repeated squaring loses. Derivatives are made of powers too, and so right at zero to any order."""
    return cast(Array, _powers(base, count))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _powers(base: Array, count: int) -> Array:
    shape = (*base.shape, count)
    return lax.pow(jnp.broadcast_to(base[..., None], shape), lax.broadcasted_iota(jnp.int32, shape, base.ndim))


def _powers_jvp(count: int, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (base,), (change,) = primals, tangents
    raised = powers(base, count)
    before = jnp.concatenate([jnp.zeros_like(raised[..., :1]), raised[..., :-1]], axis=-1)
    return raised, before * lax.broadcasted_iota(base.dtype, raised.shape, base.ndim) * change[..., None]


_powers.defjvp(_powers_jvp)


# --- grids -----------------------------------------------------------------------------------------------------------


def _grid(gates: Gates, sizes: Sequence[int]) -> Array:
    """Wavefront by wavefront: a node is known by its wavefront and its place along all axes but the first."""
    rank, inner = len(sizes), tuple(sizes[1:])
    last = sum(sizes) - rank
    place = jnp.zeros(inner, jnp.int32)
    for axis in range(rank - 1):
        place = place + lax.broadcasted_iota(jnp.int32, inner, axis)
    spread = (slice(None), *(None,) * (rank - 1))

    def arriving(leaving: list[Array], level: Any) -> tuple[Array, ...]:
        """What leaves one wavefront, where it arrives on the next; what leaves the grid by the first axis is dropped."""
        moved = [leaving[0], *(_step(state, 1 + axis) for axis, state in enumerate(leaving[1:]))]
        inside = level - place < sizes[0]
        return tuple(jnp.where(inside, state, 0) for state in moved)

    def weighted(weights: Array, states: Sequence[Array]) -> Array:
        terms = [weights[:, port][spread] * state for port, state in enumerate(states)]
        return sum(terms[1:], start=terms[0])

    def step(states: tuple[Array, ...], level: Array) -> tuple[tuple[Array, ...], Array]:
        leaving = [weighted(gates.transition[:, port], states) for port in range(rank)]
        return arriving(leaving, level + 1), weighted(gates.mark, states)

    origin = (place == 0).astype(gates.source.dtype)
    first = arriving([gates.source[:, port][spread] * origin[None] for port in range(rank)], 1)
    _, waves = lax.scan(step, first, 1 + lax.iota(jnp.int32, last))
    return _upright(jnp.moveaxis(jnp.pad(waves, [(1, 0)] + [(0, 0)] * rank), 0, 1), sizes)


def _step(array: Array, axis: int) -> Array:
    """One place on along an axis."""
    widths = [(0, 0, 0)] * array.ndim
    widths[axis] = (1, -1, 0)
    return lax.pad(array, jnp.zeros((), array.dtype), widths)


def _upright(waves: Array, sizes: Sequence[int]) -> Array:
    """`(lane, wavefront, *inner)` to `(lane, *sizes)`: along the first axis a node is its wavefront less its other places."""
    for axis in reversed(range(1, len(sizes))):
        waves = jnp.moveaxis(_unskewed(jnp.moveaxis(waves, 1, -1), axis), -1, 1)
    return waves


def _unskewed(array: Array, axis: int) -> Array:
    """Row y along an axis moved y places to the front of the last axis, what no row fills up cut off."""
    array = jnp.moveaxis(array, axis, -2)
    *lead, rows, length = array.shape
    flat = jnp.pad(array.reshape(*lead, rows * length), [(0, 0)] * len(lead) + [(0, rows)])
    moved = flat.reshape(*lead, rows, length + 1)[..., : length - rows + 1]
    return jnp.moveaxis(moved, -2, axis)
