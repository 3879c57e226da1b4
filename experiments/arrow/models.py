"""What is trained: pLSTM-Vis in both modes and its ablations, and a ViT of the same width and depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import PRNGKeyArray

from stmlang.experiments.arrow.data import channels
from stmlang.experiments.arrow.settings import Model, Settings
from stmlang.models.blocks.passes import ChainScan
from stmlang.models.vision import ImageModel, ImageScan, plstm_vis, vit

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


def made(model: Model, settings: Settings, key: PRNGKeyArray) -> ImageModel:
    """A model as it starts, for tokens or images of any size; a token is a patch of one pixel. The table of positions is that
    of the size of training, and is resized for others."""
    patch = 1 if settings.cell else settings.patch
    common: dict[str, Any] = {
        "heads": settings.heads,
        "depth": settings.depth,
        "expansion": settings.expansion,
        "classes": CLASSES,
        "channels": channels(settings),
        "patch": patch,
        "size": tuple(patch * nodes for nodes in settings.grid),
        "remat": settings.remat,
        "key": key,
    }
    if model == "vit":
        return vit(settings.dim, layer_scale=1.0, **common)
    switches: dict[str, Any] = {**common, "start": "open", "gain": settings.gain, "reads": settings.reads, **VARIANTS[model]}
    return plstm_vis(settings.dim, **switches)


def scans(model: ImageModel) -> list[ChainScan]:
    """The scans of a model, in the order of its layers."""
    return [layer.layer.op for layer in model.stacked if isinstance(layer.layer, ImageScan)]
