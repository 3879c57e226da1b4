"""Tables of positions: one learned vector for each node of a grid."""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

START = 0.02
"""Standard deviation at the start."""


def table(grid: tuple[int, int], dim: int, *, key: PRNGKeyArray) -> Float[Array, "rows cols dim"]:
    """A table as it starts: normal, cut off at two standard deviations."""
    return START * jax.random.truncated_normal(key, -2.0, 2.0, (*grid, dim), jnp.float32)


def resized(positions: Float[Array, "rows cols dim"], grid: tuple[int, int]) -> Float[Array, "new_rows new_cols dim"]:
    """A table for another grid, square or not, by bicubic interpolation (Keys, 1981) of each feature. Where an axis gets
    shorter the kernel is widened by as much: no node of the old grid is passed over. The same grid is the same table."""
    if positions.shape[:2] == grid:
        return positions
    resize = cast(Any, jax.image.resize)
    return resize(positions, (*grid, positions.shape[-1]), "bicubic")
