"""Gated linear attention."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import GatedNorm, LowRank, by_head, joined
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class GLA(eqx.Module):
    """The block of Yang et al.: Gated Linear Attention Transformers, 2024, section 4.4, with the scan of `std:chain/gla`:

        q, k, v = W_q x, W_k x, W_v x      alpha = W_2 W_1 x + b
        y       = W_out norm(GLA(q / sqrt(key), k, v, alpha)) silu(W_g x)

    W_1 maps to few features. The paper takes keys half as wide as values, and no convolution.
    """

    op: ChainScan
    into: Linear
    alpha: LowRank
    gate: Linear
    norm: GatedNorm
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, rank: int = 16, key: PRNGKeyArray) -> None:
        """`rank` is that of the map to the decays. Raises SpecError (STM5208) for a scan that has other leaves, and for what is
        no size."""
        self.op, self.dim = require_leaves(op, {"transition"}, "std:chain/gla"), require_size("dim", dim)
        keys, values = op.scan.heads * op.scan.key, op.scan.heads * op.scan.value
        into, alpha, gate, out = jax.random.split(require_key(key), 4)
        self.into = Linear(dim, 2 * keys + values, use_bias=False, key=into)
        self.alpha = LowRank(dim, keys, require_size("rank", rank), key=alpha)
        self.gate = Linear(dim, values, key=gate)
        self.norm = GatedNorm(op.scan.value)
        self.out = Linear(values, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self.run(x, NOTHING, whole)[0]

    def init_state(self) -> Cache:
        return Cache(None, self.op.init_state())

    def prefill(self, state: Cache, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Cache]:
        return self.run(x, state, many)

    def step(self, state: Cache, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Cache]:
        return stepped(self.run, state, x)

    def run(self, x: Float[Array, "time dim"], before: Cache, scan: Scan) -> tuple[Array, Cache]:
        heads, keys = self.op.scan.heads, self.op.scan.heads * self.op.scan.key
        q, k, v = (by_head(array, heads) for array in jnp.split(self.into(x), [keys, 2 * keys], axis=-1))
        gates = {"transition": by_head(self.alpha(x), heads)}
        h, state = scan(self.op, before.scan, q * self.op.scan.key**-0.5, k, v, gates)
        y = self.norm(h.astype(x.dtype), by_head(self.gate(x), heads))
        return self.out(joined(y)), Cache(None, state)
