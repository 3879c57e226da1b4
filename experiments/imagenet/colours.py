"""Changes of colour: DeiT-III's three, and jitter."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

SOLARIZED = 128
BLUR = (0.1, 2.0)
"""Deviation of the Gaussian, in pixels."""
JITTERS = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)


def three_augment(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """One of three, each as often as the others: without colour, inverted where it is light, or blurred (Touvron et al.:
    DeiT III, 2022, section 3)."""
    match int(generator.integers(3)):
        case 0:
            return image.convert("L").convert("RGB")
        case 1:
            return ImageOps.solarize(image, SOLARIZED)
        case _:
            return image.filter(ImageFilter.GaussianBlur(generator.uniform(*BLUR)))


def jittered(image: Image.Image, strength: float, generator: np.random.Generator) -> Image.Image:
    """Brightness, contrast and saturation, in an order by chance, each times a factor within `strength` of 1."""
    changed = image
    for number in generator.permutation(len(JITTERS)):
        factor = float(generator.uniform(max(0.0, 1 - strength), 1 + strength))
        changed: Image.Image = JITTERS[int(number)](changed).enhance(factor)
    return changed
