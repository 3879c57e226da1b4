"""MixUp and CutMix of a batch, and the targets that go with it.

One decision a batch: which of both, and which share lambda of it remains. An image is mixed with the one at the same place from
the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32, UInt8

Batch = UInt8[np.ndarray, "image height width channel"]
Targets = Float32[np.ndarray, "image class"]


@dataclass(frozen=True)
class Mixing:
    """`mixup` and `cutmix` are the parameters of Beta(a, a) that lambda is drawn from (Zhang et al., 2018; Yun et al., 2019), 0
    for none; where there are both, each has every other batch. `smoothing` is the share of a target that is given to all
    classes alike."""

    mixup: float
    cutmix: float
    smoothing: float

    def __call__(
        self, images: Batch, labels: Int32[np.ndarray, " image"], classes: int, generator: np.random.Generator
    ) -> tuple[Batch, Targets]:
        own = targets(labels, classes, self.smoothing)
        kinds = [(mixed, self.mixup), (cut, self.cutmix)]
        kinds = [(kind, alpha) for kind, alpha in kinds if alpha > 0]
        if not kinds:
            return images, own
        kind, alpha = kinds[int(generator.integers(len(kinds)))]
        result, share = kind(images, float(generator.beta(alpha, alpha)), generator)
        weight = np.float32(share)
        return result, weight * own + (1 - weight) * own[::-1]


def targets(labels: Int32[np.ndarray, " image"], classes: int, smoothing: float) -> Targets:
    """Rows that sum to one."""
    rows = np.full((len(labels), classes), smoothing / classes, np.float32)
    rows[np.arange(len(labels)), labels] += 1 - smoothing
    return rows


def mixed(images: Batch, share: float, _: np.random.Generator) -> tuple[Batch, float]:
    """MixUp: `share` of each image and the rest of its partner, rounded to whole bytes."""
    weight = np.float32(share)
    sums = weight * images.astype(np.float32) + (1 - weight) * images[::-1].astype(np.float32)
    return np.rint(sums).astype(np.uint8), share


def cut(images: Batch, share: float, generator: np.random.Generator) -> tuple[Batch, float]:
    """CutMix: a box of `1 - share` of the area and the image's ratio, its middle anywhere, is that of the partner. What lies
    outside the image is cut away, and the share that remains is returned."""
    height, width = images.shape[1:3]
    side = math.sqrt(1 - share)
    rows, cols = (_interval(length, round(length * side), generator) for length in (height, width))
    result = images.copy()
    result[:, rows, cols] = images[::-1, rows, cols]
    area = (rows.stop - rows.start) * (cols.stop - cols.start)
    return result, 1 - area / (height * width)


def _interval(length: int, size: int, generator: np.random.Generator) -> slice:
    start = int(generator.integers(length)) - size // 2
    return slice(max(start, 0), min(start + size, length))
