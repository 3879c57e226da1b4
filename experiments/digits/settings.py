"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

P_SPEC = "std:plstm/image_p"
D_SPEC = "std:plstm/image_d"


@dataclass(frozen=True)
class Settings:
    """The defaults were chosen on a fifth of the training images held out; the test images took no part.

    `patch` and `stride` in pixels: patches overlap, one token for each square of `stride` pixels. `heads` of `width` numbers
    for keys and values; `pairs` of a P block and a D block. `rate` is the peak of a cosine schedule that warms up over a tenth
    of the steps. `shift`: training images are moved by up to so many pixels. `target` is the accuracy to be reached.
    """

    epochs: int = 30
    seed: int = 0
    out: Path = Path("build/demo")
    target: float = 0.97
    batch: int = 64
    rate: float = 4e-3
    weight_decay: float = 0.2
    smoothing: float = 0.1
    shift: int = 1
    dim: int = 48
    heads: int = 2
    width: int = 24
    pairs: int = 2
    expansion: int = 2
    patch: int = 4
    stride: int = 2
