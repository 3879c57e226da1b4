"""What is trained: pLSTM-Vis and its ablations, a ViT, ViL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import PRNGKeyArray

from stmlang.experiments.imagenet.settings import Model, Settings
from stmlang.experiments.training.errors import TrainingError
from stmlang.models.vision import ImageModel, plstm_vis, vil, vit
from stmlang.models.weights import load
from stmlang.source.diagnostic import SpecError

ABLATIONS: Mapping[Model, Mapping[str, Any]] = {
    "plstm": {},
    "no_position": {"size": None},
    "p_mode": {"modes": ("P",)},
    "d_mode": {"modes": ("D",)},
    "constant": {"reads": "constant"},
}
"""What differs from pLSTM-Vis."""


def made(model: Model, settings: Settings, side: int, classes: int, key: PRNGKeyArray) -> ImageModel:
    """A model for images of this side, as it starts: new, or with the parameters of `settings.weights` and their table of
    positions resized. Raises TrainingError where those are of another model."""
    if settings.weights is None or settings.weights_side is None:
        return _new(model, settings, side, classes, key)
    before = _new(model, settings, settings.weights_side, classes, key)
    try:
        return load(before, settings.weights).at(side, side)
    except SpecError as error:
        raise TrainingError(f"{settings.weights} does not fit: {error}", "name another file: `--weights`") from None
    except FileNotFoundError:
        raise TrainingError(f"there is no file {settings.weights}", "name another file: `--weights`") from None


def _new(model: Model, settings: Settings, side: int, classes: int, key: PRNGKeyArray) -> ImageModel:
    common: dict[str, Any] = {
        "classes": classes,
        "patch": patch(settings, side),
        "size": (side, side),
        "drop_path": settings.drop_path,
        "dtype": None if settings.dtype == "float32" else settings.dtype,
        "remat": settings.remat,
        "key": key,
    }
    match model:
        case "vit":
            scale = settings.vit_scale
            return vit(settings.dim, heads=settings.heads, depth=settings.depth, layer_scale=scale, **common)
        case "vil":
            return vil(settings.vil_dim, heads=4, depth=settings.vil_depth, **common)
        case _:
            switches: dict[str, Any] = {**common, "start": settings.start, "gain": settings.gain, **ABLATIONS[model]}
            return plstm_vis(settings.dim, heads=settings.heads, depth=settings.depth, **switches)


def patch(settings: Settings, side: int) -> int:
    """The side of a patch of images of this side. The resolution that parameters come from has patches of the same side."""
    return (settings.side or side) // settings.patches
