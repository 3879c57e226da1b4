"""The recurrence `m[t] = max(through[t] + m[t-1], added[t])` along the last axis, of logarithms that may be minus infinity.

Both it and its derivative are taken by doubling: after the turn of distance `d` there stands at t what the last `2d` places up
to t make. The distances are what a loop runs over, so that the program is the same at any length, where `associative_scan`
would write out its levels. Sums of logarithms that are subtracted again, as with a running sum and `cummax`, would lose those
of a zero (minus infinity) and the digits of all after a small one.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from stmlang.lower.adjoint import with_adjoint

Rows = Float[Array, "*batch place"]
Pair = tuple[Rows, Rows]


def _doubled(pair: Pair, times: Callable[[Array, Array], Array], plus: Callable[[Array, Array], Array], units: Pair) -> Pair:
    """The composition of the maps `m -> passed[s] times m plus added[s]` of all places s up to each, `units` that of none."""
    length = pair[0].shape[-1]
    outside = [(0, 0, 0)] * (pair[0].ndim - 1)

    def double(pair: Pair, distance: Array) -> tuple[Pair, None]:
        padded = (jax.lax.pad(row, unit, [*outside, (length, 0, 0)]) for row, unit in zip(pair, units, strict=True))
        passed_before, added_before = (jax.lax.dynamic_slice_in_dim(row, length - distance, length, -1) for row in padded)
        passed, added = pair
        return (times(passed, passed_before), plus(times(passed, added_before), added)), None

    distances = 2 ** np.arange(max(0, length - 1).bit_length())
    return jax.lax.scan(double, pair, jnp.asarray(distances))[0]


def _largest(through: Rows, added: Rows) -> Pair:
    zero, nothing = (jnp.asarray(number, added.dtype) for number in (0, -jnp.inf))
    return _doubled((through, added), jnp.add, jnp.maximum, (zero, nothing))


def _chained(passed: Rows, added: Rows) -> Rows:
    """`x[t] = passed[t] x[t-1] + added[t]` from zero."""
    zero, one = (jnp.asarray(number, added.dtype) for number in (0, 1))
    return _doubled((passed, added), jnp.multiply, jnp.add, (one, zero))[1]


def _comes_before(through: Rows, added: Rows, largest: Rows) -> Bool[Array, "*batch place"]:
    """Where what a place is handed is at least as large as what it adds; nowhere at the first."""
    handed = through[..., 1:] + largest[..., :-1] >= added[..., 1:]
    return jnp.pad(handed, [(0, 0)] * (added.ndim - 1) + [(1, 0)])


def _saving(through: Rows, added: Rows) -> tuple[Pair, Array]:
    passed, largest = _largest(through, added)
    return (passed, largest), _comes_before(through, added, largest)


def _pull(args: Pair, before: Array, cotangent: Pair) -> Pair:
    """What is asked of a maximum is handed back, place by place, to the one that adds it."""
    del args
    through, asked = (jnp.flip(row, -1) for row in cotangent)
    handed = jnp.flip(before, -1).astype(asked.dtype)
    behind = jnp.concatenate([jnp.zeros_like(handed[..., :1]), handed[..., :-1]], -1)
    arrived = _chained(behind, asked)
    back = handed * arrived
    return jnp.flip(back + jnp.cumsum(through, -1), -1), jnp.flip(arrived - back, -1)


def _along(args: Pair, tangents: tuple[Array | None, Array | None]) -> Pair:
    (through, added), (turned, grown) = args, (jnp.zeros_like(args[0]) if row is None else row for row in tangents)
    handed = _comes_before(through, added, _largest(through, added)[1])
    return jnp.cumsum(turned, -1), _chained(handed.astype(added.dtype), jnp.where(handed, turned, grown))


_with_adjoint = with_adjoint(_largest, _saving, _pull, _along)


def running_maximum(through: Rows, added: Rows) -> Pair:
    """What passes from the start to each place, `p[t] = through[0] + ... + through[t]`, and the largest that was added on the
    way, `m[t]` from minus infinity: from any other start the maximum is `max(p[t] + start, m[t])`.

    Its derivative is that of the term which is the largest, the earlier one among equals. Where a term is minus infinity
    what it gets means nothing.
    """
    through, added = jnp.broadcast_arrays(through, added)
    return _with_adjoint(through, added)
