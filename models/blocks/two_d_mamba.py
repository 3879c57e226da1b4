"""2DMamba: the block of Mamba with a scan on the grid."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.passes import ChainScan, require_leaves
from stmlang.models.blocks.selective import Selective
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class TwoDMamba(eqx.Module):
    """The block of Zhang et al.: 2DMamba, 2025, figure 2, with the scan of `std:grid/2dmamba`:

        u, z = W_in x      y = W_out ((scan(silu(conv(u))) + D u) silu(z))

    As in the authors' code for slides the convolution is that of Mamba, along the rows one after the other.
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
        op = require_leaves(op, {"dt", "rate"}, "std:grid/2dmamba", axes=2)
        self.dim = require_size("dim", dim)
        channels = op.scan.heads * op.scan.value
        into, selective, out = jax.random.split(require_key(key), 3)
        self.into = Linear(dim, 2 * channels, use_bias=False, key=into)
        self.selective = Selective(op, dim, width=width, rank=rank, key=selective)
        self.out = Linear(channels, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols dim"]:
        del key
        return self.out(self.selective(self.into(x)))
