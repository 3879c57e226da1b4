"""RWKV-6, Finch: the time mixing."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import HeadNorm, LowRank, by_head, joined, with_tail
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
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

    The norm is that of each head. Mixing the channels of a token is the perceptron's task.
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
