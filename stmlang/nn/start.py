"""How parameters start."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.nn.errors import require_countable
from stmlang.scan.scan import Initial

SMALL = 0.4**0.5
"""Standard deviation of a projection's weights, times the square root of its fan-in."""


def behind(array: Array, rank: int) -> Array:
    """An array with axes in front up to a rank, for JAX may be told to add none by itself."""
    return jnp.expand_dims(array, tuple(range(rank - array.ndim)))


def normal(key: PRNGKeyArray, shape: Sequence[int], *, gain: float, dtype: jnp.dtype) -> Float[Array, "..."]:
    """Weights with standard deviation `gain / sqrt(fan in)`, the fan-in being the last axis."""
    shape = require_countable(tuple(shape))
    if gain == 0.0 or 0 in shape:
        return jnp.zeros(shape, dtype)
    return jax.random.normal(key, shape, dtype) * jnp.asarray(gain / shape[-1] ** 0.5, dtype)


def spread(initial: Initial, shape: Sequence[int], *, dtype: jnp.dtype) -> Float[Array, "head ..."]:
    """An array with heads in front: evenly from `low` in the first head to `high` in the last; one head gets the middle."""
    heads, *rest = shape
    middle = 0.5 * (initial.low + initial.high)
    values = np.linspace(initial.low, initial.high, heads) if heads > 1 else np.full(heads, middle)
    return jnp.asarray(np.broadcast_to(values.reshape(heads, *(1 for _ in rest)), tuple(shape)), dtype)
