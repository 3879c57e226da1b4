"""What is trained: pLSTM-Vis in both modes and its ablations, a ViT of the same width and depth, and the networks that the
paper compares with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from stmlang.experiments.arrow.data import channels
from stmlang.experiments.arrow.settings import BLOCKS, Model, Settings
from stmlang.models.blocks.passes import ChainScan
from stmlang.models.counting import parameters
from stmlang.models.vision import (
    EfficientNet,
    ImageModel,
    ImageScan,
    convnext,
    mamba2d,
    mamba_nd,
    plstm_vis,
    two_d_mamba,
    v2m,
    vil,
    vim,
    vit,
)

CLASSES = 2
VARIANTS: Mapping[Model, Mapping[str, Any]] = {
    "plstm": {},
    "paper_start": {"start": "paper"},
    "no_position": {"size": None},
    "p_mode": {"modes": ("P",)},
    "d_mode": {"modes": ("D",)},
    "constant": {"reads": "constant"},
}
"""What differs from pLSTM with both modes by turns, a table of positions, and gates that read tokens and start half open."""
MAKE: Mapping[Model, Callable[..., ImageModel]] = {
    "convnext": convnext,
    "vil": vil,
    "vim": vim,
    "mamba_nd": mamba_nd,
    "v2m": v2m,
    "two_d_mamba": two_d_mamba,
    "mamba2d": mamba2d,
}
"""Those of `BLOCKS`."""


def made(model: Model, settings: Settings, key: PRNGKeyArray) -> ImageModel | EfficientNet:
    """A model as it starts, for tokens or images of any size; a token is a patch of one pixel. A table of positions is that of
    the size of training, and is resized for others."""
    if model == "efficientnet":
        return EfficientNet(classes=CLASSES, channels=channels(settings), dropout=0.0, key=key)
    if model in BLOCKS:
        return _baseline(model, settings, blocks(model, settings), key)
    common: dict[str, Any] = {
        **_common(settings),
        "size": _size(settings),
        "heads": settings.heads,
        "depth": settings.depth,
        "expansion": settings.expansion,
        "key": key,
    }
    if model == "vit":
        return vit(settings.dim, layer_scale=1.0, **common)
    switches: dict[str, Any] = {**common, "start": "open", "gain": settings.gain, "reads": settings.reads, **VARIANTS[model]}
    return plstm_vis(settings.dim, **switches)


@cache
def blocks(model: Model, settings: Settings) -> int:
    """How many blocks a baseline has: as many as bring its parameters nearest to those of pLSTM, since most have no perceptron
    behind a block."""
    at_once = BLOCKS[model]
    aim = _parameters(lambda key: made("plstm", settings, key))
    one, two = (_parameters(lambda key, turns=turns: _baseline(model, settings, turns * at_once, key)) for turns in (1, 2))
    return at_once * max(1, 1 + round((aim - one) / (two - one)))


def scans(model: ImageModel | EfficientNet) -> list[ChainScan]:
    """The scans of a pLSTM, in the order of its layers; none of other models."""
    layers = model.stacked if isinstance(model, ImageModel) else ()
    return [layer.layer.op for layer in layers if isinstance(layer.layer, ImageScan)]


def _baseline(model: Model, settings: Settings, depth: int, key: PRNGKeyArray) -> ImageModel:
    own: dict[str, Any] = {"size": _size(settings)}
    match model:
        case "convnext":
            own = {"expansion": settings.expansion}  # there is no table of positions whose size it would be
        case "vil":
            own |= {"heads": settings.heads}
        case _:
            pass
    return MAKE[model](settings.dim, depth=depth, key=key, **own, **_common(settings))


def _common(settings: Settings) -> dict[str, Any]:
    """What all models of one width are given."""
    return {"classes": CLASSES, "channels": channels(settings), "patch": _patch(settings), "remat": settings.remat}


def _patch(settings: Settings) -> int:
    return 1 if settings.cell else settings.patch


def _size(settings: Settings) -> tuple[int, int]:
    """Of what a table of positions is for."""
    rows, cols = settings.grid
    return _patch(settings) * rows, _patch(settings) * cols


def _parameters(make: Callable[[PRNGKeyArray], ImageModel | EfficientNet]) -> int:
    """How many a model has, which is not made for it."""
    return parameters(eqx.filter_eval_shape(make, jax.random.key(0)))
