"""Models of images made of the blocks of other papers, all in one form: patches, blocks of one width, a norm, pooling, a head.

2DMamba, Mamba2D and V2M are published with stages of several widths, and Mamba2D with attention in the last two. Here they are
compared block by block, at the width and depth of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from stmlang.models.blocks import MLSTM, V2M, Mamba, Mamba2D, Raster, Reversed, Transposed, TwoDMamba, Vim
from stmlang.models.blocks.passes import ChainScan
from stmlang.models.vision.model import Cycle, ImageModel
from stmlang.models.vision.residual import Layer, Residual
from stmlang.nn import RMSNorm
from stmlang.nn.errors import require_size
from stmlang.runtime.compile import compile
from stmlang.runtime.signature import call_error

STATES = 16
"""Of each channel, as in Mamba."""
MakeLayers = Callable[[PRNGKeyArray], Sequence[Layer]]


def vil(dim: int, *, depth: int = 24, heads: int = 4, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """Vision-LSTM (Alkin et al., 2024): blocks of mLSTM over the patches, from the first and from the last by turns; the first
    and the last patch are pooled."""
    op = _scan("std:chain/vil", heads=heads, width=2 * dim // heads)

    def layers(key: PRNGKeyArray) -> Sequence[Layer]:
        first, second = jax.random.split(key)
        return Raster(MLSTM(op, dim, key=first)), Raster(Reversed(MLSTM(op, dim, key=second)))

    return _model(layers, dim, depth, 2, key, {"pooling": "ends", **options})


def vim(dim: int, *, depth: int = 24, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """Vision Mamba (Zhu et al., 2024): both directions over the patches in every block. The mean is pooled; the authors' class
    token stands in the middle of the patches."""
    op = _selective("std:chain/mamba", dim)
    return _model(lambda key: [Raster(Vim(op, dim, key=key))], dim, depth, 1, key, options)


def mamba_nd(dim: int, *, depth: int = 24, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """Mamba-ND (Li et al., 2024): blocks of Mamba along rows and along columns, from either end, one after the other."""
    op = _selective("std:chain/mamba", dim)

    def layers(key: PRNGKeyArray) -> Sequence[Layer]:
        a, b, c, d = (Mamba(op, dim, key=own) for own in jax.random.split(key, 4))
        return Raster(a), Raster(Reversed(b)), Transposed(Raster(c)), Transposed(Raster(Reversed(d)))

    return _model(layers, dim, depth, 4, key, options)


def v2m(dim: int, *, depth: int = 24, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """V2M (Wang et al., 2024): along lines and across them, in four orders in every block."""
    along, across = _selective("std:chain/v2m:v2m_rows", dim), _selective("std:chain/v2m", dim)
    return _model(lambda key: [V2M(along, across, dim, key=key)], dim, depth, 1, key, options)


def two_d_mamba(dim: int, *, depth: int = 24, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """2DMamba (Zhang et al., 2025): Mamba with a scan on the grid, from one corner, in every block."""
    op = _selective("std:grid/2dmamba", dim)
    return _model(lambda key: [TwoDMamba(op, dim, key=key)], dim, depth, 1, key, options)


def mamba2d(dim: int, *, depth: int = 24, key: PRNGKeyArray, **options: Any) -> ImageModel:
    """Mamba2D (Baty et al., 2024): a state at every pixel, from above and from the left, in every block."""
    op = _selective("std:grid/mamba2d", dim)
    return _model(lambda key: [Mamba2D(op, dim, key=key)], dim, depth, 1, key, options)


vil_t, vil_s, vil_b = (partial(vil, dim) for dim in (192, 384, 768))
vim_t, vim_s = (partial(vim, dim) for dim in (192, 384))


def _selective(spec: str, dim: int) -> ChainScan:
    return cast(ChainScan, compile(spec, key=STATES, value=2 * dim))


def _scan(spec: str, *, heads: int, width: int) -> ChainScan:
    return cast(ChainScan, compile(spec, heads=heads, key=width, value=width))


def _model(layers: MakeLayers, dim: int, depth: int, of_turn: int, key: PRNGKeyArray, options: dict[str, Any]) -> ImageModel:
    """`depth` blocks, `of_turn` of them made at once, each behind a norm and with a residual connection around. Options are
    those of `ImageModel`, and `drop_path`, `dropout`, `layer_scale` those of `Residual`."""
    if require_size("depth", depth) % of_turn:
        raise call_error("STM5208", f"`depth` must be a multiple of {of_turn}, not {depth}")
    around = {name: options.pop(name) for name in ("drop_path", "dropout", "layer_scale") if name in options}
    size, patch = options.pop("size", (224, 224)), options.get("patch", 16)

    def cycle(key: PRNGKeyArray) -> Cycle:
        return tuple(Residual(RMSNorm((dim,), dtype=jnp.float32), layer, dim, **around) for layer in layers(key))

    made: dict[str, Any] = {"classes": 1000, "pooling": "mean", "position": (size[0] // patch, size[1] // patch), **options}
    return ImageModel(cycle, RMSNorm((dim,), dtype=jnp.float32), dim=dim, turns=depth // of_turn, key=key, **made)
