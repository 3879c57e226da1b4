"""V2M: a selective scan along the lines of an image, then one across them, in four orders."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.compose import EachRow
from stmlang.models.blocks.passes import ChainScan, require_leaves
from stmlang.models.blocks.selective import Selective
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class V2M(eqx.Module):
    """The block of Wang et al.: V2M, Visual 2-Dimensional Mamba, 2024, with the two scans of `std:chain/v2m`, for axes of any
    size: `std:chain/v2m:v2m_rows` along and `std:chain/v2m` across.

        u, z = W_in x      y = W_out (sum over four orders of across(along(u, z), z)) / 2

    The orders are the lines of rows and those of columns, each from both ends. `along` writes what is selected and reads the
    sum of the states; `across` convolves that, writes with keys of one and reads what is selected. Both gate by `z`.

    The authors' code turns back both axes of the two orders that go from the far end, though one was turned, so that what they
    have of one line is added to another. `mirrored=True` is as it does. It also gives its result column by column, which this
    block does not.
    """

    into: Linear
    along: Selective
    across: Selective
    out: Linear
    dim: int = eqx.field(static=True)
    mirrored: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        along: ChainScan,
        across: ChainScan,
        dim: int,
        *,
        width: int = 4,
        rank: int | None = None,
        mirrored: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        """`width` is that of the convolutions, `rank` that of the maps to the steps. Raises SpecError (STM5208) for scans that
        have other leaves, and for what is no size."""
        along = require_leaves(along, {"dt", "rate"}, "std:chain/v2m:v2m_rows")
        across = require_leaves(across, {"dt", "rate"}, "std:chain/v2m")
        self.dim, self.mirrored = require_size("dim", dim), mirrored
        channels = along.scan.heads * along.scan.value
        into, first, second, out = jax.random.split(require_key(key), 4)
        self.into = Linear(dim, 2 * channels, use_bias=False, key=into)
        self.along = Selective(along, dim, width=width, rank=rank, reads=False, key=first)
        self.across = Selective(across, dim, width=width, rank=rank, writes=False, key=second)
        self.out = Linear(channels, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols dim"]:
        del key
        inner = self.into(x)
        by_column = self.lines(jnp.swapaxes(inner, 0, 1))
        return self.out((self.lines(inner) + jnp.swapaxes(by_column, 0, 1)) / 2)

    def lines(self, x: Float[Array, "lines places channels_and_channels"]) -> Float[Array, "lines places channels"]:
        """Both orders along the lines of a grid, added up."""
        backward = self.order(jnp.flip(x, 1))
        return self.order(x) + jnp.flip(backward, (0, 1) if self.mirrored else 1)

    def order(self, x: Float[Array, "lines places channels_and_channels"]) -> Float[Array, "lines places channels"]:
        """Along every line, then across all lines at every place."""
        z = jnp.split(x, 2, axis=-1)[1]
        between = jnp.concatenate([EachRow(self.along)(x), z], axis=-1)
        return jnp.swapaxes(EachRow(self.across)(jnp.swapaxes(between, 0, 1)), 0, 1)
