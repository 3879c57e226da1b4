"""Where an image is cut: crops of training, by chance, and that of a test."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

SCALE, RATIO, ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""Of a resized crop: its share of the area, its width by its height, and how often a crop that fits is looked for."""


def box(size: tuple[int, int], generator: np.random.Generator) -> tuple[int, int, int, int]:
    """Left, upper, right and lower edge of a crop of an image of this width and height: the area uniform within `SCALE`, the
    logarithm of the ratio within `RATIO` (Szegedy et al., 2015); where none fits, the largest in the middle with a ratio that
    is allowed."""
    width, height = size
    for _ in range(ATTEMPTS):
        area = width * height * generator.uniform(*SCALE)
        ratio = math.exp(generator.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < across <= width and 0 < down <= height:
            left, upper = (int(generator.integers(0, free + 1)) for free in (width - across, height - down))
            return left, upper, left + across, upper + down
    across, down = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    left, upper = (width - across) // 2, (height - down) // 2
    return left, upper, left + across, upper + down


def resized_crop(image: Image.Image, size: int, generator: np.random.Generator) -> Image.Image:
    """A crop by `box`, resized to a square of this side."""
    return image.resize((size, size), Image.Resampling.BICUBIC, box=box(image.size, generator))


def padded_crop(image: Image.Image, size: int, generator: np.random.Generator) -> Image.Image:
    """A square of this side out of the image with an eighth of black around, as is usual for CIFAR."""
    margin, square = size // 8, whole(image, size, 1.0)
    left, upper = (int(offset) for offset in generator.integers(-margin, margin + 1, size=2))
    return square.crop((left, upper, left + size, upper + size))


def whole(image: Image.Image, size: int, share: float) -> Image.Image:
    """The middle square of this side, once the shorter side is `size / share`: what tests see."""
    width, height = image.size
    factor = math.floor(size / share) / min(width, height)
    if factor != 1:
        image = image.resize((max(size, round(width * factor)), max(size, round(height * factor))), Image.Resampling.BICUBIC)
    left, upper = ((length - size) // 2 for length in image.size)
    return image.crop((left, upper, left + size, upper + size))


def flipped(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """The image or, every other time, its mirror image."""
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if generator.random() < 0.5 else image
