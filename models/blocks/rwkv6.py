"""RWKV-6, Finch: the time mixing, the channel mixing, and the block of both."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import HeadNorm, LowRank, by_head, joined, with_tail
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size, require_type
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of

MIXED = 5  # r, k, v, the gate and the decay have a mixture of this token and the one before each


class RWKV6(eqx.Module):
    """The time mixing of Peng et al.: Eagle and Finch, 2024, section 4, with the scan of `std:chain/rwkv6`. With `x'` the token
    before `x`, and for each of r, k, v, g and w

        m = x + (x' - x) mu      x_i = x + (x' - x) (lambda_i + tanh(m A_i) B_i)
        r, k, v, g = W_r x_r, W_k x_k, W_v x_v, W_g x_g      w = b + tanh(x_w C) D
        y = W_out (norm(WKV(r, k, v, exp(-exp(w)))) silu(g))

    The norm is that of each head. The channels of a token are mixed by `ChannelMixing`, or a perceptron.
    """

    op: ChainScan
    mix: Float[Array, " dim"]
    narrow: Linear
    wide: Float[Array, "mixed dim rank"]
    shift: Float[Array, "mixed dim"]
    receptance: Linear
    key: Linear
    value: Linear
    gate: Linear
    decay: LowRank
    bonus: Float[Array, "head key"]
    norm: HeadNorm
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, rank: int = 32, decay_rank: int = 64, key: PRNGKeyArray) -> None:
        """`rank` is that of the maps to the mixtures, `decay_rank` that of the one to the decays. Raises SpecError
        (STM5208) for a scan that has other leaves, and for what is no size."""
        self.op, self.dim = require_leaves(op, {"transition", "direct"}, "std:chain/rwkv6"), require_size("dim", dim)
        keys, values = op.scan.heads * op.scan.key, op.scan.heads * op.scan.value
        rank = require_size("rank", rank)
        each = jax.random.split(require_key(key), 9)
        self.mix, self.shift = jnp.full(dim, 0.5, jnp.float32), jnp.full((MIXED, dim), 0.5, jnp.float32)
        self.narrow = Linear(dim, MIXED * rank, use_bias=False, key=each[0])
        self.wide = 0.01 * jax.random.normal(each[1], (MIXED, dim, rank), jnp.float32)
        self.receptance = Linear(dim, keys, use_bias=False, key=each[2])
        self.key = Linear(dim, keys, use_bias=False, key=each[3])
        self.value = Linear(dim, values, use_bias=False, key=each[4])
        self.gate = Linear(dim, values, use_bias=False, key=each[5])
        paces = -6.0 + 5.0 * jnp.linspace(0.0, 1.0, keys, dtype=jnp.float32) ** 0.7
        self.decay = LowRank(dim, keys, require_size("decay_rank", decay_rank), tanh=True, start=paces, key=each[6])
        self.bonus = 0.5 * jax.random.normal(each[7], (op.scan.heads, op.scan.key), jnp.float32)
        self.norm = HeadNorm(op.scan.heads, values, eps=64e-5)
        self.out = Linear(values, dim, use_bias=False, key=each[8])

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self.run(x, NOTHING, whole)[0]

    def init_state(self) -> Cache:
        return Cache(jnp.zeros((1, self.dim), kept_dtype(self.op)), self.op.init_state())

    def prefill(self, state: Cache, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Cache]:
        return self.run(x, state, many)

    def step(self, state: Cache, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Cache]:
        return stepped(self.run, state, x)

    def mixtures(self, x: Float[Array, "time dim"], previous: Float[Array, "time dim"]) -> Float[Array, "mixed time dim"]:
        """What r, k, v, the gate and the decay are made of: each token and the one before it, to shares that both steer."""
        step = previous - x
        narrow = jnp.tanh(self.narrow(x + step * behind(self.mix.astype(x.dtype), 2)))
        by_kind = by_head(narrow, MIXED)
        shares = jnp.einsum("tmr,mdr->mtd", by_kind, self.wide.astype(x.dtype)) + self.shift[:, None].astype(x.dtype)
        return behind(x, 3) + behind(step, 3) * shares

    def run(self, x: Float[Array, "time dim"], before: Cache, scan: Scan) -> tuple[Array, Cache]:
        heads = self.op.scan.heads
        seen, tail = with_tail(x, jnp.zeros((1, self.dim), x.dtype) if before.tail is None else before.tail)
        of_r, of_k, of_v, of_gate, of_decay = self.mixtures(x, seen[:-1])
        r, k, v = (by_head(array, heads) for array in (self.receptance(of_r), self.key(of_k), self.value(of_v)))
        gates = {"transition": by_head(self.decay(of_decay), heads), "direct": self.bonus}
        h, state = scan(self.op, before.scan, r, k, v, gates)
        y = self.norm(joined(h).astype(x.dtype)) * jax.nn.silu(self.gate(of_gate))
        return self.out(y), Cache(tail, state)


class ChannelMixing(eqx.Module):
    """The channel mixing of Peng et al.: Eagle and Finch, 2024, section 4, which both have in common. With `x'` the token
    before `x`, and for each of r and k

        x_i = x + (x' - x) mu_i      y = sigmoid(W_r x_r) (W_v relu(W_k x_k)^2)

    A perceptron that sees the token before as well, with a gate on what it gives. It keeps that token between steps.
    """

    shift: Float[Array, "mixed dim"]
    receptance: Linear
    key: Linear
    value: Linear
    dtype: str = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, dim: int, *, hidden: int | None = None, dtype: Any = "float32", key: PRNGKeyArray) -> None:
        """`hidden` is how many features there are between the maps, 3.5 times `dim` if None, as the paper has it, rounded down.
        `dtype` is that of the token that is kept. Raises SpecError (STM5208) for what is no size."""
        dim = require_size("dim", dim)
        hidden = max(1, 7 * dim // 2) if hidden is None else require_size("hidden", hidden)
        self.dtype = require_type("dtype", dtype).name
        receptance, into, out = jax.random.split(require_key(key), 3)
        self.shift = jnp.full((2, dim), 0.5, jnp.float32)
        self.receptance = Linear(dim, dim, use_bias=False, key=receptance)
        self.key = Linear(dim, hidden, use_bias=False, key=into)
        self.value = Linear(hidden, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self.prefill(jnp.zeros((1, x.shape[-1]), x.dtype), x)[0]

    def init_state(self) -> Float[Array, "1 dim"]:
        """No token: zeros."""
        return jnp.zeros((1, self.shift.shape[-1]), self.dtype)

    def prefill(
        self, state: Float[Array, "1 dim"], x: Float[Array, "time dim"]
    ) -> tuple[Float[Array, "time dim"], Float[Array, "1 dim"]]:
        seen, tail = with_tail(x, state)
        of_r, of_k = behind(x, 3) + behind(seen[:-1] - x, 3) * self.shift[:, None].astype(x.dtype)
        return jax.nn.sigmoid(self.receptance(of_r)) * self.value(jax.nn.relu(self.key(of_k)) ** 2), tail

    def step(self, state: Float[Array, "1 dim"], x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Float[Array, "1 dim"]]:
        y, state = self.prefill(state, x[None])
        return y[0], state


class BlockState(NamedTuple):
    """What both halves of a block keep."""

    time: Cache
    channels: Float[Array, "1 dim"]


class RWKV6Block(eqx.Module):
    """The whole block of the paper, with its norms, to mean zero and variance one, and its residual connections:

    z = x + time(norm(x))      y = z + channels(norm(z))
    """

    before_time: HeadNorm
    time: RWKV6
    before_channels: HeadNorm
    channels: ChannelMixing

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        op: ChainScan,
        dim: int,
        *,
        rank: int = 32,
        decay_rank: int = 64,
        hidden: int | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """As `RWKV6` and `ChannelMixing` have it."""
        time, channels = jax.random.split(require_key(key))
        self.time = RWKV6(op, dim, rank=rank, decay_rank=decay_rank, key=time)
        self.channels = ChannelMixing(dim, hidden=hidden, dtype=kept_dtype(op), key=channels)
        self.before_time, self.before_channels = HeadNorm(1, dim), HeadNorm(1, dim)

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        z = x + self.time(self.before_time(x))
        return z + self.channels(self.before_channels(z))

    def init_state(self) -> BlockState:
        return BlockState(self.time.init_state(), self.channels.init_state())

    def prefill(self, state: BlockState, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], BlockState]:
        mixed, time = self.time.prefill(state.time, self.before_time(x))
        z = x + mixed
        mixed, channels = self.channels.prefill(state.channels, self.before_channels(z))
        return z + mixed, BlockState(time, channels)

    def step(self, state: BlockState, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], BlockState]:
        mixed, time = self.time.step(state.time, self.before_time(x[None])[0])
        z = x + mixed
        mixed, channels = self.channels.step(state.channels, self.before_channels(z[None])[0])
        return z + mixed, BlockState(time, channels)
