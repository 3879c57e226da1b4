"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typing_extensions import Doc

from stmlang.experiments.training.settings import Training

P_SPEC = "std:plstm/image_p"
D_SPEC = "std:plstm/image_d"


TRAINING = Training(epochs=30, rate=4e-3, weight_decay=0.2, out=Path("build/demo"))


@dataclass(frozen=True)
class Settings:
    """The defaults were chosen on a fifth of the training images held out; the test images took no part."""

    training: Training = TRAINING
    target: Annotated[float, Doc("test accuracy to be reached, else exit status 1")] = 0.97
    smoothing: Annotated[float, Doc("share of a label that is spread over all classes")] = 0.1
    shift: Annotated[int, Doc("training images are moved by up to so many pixels, along both axes")] = 1
    dim: Annotated[int, Doc("features of a token")] = 48
    heads: Annotated[int, Doc("scans side by side in a layer, each with gates of its own")] = 2
    width: Annotated[int, Doc("numbers in a key and in a value of a head: a state has width x width of them")] = 24
    pairs: Annotated[int, Doc("pairs of a layer in P-mode and one in D-mode")] = 2
    expansion: Annotated[int, Doc("features between the two maps of a perceptron, in multiples of dim")] = 2
    patch: Annotated[int, Doc("side of a patch in pixels; a patch becomes a token")] = 4
    stride: Annotated[int, Doc("pixels from a patch to the next: where it is less than the patch, patches overlap")] = 2
