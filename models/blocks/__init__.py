"""Blocks as the papers have them: a scan of the library with the convolution, gates and norms around it.

Those of chains are `Mixer`s: `block(x)` is a whole sequence, `block.step(state, x)` the next node of one. None has a residual
connection, save `ViL`, which is two blocks with theirs, and `RWKV6Block`, which is both halves of its paper's.
"""

from stmlang.models.blocks.compose import EachRow, Raster, Reversed, Summed, Transposed
from stmlang.models.blocks.deltanet import DeltaNet
from stmlang.models.blocks.gla import GLA
from stmlang.models.blocks.mamba import Mamba
from stmlang.models.blocks.mamba2 import Mamba2
from stmlang.models.blocks.mamba2d import Mamba2D
from stmlang.models.blocks.mlstm import MLSTM
from stmlang.models.blocks.passes import Mixer
from stmlang.models.blocks.rwkv6 import RWKV6, ChannelMixing, RWKV6Block
from stmlang.models.blocks.two_d_mamba import TwoDMamba
from stmlang.models.blocks.v2m import V2M
from stmlang.models.blocks.vil import ViL
from stmlang.models.blocks.vim import Vim

__all__ = [
    "GLA",
    "MLSTM",
    "RWKV6",
    "V2M",
    "ChannelMixing",
    "DeltaNet",
    "EachRow",
    "Mamba",
    "Mamba2",
    "Mamba2D",
    "Mixer",
    "RWKV6Block",
    "Raster",
    "Reversed",
    "Summed",
    "Transposed",
    "TwoDMamba",
    "ViL",
    "Vim",
]
