"""Random erasing (Zhong et al., 2020)."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float, UInt8

from stmlang.experiments.imagenet.normalizing import DEVIATION, MEAN

AREA, RATIO, ATTEMPTS = (0.02, 1 / 3), 0.3, 10
"""Of a box: its share of the area, its least height by its width, and how often one that fits is looked for."""

Pixels = UInt8[np.ndarray, "height width 3"]


def erased(pixels: Pixels, probability: float, generator: np.random.Generator) -> Pixels:
    """The image, or with a probability the image with a box of noise: normal, with the mean and the deviation of ImageNet's
    channels, cut at black and at white."""
    if not probability or generator.random() >= probability:
        return pixels
    height, width = pixels.shape[:2]
    for _ in range(ATTEMPTS):
        area = height * width * generator.uniform(*AREA)
        ratio = math.exp(generator.uniform(math.log(RATIO), -math.log(RATIO)))
        down, across = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < down < height and 0 < across < width:
            upper, left = generator.integers(0, (height - down + 1, width - across + 1)).tolist()
            noise: Float[np.ndarray, "down across 3"] = np.asarray(MEAN) + np.asarray(DEVIATION) * generator.standard_normal(
                (down, across, 3)
            )
            result = pixels.copy()
            result[upper : upper + down, left : left + across] = np.rint(255 * noise.clip(0, 1))
            return result
    return pixels
