"""mLSTM: the block of xLSTM whose memory is a matrix."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import BlockDiagonal, Convolution, HeadNorm, by_head, joined
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, many, require_leaves, stepped, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error


class MLSTM(eqx.Module):
    """The block of Beck et al.: xLSTM, 2024, figure 11, with the scan of `std:chain/mlstm`:

        u, z    = W_up x                    c = silu(conv(u))
        q, k, v = W_q c, W_k c, W_v u       i, f = W_if (q, k, v) + b
        y       = W_down ((norm(mLSTM(q / sqrt(key), k, v, i, f)) + skip c) silu(z))

    W_q, W_k and W_v have small blocks along their diagonals and nothing else, and the norm is that of each head.
    """

    op: ChainScan
    up: Linear
    convolution: Convolution
    query: BlockDiagonal
    key: BlockDiagonal
    value: BlockDiagonal
    gates: Linear
    norm: HeadNorm
    skip: Float[Array, " channels"]
    down: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, block: int = 4, key: PRNGKeyArray) -> None:
        """`width` is that of the convolution, `block` that of the blocks of W_q, W_k and W_v. Raises SpecError (STM5208) for a
        scan that has other leaves or keys of another width than its values, and for what is no size."""
        self.op, self.dim = require_leaves(op, {"source", "transition"}, "std:chain/mlstm"), require_size("dim", dim)
        scan, channels = op.scan, op.scan.heads * op.scan.value
        if scan.key != scan.value:
            message = f"keys and values of the block are equally wide; scan `{scan.name}` has {scan.key} and {scan.value}"
            raise call_error("STM5208", message, help=f"compile it with `key={scan.value}`")
        keys = jax.random.split(require_key(key), 7)
        self.up = Linear(dim, 2 * channels, use_bias=False, key=keys[0])
        self.convolution = Convolution(channels, width=width, key=keys[1])
        self.query, self.key, self.value = (BlockDiagonal(channels, width=block, key=own) for own in keys[2:5])
        start = [0.1 * jax.random.normal(keys[5], (scan.heads,)), jnp.linspace(3.0, 6.0, scan.heads)]
        self.gates = Linear(3 * channels, 2 * scan.heads, gain=0.0, start=jnp.concatenate(start), key=key)
        self.norm = HeadNorm(scan.heads, channels)
        self.skip = jnp.ones(channels, jnp.float32)
        self.down = Linear(channels, dim, use_bias=False, key=keys[6])

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
        heads = self.op.scan.heads
        u, z = jnp.split(self.up(x), 2, axis=-1)
        convolved, tail = self.convolution(u, before.tail)
        c = jax.nn.silu(convolved)
        q, k, v = self.query(c), self.key(c), self.value(u)
        source, transition = jnp.split(self.gates(jnp.concatenate([q, k, v], axis=-1)), 2, axis=-1)
        gates = {"source": source, "transition": transition}
        q, k, v = (by_head(array, heads) for array in (q * self.op.scan.key**-0.5, k, v))
        h, state = scan(self.op, before.scan, q, k, v, gates)
        y = self.norm(joined(h).astype(x.dtype)) + behind(self.skip.astype(x.dtype), 2) * c
        return self.down(y * jax.nn.silu(z)), Cache(tail, state)
