"""What falls in training, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Int32, UInt8

from stmlang.experiments.imagenet.examples import decoded, judged
from stmlang.experiments.imagenet.normalizing import DEVIATION, MEAN
from stmlang.experiments.imagenet.reading import Images
from stmlang.experiments.imagenet.settings import Loss

FILLED = -1
"""The label of what fills up a batch."""


def normalized(images: UInt8[Array, "image size size 3"]) -> Float[Array, "image size size 3"]:
    return (images.astype(jnp.float32) / 255 - jnp.asarray(MEAN)) / jnp.asarray(DEVIATION)


def loss(kind: Loss) -> Callable[[Any, Any, Array], tuple[Array, dict[str, Array]]]:
    """The mean over a batch of `entropy`, and the share of images whose largest logit is at their largest target."""

    def of(model: Any, batch: Any, key: Array) -> tuple[Array, dict[str, Array]]:
        images, targets = batch

        def logits_of(image: Array, own: Array) -> Array:
            return model(image, key=own)

        logits = jax.vmap(logits_of)(normalized(images), jax.random.split(key, len(images)))
        right = jnp.argmax(logits, axis=1) == jnp.argmax(targets, axis=1)
        return jnp.mean(entropy(kind, logits, targets)), {"accuracy": jnp.mean(right, dtype=jnp.float32)}

    return of


def entropy(kind: Loss, logits: Float[Array, "image class"], targets: Float[Array, "image class"]) -> Float[Array, " image"]:
    """Of each image: the cross entropy with its target; or the mean over classes of the binary cross entropy with whether the
    target holds the class at all (Touvron et al.: DeiT III, 2022)."""
    match kind:
        case "ce":
            return optax.softmax_cross_entropy(logits, targets)
        case "bce":
            return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, (targets > 0).astype(logits.dtype)), axis=1)


@dataclass(frozen=True)
class Judged:
    """Images that models are judged on."""

    images: Images
    size: int
    share: float
    batch: int

    def batches(self) -> Iterator[tuple[UInt8[np.ndarray, "image size size 3"], Int32[np.ndarray, " image"]]]:
        """All of them in order, the last batch filled up with what is labelled `FILLED`."""
        labels = self.images.labels
        for start in range(0, len(labels), self.batch):
            numbers = range(start, min(start + self.batch, len(labels)))
            pixels = np.zeros((self.batch, self.size, self.size, 3), np.uint8)
            for place, number in enumerate(numbers):
                pixels[place] = judged(decoded(self.images.encoded(number)), self.size, self.share)
            filled = np.full(self.batch, FILLED, np.int32)
            filled[: len(numbers)] = labels[numbers.start : numbers.stop]
            yield pixels, filled


@eqx.filter_jit
def _counts(model: Any, images: Array, labels: Array) -> Int[Array, "class class"]:
    logits = jax.vmap(model)(normalized(images))
    classes = logits.shape[1]
    added = (labels != FILLED).astype(jnp.int32)
    return jnp.zeros((classes, classes), jnp.int32).at[labels, jnp.argmax(logits, axis=1)].add(added)


def confusion(model: Any, of: Judged) -> Int[np.ndarray, "label predicted"]:
    """How often each class was taken for each other. The model is in inference mode."""
    return np.sum([np.asarray(_counts(model, jnp.asarray(x), jnp.asarray(y)), np.int64) for x, y in of.batches()], axis=0)


def accuracy(matrix: Int[np.ndarray, "label predicted"]) -> float:
    """The share that was right."""
    return float(np.trace(matrix) / matrix.sum())
