"""Mamba2D: a state at every pixel, the mean of what comes from above and from the left."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import by_head, for_all_heads, joined, slow_steps
from stmlang.models.blocks.passes import ChainScan, require_leaves, whole
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of

LEAVES = {f"{name}_{side}" for name in ("dt", "rate", "b") for side in ("above", "left")}


class Mamba2D(eqx.Module):
    """The block of Baty et al.: Mamba2D, 2024, figure 3, with the scan of `std:grid/mamba2d`:

        u = gelu(W_in x + b)      y = W_out gelu(scan(u) + D u) + c

    Steps and decays differ between what comes from above and what comes from the left; B and C, narrow maps of `u` like the
    steps, are the same for both. There is neither a convolution nor a gate.
    """

    op: ChainScan
    into: Linear
    select: Linear
    to_steps: tuple[Linear, Linear]
    rates: tuple[Float[Array, "head key value"], Float[Array, "head key value"]]
    skip: Float[Array, " channels"]
    out: Linear
    dim: int = eqx.field(static=True)
    rank: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, rank: int | None = None, key: PRNGKeyArray) -> None:
        """`rank` is that of the maps to the steps, a sixteenth of `dim` if none is given. Raises SpecError (STM5208) for a scan
        that has other leaves, and for what is no size."""
        self.op, self.dim = require_leaves(op, LEAVES, "std:grid/mamba2d", axes=2), require_size("dim", dim)
        scan, channels = op.scan, op.scan.heads * op.scan.value
        self.rank = math.ceil(dim / 16) if rank is None else require_size("rank", rank)
        into, select, steps, bias, out = jax.random.split(require_key(key), 5)
        self.into = Linear(dim, channels, key=into)
        self.select = Linear(channels, 2 * self.rank + 2 * scan.key, key=select)
        above, left = jax.random.split(steps)
        start = slow_steps(bias, channels)
        self.to_steps = (
            Linear(self.rank, channels, gain=3**-0.5, start=start, key=above),
            Linear(self.rank, channels, gain=3**-0.5, start=start, key=left),
        )
        states = jnp.log(jnp.arange(1, scan.key + 1, dtype=jnp.float32))
        rate = jnp.broadcast_to(states[:, None], (scan.heads, scan.key, scan.value))
        self.rates = (rate + 0.0, rate + 0.0)
        self.skip = jnp.ones(channels, jnp.float32)
        self.out = Linear(channels, dim, key=out)

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols dim"]:
        del key
        heads, states = self.op.scan.heads, self.op.scan.key
        u = jax.nn.gelu(self.into(x), approximate=False)
        cuts = [self.rank, 2 * self.rank, 2 * self.rank + states]
        *low, b, c = jnp.split(self.select(u), cuts, axis=-1)
        written = for_all_heads(b, heads)
        gates = {"b_above": written, "b_left": written}
        for side, narrow, to_step, rate in zip(("above", "left"), low, self.to_steps, self.rates, strict=True):
            gates |= {f"dt_{side}": by_head(to_step(narrow), heads), f"rate_{side}": rate}
        keys = jnp.ones((*x.shape[:-1], heads, states), x.dtype)
        h, _ = whole(self.op, None, for_all_heads(c, heads), keys, by_head(u, heads), gates)
        y = joined(h).astype(x.dtype) + behind(self.skip.astype(x.dtype), x.ndim) * u
        return self.out(jax.nn.gelu(y, approximate=False))
