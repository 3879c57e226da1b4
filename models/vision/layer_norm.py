"""Equinox's layer norm on the last axis of any array."""

from __future__ import annotations

from math import prod

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.runtime.modules import equal, hash_of


class LayerNorm(eqx.Module):
    """`y = (x - mean) / sqrt(variance + eps) * weight + bias` over the last axis, in float32 or better (Ba et al., 2016)."""

    norm: eqx.nn.LayerNorm

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, *, eps: float = 1e-6) -> None:
        self.norm = eqx.nn.LayerNorm(dim, eps=eps)

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes dim"]:
        del key
        flat = x.reshape(prod(x.shape[:-1]), x.shape[-1])
        return jax.vmap(self.norm)(flat).reshape(x.shape)
