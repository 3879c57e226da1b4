"""What blocks are made of around their scans: a short convolution, norms and gates of the output, narrow linear maps."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.parts import Linear
from stmlang.nn import RMSNorm
from stmlang.nn.start import SMALL, behind, normal
from stmlang.runtime.modules import equal, hash_of


class Convolution(eqx.Module):
    """The short causal convolution of each channel by itself:

        y[t, c] = bias[c] + sum over j < width of weight[c, j] x[t - width + 1 + j, c]

    What lies before the first step is zero, or the `tail` that the steps before have left: their last `width - 1` inputs.
    A sum of shifted arrays, since XLA's CPU kernels for convolutions take many times as long with one channel a group.
    """

    weight: Float[Array, "channels width"]
    bias: Float[Array, " channels"] | None

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, channels: int, *, width: int = 4, use_bias: bool = True, key: PRNGKeyArray) -> None:
        """Weights start evenly spread within `width^(-1/2)`, the bias at zero."""
        bound = width**-0.5
        self.weight = jax.random.uniform(key, (channels, width), jnp.float32, -bound, bound)
        self.bias = jnp.zeros(channels, jnp.float32) if use_bias else None

    def tail(self, dtype: jnp.dtype) -> Float[Array, "last channels"]:
        """What there is before the first step: zeros."""
        channels, width = self.weight.shape
        return jnp.zeros((width - 1, channels), dtype)

    def __call__(
        self, x: Float[Array, "time channels"], tail: Float[Array, "last channels"] | None
    ) -> tuple[Float[Array, "time channels"], Float[Array, "last channels"]]:
        """`y`, and the tail for the next steps."""
        width, time = self.weight.shape[1], x.shape[0]
        seen, tail = with_tail(x, self.tail(x.dtype) if tail is None else tail)
        weight = self.weight.astype(x.dtype)
        terms = [behind(weight[:, j], 2) * seen[j : j + time] for j in range(width)]
        y = sum(terms[1:], terms[0])
        return (y if self.bias is None else y + behind(self.bias.astype(x.dtype), 2)), tail


def with_tail(x: Float[Array, "time channels"], tail: Float[Array, "last channels"]) -> tuple[Array, Array]:
    """The tail and `x` behind it, and the next tail: the last of both, in the data type of tails."""
    seen = jnp.concatenate([tail.astype(x.dtype), x])
    return seen, seen[x.shape[0] :].astype(tail.dtype)


class GatedNorm(eqx.Module):
    """`norm(y) silu(g)`, or `norm(y silu(g))` where the gate comes first, with a root mean square over the last axis."""

    norm: RMSNorm
    gate_first: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, width: int, *, gate_first: bool = False) -> None:
        self.norm = RMSNorm((width,), dtype=jnp.float32)
        self.gate_first = gate_first

    def __call__(self, y: Float[Array, "*nodes width"], gate: Float[Array, "*nodes width"]) -> Float[Array, "*nodes width"]:
        if self.gate_first:
            return self.norm(y * jax.nn.silu(gate))
        return self.norm(y) * jax.nn.silu(gate)


class HeadNorm(eqx.Module):
    """Every head by itself to mean zero and variance one, then a scale and a shift for each channel."""

    norm: eqx.nn.GroupNorm

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, heads: int, channels: int, *, eps: float = 1e-5) -> None:
        self.norm = eqx.nn.GroupNorm(heads, channels, eps, dtype=jnp.float32)

    def __call__(self, y: Float[Array, "time channels"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time channels"]:
        del key
        return jax.vmap(self.norm)(y)


class LowRank(eqx.Module):
    """`y = B f(A x) + b`, through few features in between; `f` is the identity, or tanh."""

    down: Linear
    up: Linear
    tanh: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self,
        dim: int,
        out: int,
        rank: int,
        *,
        tanh: bool = False,
        start: Float[Array, " out"] | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """`start` is what the bias starts at, zero if None."""
        down, up = jax.random.split(key)
        self.down = Linear(dim, rank, use_bias=False, key=down)
        self.up = Linear(rank, out, start=start, key=up)
        self.tanh = tanh

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes out"]:
        del key
        narrow = self.down(x)
        return self.up(jnp.tanh(narrow) if self.tanh else narrow)


class BlockDiagonal(eqx.Module):
    """`y = W x` with a small square block of `W` for each group of neighbouring channels."""

    weight: Float[Array, "blocks out in"]

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, channels: int, *, width: int = 4, key: PRNGKeyArray) -> None:
        """Blocks of `width`, or of the largest that divides both it and the channels."""
        width = math.gcd(width, channels)
        self.weight = normal(key, (channels // width, width, width), gain=SMALL, dtype=jnp.dtype(jnp.float32))

    def __call__(
        self, x: Float[Array, "*nodes channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*nodes channels"]:
        del key
        blocks, _, width = self.weight.shape
        y = jnp.einsum("...bi,boi->...bo", x.reshape(*x.shape[:-1], blocks, width), self.weight.astype(x.dtype))
        return y.reshape(x.shape)


def by_head(x: Float[Array, "*nodes channels"], heads: int) -> Float[Array, "*nodes head width"]:
    """Channels divided among heads."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)


def joined(h: Float[Array, "*nodes head width"]) -> Float[Array, "*nodes channels"]:
    """The channels of all heads behind each other."""
    return h.reshape(*h.shape[:-2], h.shape[-2] * h.shape[-1])


def for_all_heads(x: Float[Array, "*nodes width"], heads: int) -> Float[Array, "*nodes head width"]:
    """The same for each head."""
    return jnp.broadcast_to(x[..., None, :], (*x.shape[:-1], heads, x.shape[-1]))


def unit(x: Float[Array, "... width"]) -> Float[Array, "... width"]:
    """Of length one along the last axis, as `l2norm` of the language has it."""
    return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-12)


def slow_steps(key: PRNGKeyArray, count: int) -> Float[Array, " count"]:
    """What a softplus makes steps between 0.001 and 0.1 of, evenly spread in their logarithm: where the bias of Mamba's steps
    starts."""
    step = jnp.exp(jax.random.uniform(key, (count,), jnp.float32, math.log(1e-3), math.log(0.1)))
    return step + jnp.log(-jnp.expm1(-step))
