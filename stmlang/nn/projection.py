"""Linear maps from the features of a node to the inputs of a scan."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.graph.shapes import Shape
from stmlang.nn.start import SMALL, behind, normal
from stmlang.runtime.modules import equal, hash_of


class Projection(eqx.Module):
    """`y = W x + b` onto `(head, width)`; `weight`: `(head, width, dim)`, `bias`: `(head, width)` or None. Where each direction
    has its own, or a node takes several steps, writes or reads several times, onto `(head, direction, step, term, width)`."""

    weight: Float[Array, "head *axes width dim"]
    bias: Float[Array, "head *axes width"] | None

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, shape: Shape, dim: int, *, use_bias: bool, dtype: jnp.dtype, key: PRNGKeyArray) -> None:
        self.weight = normal(key, (*shape, dim), gain=SMALL, dtype=dtype)
        self.bias = jnp.zeros(shape, dtype) if use_bias else None

    def of(self, product: Float[Array, "*nodes head *axes width"], dtype: str) -> Float[Array, "*nodes head *axes width"]:
        """`y` in a data type, from `W x`."""
        y = product.astype(dtype)
        return y if self.bias is None else y + behind(self.bias.astype(dtype), y.ndim)
