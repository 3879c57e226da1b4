"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_type_hints

P_SPEC = "std:plstm/image_p"
D_SPEC = "std:plstm/image_d"


@dataclass(frozen=True)
class Settings:
    """The defaults were chosen on a fifth of the training images held out; the test images took no part."""

    epochs: Annotated[int, "passes over the training images"] = 30
    seed: Annotated[int, "of the initial parameters, the order of images and their shifts"] = 0
    out: Annotated[Path, "folder for the report and the artifacts"] = Path("build/demo")
    target: Annotated[float, "test accuracy to be reached, else exit status 1"] = 0.97
    batch: Annotated[int, "images in a step of training"] = 64
    rate: Annotated[float, "peak of the learning rate: it warms up over a tenth of the steps, then falls as a cosine"] = 4e-3
    weight_decay: Annotated[float, "of AdamW, on matrices alone"] = 0.2
    smoothing: Annotated[float, "share of a label that is spread over all classes"] = 0.1
    shift: Annotated[int, "training images are moved by up to so many pixels, along both axes"] = 1
    dim: Annotated[int, "features of a token"] = 48
    heads: Annotated[int, "scans side by side in a layer, each with gates of its own"] = 2
    width: Annotated[int, "numbers in a key and in a value of a head: a state has width x width of them"] = 24
    pairs: Annotated[int, "pairs of a layer in P-mode and one in D-mode"] = 2
    expansion: Annotated[int, "features between the two maps of a perceptron, in multiples of dim"] = 2
    patch: Annotated[int, "side of a patch in pixels; a patch becomes a token"] = 4
    stride: Annotated[int, "pixels from a patch to the next: where it is less than the patch, patches overlap"] = 2


def meanings() -> dict[str, str]:
    """What each setting is, by name, in order."""
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(Settings, include_extras=True).items()}
