"""DeltaNet and Gated DeltaNet: blocks of the delta rule."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import Convolution, GatedNorm, by_head, joined, slow_steps, unit
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn import RMSNorm
from stmlang.nn.errors import require_key, require_scan, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class DeltaNet(eqx.Module):
    """The blocks of Yang et al.: Parallelizing Linear Transformers with the Delta Rule, 2024, and of Yang, Kautz, Hatamizadeh:
    Gated Delta Networks, 2025, figure 1, with the scans of `std:chain/deltanet` and `std:chain/gated_deltanet`:

        q, k, v = silu(conv(W_q x, W_k x, W_v x))      beta = W_beta x      alpha = W_alpha x + b
        y       = W_out norm(delta(q / (|q| sqrt(key)), k / |k|, v, beta, alpha)) silu(W_g x)

    Where the scan fades there is an `alpha` and a gate of the output, as in the second paper, and else neither.
    """

    op: ChainScan
    into: Linear
    convolution: Convolution
    beta: Linear
    alpha: Linear | None
    rate: Float[Array, " head"] | None
    gate: Linear | None
    norm: RMSNorm | GatedNorm
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, key: PRNGKeyArray) -> None:
        """`width` is that of the convolution. Raises SpecError (STM5208) for a scan that has other leaves, and for what is no
        size."""
        fades = any(leaf.name == "alpha" for leaf in require_scan("op", op).scan.leaves)
        leaves = {"beta", "alpha", "alpha.2"} if fades else {"beta"}
        self.op, self.dim = require_leaves(op, leaves, "std:chain/deltanet"), require_size("dim", dim)
        heads, keys, values = op.scan.heads, op.scan.heads * op.scan.key, op.scan.heads * op.scan.value
        each = jax.random.split(require_key(key), 8)
        self.into = Linear(dim, 2 * keys + values, use_bias=False, key=each[0])
        self.convolution = Convolution(2 * keys + values, width=width, use_bias=False, key=each[1])
        self.beta = Linear(dim, heads, use_bias=False, key=each[2])
        self.alpha, self.rate, self.gate, self.norm = None, None, None, RMSNorm((op.scan.value,), dtype=jnp.float32)
        if fades:
            self.alpha = Linear(dim, heads, start=slow_steps(each[4], heads), key=each[3])
            self.rate = jnp.log(jax.random.uniform(each[5], (heads,), jnp.float32, 1.0, 16.0))
            self.gate = Linear(dim, values, use_bias=False, key=each[6])
            self.norm = GatedNorm(op.scan.value)
        self.out = Linear(values, dim, use_bias=False, key=each[7])

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
        heads, keys = self.op.scan.heads, self.op.scan.heads * self.op.scan.key
        convolved, tail = self.convolution(self.into(x), before.tail)
        split = jnp.split(jax.nn.silu(convolved), [keys, 2 * keys], axis=-1)
        q, k, v = (by_head(array, heads) for array in split)
        gates = {"beta": self.beta(x)}
        if self.alpha is not None and self.rate is not None:
            gates |= {"alpha": self.rate, "alpha.2": self.alpha(x)}
        h, state = scan(self.op, before.scan, unit(q) * self.op.scan.key**-0.5, k, v, gates)
        y = h.astype(x.dtype)
        if isinstance(self.norm, GatedNorm):
            assert self.gate is not None
            return self.out(joined(self.norm(y, by_head(self.gate(x), heads)))), Cache(tail, state)
        return self.out(joined(self.norm(y))), Cache(tail, state)
