"""What image models share: patches, a perceptron, pooling."""

from __future__ import annotations

from typing import Literal, assert_never

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.nn.start import SMALL, normal

Pooling = Literal["corners", "mean"]


class Linear(eqx.Module):
    """`y = W x + b` on the last axis; computes in the dtype of `x`, keeps its parameters in float32."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    def __init__(self, features: int, out: int, *, gain: float = SMALL, key: PRNGKeyArray) -> None:
        """`gain / sqrt(features)` is the standard deviation of the weights; the bias starts at zero."""
        self.weight = normal(key, (out, features), gain=gain, dtype=jnp.dtype(jnp.float32))
        self.bias = jnp.zeros(out, jnp.float32)

    def __call__(self, x: Float[Array, "*nodes in"]) -> Float[Array, "*nodes out"]:
        return x @ self.weight.T.astype(x.dtype) + self.bias.astype(x.dtype)


class Perceptron(eqx.Module):
    """Two linear maps with a GELU between them."""

    up: Linear
    down: Linear

    def __init__(self, dim: int, hidden: int, *, key: PRNGKeyArray) -> None:
        up, down = jax.random.split(key)
        self.up = Linear(dim, hidden, key=up)
        self.down = Linear(hidden, dim, key=down)

    def __call__(self, x: Float[Array, "*nodes dim"]) -> Float[Array, "*nodes dim"]:
        return self.down(jax.nn.gelu(self.up(x)))


def patches(image: Float[Array, "height width channels"], size: int) -> Float[Array, "rows cols features"]:
    """An image cut into squares, each flattened: `features = size * size * channels`. ValueError if a side is no multiple."""
    height, width, channels = image.shape
    if height % size or width % size:
        raise ValueError(f"an image of {height}x{width} does not divide into patches of {size}x{size}")
    cut = image.reshape(height // size, size, width // size, size, channels)
    return cut.transpose(0, 2, 1, 3, 4).reshape(height // size, width // size, size * size * channels)


def pool(x: Float[Array, "rows cols dim"], how: Pooling) -> Float[Array, " features"]:
    """One vector of an image: the four corner tokens behind each other, as the paper does, or the mean of all."""
    match how:
        case "corners":
            return jnp.concatenate([x[0, 0], x[0, -1], x[-1, 0], x[-1, -1]])
        case "mean":
            return jnp.mean(x, axis=(0, 1))
        case _:
            assert_never(how)
