"""Mamba: the selective state space block."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.passes import NOTHING, Cache, ChainScan, Scan, many, require_leaves, stepped, whole
from stmlang.models.blocks.selective import Selective
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class Mamba(eqx.Module):
    """The block of Gu, Dao: Mamba, 2023, figure 3, with the scan of `std:chain/mamba`:

        u, z = W_in x      y = W_out ((S6(silu(conv(u))) + D u) silu(z))

    The scan's values are the channels of `u`, in the paper twice as many as features; its keys are the states of each.
    """

    into: Linear
    selective: Selective
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, rank: int | None = None, key: PRNGKeyArray) -> None:
        """`width` is that of the convolution, `rank` that of the map to the steps. Raises SpecError (STM5208) for a scan that
        has other leaves, and for what is no size."""
        op = require_leaves(op, {"dt", "rate"}, "std:chain/mamba")
        self.dim = require_size("dim", dim)
        channels = op.scan.heads * op.scan.value
        into, selective, out = jax.random.split(require_key(key), 3)
        self.into = Linear(dim, 2 * channels, use_bias=False, key=into)
        self.selective = Selective(op, dim, width=width, rank=rank, key=selective)
        self.out = Linear(channels, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        return self.run(x, NOTHING, whole)[0]

    def init_state(self) -> Cache:
        return self.selective.init_state()

    def prefill(self, state: Cache, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], Cache]:
        return self.run(x, state, many)

    def step(self, state: Cache, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], Cache]:
        return stepped(self.run, state, x)

    def run(self, x: Float[Array, "time dim"], before: Cache, scan: Scan) -> tuple[Array, Cache]:
        y, behind = self.selective.run(self.into(x), before, scan)
        return self.out(y), behind
