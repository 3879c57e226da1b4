"""The inside of a Mamba block: convolution, selection, scan, skip and gate.

Gu, Dao: Mamba, 2023, section 3: of what was convolved, `u`, narrow linear maps give the steps dt, and what is written and read,
B and C. The scan of `std:chain/mamba` or one like it is `x' = exp(dt A) x + dt B u`, and

    y = (C x' + D u) silu(z)
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import Convolution, by_head, for_all_heads, joined, slow_steps
from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, kept_dtype, whole
from stmlang.models.parts import Linear
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of


class Selective(eqx.Module):
    """From `(*nodes, 2 channels)`, `u` before its convolution and then `z`, to `(*nodes, channels)`.

    The channels are the scan's values, its keys the states of a channel. On a grid the convolution runs row by row, as if it
    were a chain. `writes=False` is for scans whose keys are one, `reads=False` for those whose queries are.
    """

    op: ChainScan
    convolution: Convolution
    select: Linear
    to_step: Linear
    rate: Float[Array, "head key value"]
    skip: Float[Array, " channels"]
    rank: int = eqx.field(static=True)
    writes: bool = eqx.field(static=True)
    reads: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self,
        op: ChainScan,
        dim: int,
        *,
        width: int = 4,
        rank: int | None = None,
        writes: bool = True,
        reads: bool = True,
        key: PRNGKeyArray,
    ) -> None:
        """`dim` are the features of the block around it, a sixteenth of which is the `rank` of the steps if none is given."""
        scan = op.scan
        channels, self.rank = scan.heads * scan.value, rank or math.ceil(dim / 16)
        keys = jax.random.split(key, 4)
        self.op, self.writes, self.reads = op, writes, reads
        self.convolution = Convolution(channels, width=width, key=keys[0])
        self.select = Linear(channels, self.rank + scan.key * (writes + reads), use_bias=False, key=keys[1])
        self.to_step = Linear(self.rank, channels, gain=3**-0.5, start=slow_steps(keys[3], channels), key=keys[2])
        states = jnp.log(jnp.arange(1, scan.key + 1, dtype=jnp.float32))  # -A is 1, 2, ... as in S4D
        self.rate = jnp.broadcast_to(states[:, None], (scan.heads, scan.key, scan.value)) + 0.0
        self.skip = jnp.ones(channels, jnp.float32)

    def init_state(self) -> Cache:
        """The cache before the first step of a chain."""
        return Cache(self.convolution.tail(kept_dtype(self.op)), self.op.init_state())

    def __call__(
        self, x: Float[Array, "*nodes channels_and_channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*nodes channels"]:
        del key
        return self.run(x, NOTHING, whole)[0]

    def run(self, x: Float[Array, "*nodes channels_and_channels"], before: Cache, scan: Scan) -> tuple[Array, Cache]:
        nodes, heads, states = x.shape[:-1], self.op.scan.heads, self.op.scan.key
        u, z = jnp.split(x, 2, axis=-1)
        u, tail = self.convolution(u.reshape(math.prod(nodes), u.shape[-1]), before.tail)
        u = jax.nn.silu(u).reshape(z.shape)
        cuts = [self.rank + states * number for number in range(self.writes + self.reads)]
        low, *selected = jnp.split(self.select(u), cuts, axis=-1)
        ones = jnp.ones((*nodes, states), x.dtype)
        b = selected[0] if self.writes else ones
        c = selected[-1] if self.reads else ones
        gates = {"dt": by_head(self.to_step(low), heads), "rate": self.rate}
        h, state = scan(self.op, before.scan, for_all_heads(c, heads), for_all_heads(b, heads), by_head(u, heads), gates)
        y = joined(h).astype(x.dtype) + behind(self.skip.astype(x.dtype), x.ndim) * u
        return y * jax.nn.silu(z), Cache(tail, state)
