"""Vision Mamba: two directions, each with a convolution, a selection and a scan of its own."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.compose import Reversed, Summed
from stmlang.models.blocks.passes import ChainScan, require_leaves
from stmlang.models.blocks.selective import Selective
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class Vim(eqx.Module):
    """The block of Zhu et al.: Vision Mamba, 2024, algorithm 1, on patches in a row, with the scan of `std:chain/mamba`:

        u, z = W_in x      y = W_out (forward(u, z) + backward(u, z)) / 2

    Both directions gate by `z`, and the backward one convolves what is turned around already. Their queries, keys and values
    differ, so they are two scans. The half is that of the authors' tiny and small models.
    """

    into: Linear
    directions: Summed
    out: Linear
    dim: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, rank: int | None = None, key: PRNGKeyArray) -> None:
        """`width` is that of the convolutions, `rank` that of the maps to the steps. Raises SpecError (STM5208) for a scan that
        has other leaves, and for what is no size."""
        op = require_leaves(op, {"dt", "rate"}, "std:chain/mamba")
        self.dim = require_size("dim", dim)
        channels = op.scan.heads * op.scan.value
        into, forward, backward, out = jax.random.split(require_key(key), 4)
        self.into = Linear(dim, 2 * channels, use_bias=False, key=into)
        ways = [Selective(op, dim, width=width, rank=rank, key=own) for own in (forward, backward)]
        self.directions = Summed([ways[0], Reversed(ways[1])])
        self.out = Linear(channels, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "patches dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "patches dim"]:
        del key
        return self.out(self.directions(self.into(x)) / 2)
