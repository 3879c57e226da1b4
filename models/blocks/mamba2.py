"""Mamba-2: the block of state space duality."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import Convolution, GatedNorm, by_head, for_all_heads, joined, slow_steps
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of


class Mamba2(eqx.Module):
    """The block of Dao, Gu: Transformers are SSMs, 2024, figure 6, with the scan of `std:chain/mamba2`:

        z, u, B, C, dt = W_in x      u, B, C = silu(conv(u, B, C))      y = W_out norm((SSD(u, B, C, dt) + D u) silu(z))

    All that steers the scan comes of `x` at once. B and C, as wide as the scan's keys, are the same for all heads; `D` is a
    number for each.
    """

    op: ChainScan
    into: Linear
    convolution: Convolution
    step_bias: Float[Array, " head"]
    rate: Float[Array, " head"]
    skip: Float[Array, " head"]
    norm: GatedNorm
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, key: PRNGKeyArray) -> None:
        """`width` is that of the convolution. Raises SpecError (STM5208) for a scan that has other leaves, and for what is no
        size."""
        self.op, self.dim = require_leaves(op, {"dt", "rate"}, "std:chain/mamba2"), require_size("dim", dim)
        heads, states, channels = op.scan.heads, op.scan.key, op.scan.heads * op.scan.value
        keys = jax.random.split(require_key(key), 5)
        self.into = Linear(dim, 2 * channels + 2 * states + heads, use_bias=False, key=keys[0])
        self.convolution = Convolution(channels + 2 * states, width=width, key=keys[1])
        self.step_bias = slow_steps(keys[2], heads)
        self.rate = jnp.log(jax.random.uniform(keys[3], (heads,), jnp.float32, 1.0, 16.0))
        self.skip = jnp.ones(heads, jnp.float32)
        self.norm = GatedNorm(channels, gate_first=True)
        self.out = Linear(channels, dim, use_bias=False, key=keys[4])

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self.run(x, NOTHING, whole)[0]

    def init_state(self) -> Cache:
        return Cache(self.convolution.tail(kept_dtype(self.op)), self.op.init_state())

    def prefill(self, state: Cache, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Cache]:
        return self.run(x, state, many)

    def step(self, state: Cache, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Cache]:
        return stepped(self.run, state, x)

    def run(self, x: Float[Array, "time dim"], before: Cache, scan: Scan) -> tuple[Array, Cache]:
        heads, states, channels = self.op.scan.heads, self.op.scan.key, self.convolution.weight.shape[0]
        inner = channels - 2 * states
        z, seen, dt = jnp.split(self.into(x), [inner, inner + channels], axis=-1)
        convolved, tail = self.convolution(seen, before.tail)
        u, b, c = jnp.split(jax.nn.silu(convolved), [inner, inner + states], axis=-1)
        u = by_head(u, heads)
        gates = {"dt": dt + behind(self.step_bias.astype(x.dtype), 2), "rate": self.rate}
        h, state = scan(self.op, before.scan, for_all_heads(c, heads), for_all_heads(b, heads), u, gates)
        y = h.astype(x.dtype) + behind(self.skip[:, None].astype(x.dtype), 3) * u
        return self.out(self.norm(joined(y), z)), Cache(tail, state)
