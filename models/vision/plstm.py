"""pLSTM-Vis: layers in P-mode and in D-mode by turns, each with a perceptron behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from stmlang.models.parts import Perceptron
from stmlang.models.vision.gates import Reads
from stmlang.models.vision.model import Cycle, Grid, ImageModel
from stmlang.models.vision.patches import Pooling, require_patch
from stmlang.models.vision.residual import Layer, Residual
from stmlang.models.vision.scanned import AS_WRITTEN, ImageScan
from stmlang.nn import RMSNorm, ScanLayer
from stmlang.nn.errors import require_scan, require_size, require_type
from stmlang.nn.start import SMALL
from stmlang.runtime.compile import compile
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.open import OpenScan
from stmlang.runtime.signature import call_error, flag
from stmlang.scan.topology import Regular

GridScan = CompiledScan | OpenScan
Mode = Literal["P", "D"]
SPECS: Mapping[str, str] = {"P": "std:plstm/image_p", "D": "std:plstm/image_d"}
OPEN_START: Mapping[str, Mapping[str, float]] = {
    "P": {"strength": 0.0, "mark": 0.0, "direct": -2.0},
    "D": {"source": 0.0, "mark": 0.0, "direct": -2.0},
}
"""Biases of gates that are half open at the start, which the paper's (-4, -4, -6) keep closed for thousands of steps."""


def plstm(
    p: GridScan,
    d: GridScan,
    *,
    classes: int,
    channels: int = 3,
    patch: int = 16,
    stride: int | None = None,
    dim: int = 192,
    pairs: int = 6,
    expansion: int = 4,
    position: bool | tuple[int, int] = True,
    pooling: Pooling = "corners",
    key: PRNGKeyArray,
) -> ImageModel:
    """A classifier of `pairs` of a `ScanLayer` around `p` and one around `d`, any scans of a grid, a perceptron behind each.

    `position` says whether there is a table of positions; of scans without sizes, for which grid. Without one, or with that, a
    model of such scans takes images of any size. Raises SpecError: STM5001 for a table of an open grid, STM5010 and STM5208 as
    `ImageModel` does, STM5208 for scans that do not run on one grid.
    """
    grid, expansion = _require_grids(p, d), require_size("expansion", expansion)
    dim, pairs = require_size("dim", dim), require_size("pairs", pairs)
    require_patch(patch, patch if stride is None else stride)
    place = position if isinstance(position, tuple) else p.dag.node_shape if flag("position", position) else None

    def cycle(key: PRNGKeyArray) -> Cycle:
        first, second, *perceptrons = jax.random.split(key, 4)
        layers = (ScanLayer(p, dim, key=first), ScanLayer(d, dim, key=second))
        return _cycle(layers, dim, expansion, Options(), perceptrons)

    return ImageModel(
        cycle,
        RMSNorm((dim,)),
        classes=classes,
        dim=dim,
        turns=pairs,
        channels=channels,
        patch=patch,
        stride=stride,
        grid=grid,
        position=cast(tuple[int, int] | None, place),
        pooling=pooling,
        key=key,
    )


@dataclass(frozen=True)
class Options:
    """What `Residual` is given: where LayerScale starts (in the paper there is none), and the probabilities of dropout and of
    stochastic depth (in the paper 0, .05 and .1 for T, S and B)."""

    layer_scale: float | None = None
    dropout: float = 0.0
    drop_path: float = 0.0


def plstm_vis(
    dim: int,
    *,
    heads: int,
    depth: int = 12,
    expansion: int = 4,
    classes: int = 1000,
    channels: int = 3,
    patch: int = 16,
    size: tuple[int, int] | None = (224, 224),
    modes: Sequence[Mode] = ("P", "D"),
    reads: Reads = "own",
    start: Mapping[str, Mapping[str, float]] | Literal["paper", "open"] = "paper",
    gain: float = SMALL,
    pooling: Pooling = "corners",
    layer_scale: float | None = None,
    dropout: float = 0.0,
    drop_path: float = 0.0,
    dtype: Any = None,
    remat: bool = True,
    key: PRNGKeyArray,
) -> ImageModel:
    """pLSTM-Vis (the paper, section 5.2 and appendix), for images of any size.

        model = plstm_vis_t(key=key)                                    # also _s and _b
        logits = jax.vmap(model)(images)                                # (batch, height, width, 3)
        larger = model.at(384, 384)                                     # to be trained on there

    The ablations of the paper: `modes=("P",)`, `modes=("D",)`, `size=None` (no table of positions; else the table is that of
    images of this height and width), `reads="constant"` (gates of biases alone). `start` has biases of gates by mode and leaf:
    "paper" takes those of the specs, which are the paper's, "open" those of `OPEN_START`. `gain=0` starts the weights of gates
    at zero, as the paper's ablations and arrow pointing do. `dtype="bfloat16"` computes in it on parameters in float32. For the
    rest see `ImageModel` and `Residual`. Raises SpecError as they do.
    """
    dim, heads, depth = require_size("dim", dim), require_size("heads", heads), require_size("depth", depth)
    if not modes or set(modes) - set(SPECS) or depth % len(modes):
        message = f'`modes` must be "P" and "D" in an order that divides {depth} layers, not {modes!r:.80}'
        raise call_error("STM5208", message, help='such as `modes=("P", "D")`, or `modes=("D",)` for one alone')
    if dim % heads:
        raise call_error("STM5208", f"{dim} features cannot be divided among {heads} heads")
    biases = {"paper": dict[str, Mapping[str, float]](), "open": OPEN_START}[start] if isinstance(start, str) else start
    kind, width = "float32" if dtype is None else require_type("dtype", dtype).name, dim // heads
    ops = {
        mode: cast(OpenScan, compile(SPECS[mode], dtype=kind, heads=heads, key=width, value=width))
        for mode in dict.fromkeys(modes)
    }
    options = Options(layer_scale, dropout, drop_path)

    def cycle(key: PRNGKeyArray) -> Cycle:
        keys = jax.random.split(key, 2 * len(modes))
        layers = [
            ImageScan(ops[mode], dim, reads=reads, start=biases.get(mode, AS_WRITTEN), gain=gain, key=own)
            for mode, own in zip(modes, keys, strict=False)
        ]
        return _cycle(layers, dim, require_size("expansion", expansion), options, keys[len(modes) :])

    return ImageModel(
        cycle,
        RMSNorm((dim,), dtype=jnp.float32),
        classes=classes,
        dim=dim,
        turns=depth // len(modes),
        channels=channels,
        patch=patch,
        position=None if size is None else (size[0] // patch, size[1] // patch),
        pooling=pooling,
        dtype=dtype,
        remat=remat,
        key=key,
    )


plstm_vis_t = partial(plstm_vis, 192, heads=3)
"""6 million parameters."""
plstm_vis_s = partial(plstm_vis, 384, heads=6)
"""23 million parameters."""
plstm_vis_b = partial(plstm_vis, 768, heads=12)
"""89 million parameters."""


def _cycle(
    layers: Sequence[Layer], dim: int, expansion: int, options: Options, keys: Sequence[PRNGKeyArray] | PRNGKeyArray
) -> Cycle:
    """Each layer, and a perceptron behind it, with a norm before and a residual connection around."""

    def residual(layer: Layer) -> Residual:
        norm = RMSNorm((dim,), dtype=jnp.float32)
        return Residual(norm, layer, dim, layer_scale=options.layer_scale, dropout=options.dropout, drop_path=options.drop_path)

    perceptrons = [Perceptron(dim, expansion * dim, key=key) for key in keys]
    return tuple(residual(layer) for pair in zip(layers, perceptrons, strict=True) for layer in pair)


def _require_grids(p: GridScan, d: GridScan) -> Grid:
    """The sizes of the grid that both scans run on, None where open in both. Raises SpecError (STM5208) for anything else."""
    grids: list[tuple[int | None, ...]] = []
    for name, op in (("p", p), ("d", d)):
        topology = require_scan(name, op).scan.topology
        if not isinstance(topology, Regular) or len(topology.axes) != 2:
            message = f"`{name}`, scan `{op.scan.name}`, must run on a grid of two axes"
            raise call_error("STM5208", message, help="such as `std:plstm/image_p`")
        grids.append(tuple(axis.size for axis in topology.axes))
    if any(None not in (size, other) and size != other for size, other in zip(*grids, strict=True)):
        message = f"`p` and `d` must run on one grid, not on {grids[0]} and {grids[1]}"
        raise call_error("STM5208", message, help="compile both for the same sizes")
    rows, cols = (other if size is None else size for size, other in zip(*grids, strict=True))
    return rows, cols
