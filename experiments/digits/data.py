"""scikit-learn's handwritten digits: 1,797 real images of 8x8 pixels, ten classes. They come with the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, Int32

from stmlang.experiments.training.settings import Training
from stmlang.experiments.training.source import Shuffled

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


def batches(images: Images, training: Training, shift: int) -> Shuffled:
    """Training images in an order of each epoch's own, each image moved by up to `shift` pixels."""

    def load(numbers: Any, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return shifted(images.pixels[numbers], shift, generator), images.labels[numbers]

    return Shuffled(len(images), training.batch, training.seed, load)


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
