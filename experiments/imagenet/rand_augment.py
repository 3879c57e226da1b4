"""RandAugment (Cubuk et al., 2020) in the form of timm's `rand-m9-mstd0.5-inc1`: some operations, each done every other time
with a magnitude of its own, and operations that are stronger the larger it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from stmlang.experiments.imagenet.normalizing import MEAN

LARGEST = 10.0
"""Magnitudes are from 0 to this."""
FILL = tuple(round(255 * mean) for mean in MEAN)
"""What lies outside of an image."""
ROTATION, SHEAR, SHIFT, ENHANCEMENT, ADDED = 30.0, 0.3, 0.45, 0.9, 110
"""At the largest magnitude: degrees; slope; share of the side; change of a factor from 1; brightness."""
AFFINE = Image.Transform.AFFINE

Change = Callable[[Image.Image, float, float], Image.Image]
"""An operation on an image, with a share of the largest magnitude and a sign."""


def rand_augment(
    image: Image.Image, magnitude: float, deviation: float, operations: int, generator: np.random.Generator
) -> Image.Image:
    """An image after so many operations, drawn with repetition. The magnitude of each is normal, cut at 0 and `LARGEST`."""
    for name in generator.choice(list(CHANGES), size=operations):
        share = float(np.clip(generator.normal(magnitude, deviation), 0, LARGEST)) / LARGEST
        done, sign = generator.random() < 0.5, float(generator.choice([-1.0, 1.0]))
        if done:
            image = CHANGES[str(name)](image, share, sign)
    return image


def _plain(change: Callable[[Image.Image], Image.Image], image: Image.Image, share: float, sign: float) -> Image.Image:
    del share, sign
    return change(image)


def _rotate(image: Image.Image, share: float, sign: float) -> Image.Image:
    return image.rotate(sign * share * ROTATION, Image.Resampling.BICUBIC, fillcolor=FILL)


def _posterize(image: Image.Image, share: float, sign: float) -> Image.Image:
    """Fewer bits: four, or none at all at the largest magnitude."""
    del sign
    bits = 4 - int(4 * share)
    return ImageOps.posterize(image, bits) if bits else Image.new(image.mode, image.size)


def _solarize(image: Image.Image, share: float, sign: float) -> Image.Image:
    """Inverted from a brightness on."""
    del sign
    return ImageOps.solarize(image, 256 - int(256 * share))


def _solarize_add(image: Image.Image, share: float, sign: float) -> Image.Image:
    """Brighter where it is dark."""
    del sign
    added = int(ADDED * share)
    table = [min(255, level + added) if level < 128 else level for level in range(256)]
    return image.point(table * 3)


def _enhance(enhancer: Callable[[Image.Image], Any], image: Image.Image, share: float, sign: float) -> Image.Image:
    return enhancer(image).enhance(max(0.1, 1 + sign * ENHANCEMENT * share))


def _shear_x(image: Image.Image, share: float, sign: float) -> Image.Image:
    return _affine(image, (1, sign * SHEAR * share, 0, 0, 1, 0))


def _shear_y(image: Image.Image, share: float, sign: float) -> Image.Image:
    return _affine(image, (1, 0, 0, sign * SHEAR * share, 1, 0))


def _shift_x(image: Image.Image, share: float, sign: float) -> Image.Image:
    return _affine(image, (1, 0, sign * SHIFT * share * image.width, 0, 1, 0))


def _shift_y(image: Image.Image, share: float, sign: float) -> Image.Image:
    return _affine(image, (1, 0, 0, 0, 1, sign * SHIFT * share * image.height))


def _affine(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
    return image.transform(image.size, AFFINE, matrix, Image.Resampling.BICUBIC, fillcolor=FILL)


CHANGES: Mapping[str, Change] = {
    "auto_contrast": partial(_plain, ImageOps.autocontrast),
    "equalize": partial(_plain, ImageOps.equalize),
    "invert": partial(_plain, ImageOps.invert),
    "rotate": _rotate,
    "posterize": _posterize,
    "solarize": _solarize,
    "solarize_add": _solarize_add,
    "colour": partial(_enhance, ImageEnhance.Color),
    "contrast": partial(_enhance, ImageEnhance.Contrast),
    "brightness": partial(_enhance, ImageEnhance.Brightness),
    "sharpness": partial(_enhance, ImageEnhance.Sharpness),
    "shear_x": _shear_x,
    "shear_y": _shear_y,
    "shift_x": _shift_x,
    "shift_y": _shift_y,
}
"""timm's set for `inc1`."""
