"""scikit-learn's handwritten digits: 1,797 real images of 8x8 pixels, ten classes. They come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, Int32

SIDE = 8
CLASSES = 10
TEST_SHARE = 0.2
SPLIT_SEED = 0


@dataclass(frozen=True, eq=False)
class Images:
    """Images with values in [0, 1], and which digit each one is."""

    pixels: Float32[np.ndarray, "image 8 8 1"]
    labels: Int32[np.ndarray, " image"]

    def __len__(self) -> int:
        return len(self.labels)


def load() -> tuple[Images, Images]:
    """Training and test images: a fixed split, 80 to 20, with the same share of every digit in both."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportUnknownVariableType]
    from sklearn.model_selection import train_test_split  # pyright: ignore[reportUnknownVariableType]

    digits = cast(Any, load_digits())
    pixels = (digits.images / 16).astype(np.float32)[..., None]
    labels = digits.target.astype(np.int32)
    split = cast(Any, train_test_split(pixels, labels, test_size=TEST_SHARE, stratify=labels, random_state=SPLIT_SEED))
    return Images(split[0], split[2]), Images(split[1], split[3])


def batches(images: Images, size: int, shift: int, generator: np.random.Generator) -> Iterator[Images]:
    """One epoch in random order, each image moved by up to `shift` pixels. What does not fill a batch is left out."""
    order = generator.permutation(len(images))
    for start in range(0, len(images) - size + 1, size):
        chosen = order[start : start + size]
        yield Images(shifted(images.pixels[chosen], shift, generator), images.labels[chosen])


def shifted(
    pixels: Float32[np.ndarray, "image 8 8 1"], most: int, generator: np.random.Generator
) -> Float32[np.ndarray, "image 8 8 1"]:
    """Every image moved by its own whole number of pixels, up to `most` along each axis; what comes in is empty."""
    count = len(pixels)
    padded = np.pad(pixels, ((0, 0), (most, most), (most, most), (0, 0)))
    moves = cast(Any, generator.integers(0, 2 * most + 1, (2, count, 1)))
    rows = (moves[0] + np.arange(SIDE))[:, :, None]
    cols = (moves[1] + np.arange(SIDE))[:, None, :]
    return padded[np.arange(count)[:, None, None], rows, cols]
