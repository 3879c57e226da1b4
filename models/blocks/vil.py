"""Vision-LSTM: mLSTM on the patches of an image, forward and backward by turns."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.compose import Raster, Reversed
from stmlang.models.blocks.mlstm import MLSTM
from stmlang.models.blocks.passes import ChainScan
from stmlang.nn import RMSNorm
from stmlang.nn.errors import require_key
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of


class ViL(eqx.Module):
    """Two blocks of Alkin et al.: Vision-LSTM, 2024, figure 1, with the scan of `std:chain/vil`:

        x + mLSTM(norm(x)) from the first patch to the last, then the same from the last to the first

    Each is the block of xLSTM with parameters of its own. Patches are taken row by row. Where a block runs backward its
    convolution does too, so that both take the forward scan, on patches in the opposite order.
    """

    norms: tuple[RMSNorm, RMSNorm]
    forward: Raster
    backward: Raster

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, op: ChainScan, dim: int, *, width: int = 4, block: int = 4, key: PRNGKeyArray) -> None:
        """What a block of xLSTM takes. Raises SpecError (STM5208) as it does."""
        forward, backward = jax.random.split(require_key(key))
        self.forward = Raster(MLSTM(op, dim, width=width, block=block, key=forward))
        self.backward = Raster(Reversed(MLSTM(op, dim, width=width, block=block, key=backward)))
        self.norms = (RMSNorm((dim,)), RMSNorm((dim,)))

    def __call__(self, x: Float[Array, "*axes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*axes dim"]:
        del key
        x = x + self.forward(self.norms[0](x))
        return x + self.backward(self.norms[1](x))
