"""Batches by their number: which images they hold, and what is done to each.

Whatever is drawn for the example at place p of epoch e comes from a generator of [seed, 1, e, p], for batch s of
[seed, 2, s], and the order of an epoch from [seed, 0, e]. Nothing depends on which process makes a batch, or on those before.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float32, Int64, UInt8
from PIL import Image

from stmlang.experiments.imagenet.cropping import flipped, padded_crop, resized_crop, whole
from stmlang.experiments.imagenet.erasing import erased
from stmlang.experiments.imagenet.mixing import Mixing
from stmlang.experiments.imagenet.policies import policy
from stmlang.experiments.imagenet.reading import Images
from stmlang.experiments.imagenet.settings import Augmentation
from stmlang.experiments.training.errors import TrainingError

Batch = tuple[UInt8[np.ndarray, "image size size 3"], Float32[np.ndarray, "image class"]]
"""Bytes of images, and their targets."""


@dataclass(frozen=True)
class Order:
    """Which image stands where. An epoch has as many places as there are images, less what does not fill a batch; with repeated
    augmentation (Hoffer et al., 2020) it has every image that it has `repeats` times, one after the other, and so only a share
    of all images, another one in every epoch."""

    length: int
    batch: int
    repeats: int
    seed: int

    def __post_init__(self) -> None:
        if self.batch > self.length:
            message = f"a batch of {self.batch} is larger than the {self.length} images there are"
            raise TrainingError(message, "choose a smaller batch: `--batch`")

    @property
    def steps_an_epoch(self) -> int:
        return self.length // self.batch

    @property
    def places(self) -> int:
        """Places of an epoch."""
        return self.steps_an_epoch * self.batch

    def numbers(self, epoch: int) -> Int64[np.ndarray, " place"]:
        """The images of an epoch, by place."""
        return _numbers(self, epoch)


@lru_cache(maxsize=2)
def _numbers(order: Order, epoch: int) -> Int64[np.ndarray, " place"]:
    shuffled = np.random.default_rng([order.seed, 0, epoch]).permutation(order.length)
    return np.repeat(shuffled[: -(-order.places // order.repeats)], order.repeats)[: order.places]


@dataclass(frozen=True, eq=False)
class Examples:
    """Augmented images by their place in the endless sequence of epochs: bytes `(size, size, 3)` and the class."""

    images: Images
    order: Order
    augmentation: Augmentation
    size: int
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[UInt8[np.ndarray, "size size 3"], np.int32]:
        epoch, place = divmod(int(index), self.order.places)
        number = int(self.order.numbers(epoch)[place])
        generator = np.random.default_rng([self.order.seed, 1, epoch, place])
        pixels = augmented(decoded(self.images.encoded(number)), self.augmentation, self.size, generator)
        return pixels, np.int32(self.images.labels[number])


@dataclass(frozen=True)
class Mixed:
    """What is done to a batch as a whole."""

    mixing: Mixing
    classes: int
    seed: int

    def __call__(self, step: int, batch: tuple[UInt8[np.ndarray, "image size size 3"], Int64[np.ndarray, " image"]]) -> Batch:
        images, labels = batch
        return self.mixing(images, labels.astype(np.int32), self.classes, np.random.default_rng([self.seed, 2, step]))


def decoded(encoded: bytes) -> Image.Image:
    """An image in three channels; grey ones and palettes are made so."""
    return Image.open(io.BytesIO(encoded)).convert("RGB")


def augmented(
    image: Image.Image, augmentation: Augmentation, size: int, generator: np.random.Generator
) -> UInt8[np.ndarray, "size size 3"]:
    """An image as models see it in training: cropped, flipped, changed by the policy, a box of it erased."""
    crop = {"resized": resized_crop, "padded": padded_crop}[augmentation.crop]
    image = policy(flipped(crop(image, size, generator), generator), augmentation, generator)
    return erased(np.asarray(image), augmentation.erasing, generator)


def judged(image: Image.Image, size: int, share: float) -> UInt8[np.ndarray, "size size 3"]:
    """An image as models are tested on it."""
    return np.asarray(whole(image, size, share))
