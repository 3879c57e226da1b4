"""Root mean square normalization with a learned scale."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class RMSNorm(eqx.Module):
    """`y = x / sqrt(mean(x^2) + eps) * scale`, the mean over the last axis only, in float32 or better.

    `scale` has the shape given, which must be that of the last axes of `x`: `(dim,)` for a stream of features, `(head, value)`
    to normalize each head by itself. The result has the dtype of `x`.
    """

    scale: Float[Array, "..."]
    eps: float = eqx.field(static=True)

    def __init__(self, shape: Sequence[int], *, eps: float = 1e-5, dtype: jnp.dtype | None = None) -> None:
        self.scale = jnp.ones(tuple(shape), dtype)
        self.eps = eps

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        power = jnp.mean(wide * wide, axis=-1, keepdims=True)
        return (wide * jax.lax.rsqrt(power + self.eps) * self.scale).astype(x.dtype)
