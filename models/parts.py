"""What models of all kinds are made of: a linear map and a perceptron."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.nn.leaves import applied
from stmlang.nn.start import SMALL, behind, normal
from stmlang.runtime.modules import equal, hash_of


class Linear(eqx.Module):
    """`y = W x + b` on the last axis; computes in the dtype of `x`, keeps its parameters in float32."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"] | None

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self,
        features: int,
        out: int,
        *,
        gain: float = SMALL,
        use_bias: bool = True,
        start: Float[Array, " out"] | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """`gain / sqrt(features)` is the standard deviation of the weights; the bias, if there is one, starts at `start`, zero
        if None."""
        self.weight = normal(key, (out, features), gain=gain, dtype=jnp.dtype(jnp.float32))
        self.bias = None
        if use_bias:
            self.bias = jnp.zeros(out, jnp.float32) if start is None else start.astype(jnp.float32)

    def __call__(self, x: Float[Array, "*nodes in"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes out"]:
        del key
        y = applied(self.weight, x, 1, x.dtype)
        return y if self.bias is None else y + behind(self.bias.astype(x.dtype), x.ndim)


class Perceptron(eqx.Module):
    """Two linear maps with a GELU between them."""

    up: Linear
    down: Linear

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, dim: int, hidden: int, *, key: PRNGKeyArray) -> None:
        up, down = jax.random.split(key)
        self.up = Linear(dim, hidden, key=up)
        self.down = Linear(hidden, dim, key=down)

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes dim"]:
        del key
        return self.down(jax.nn.gelu(self.up(x)))
