"""What a trained classifier makes of images that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stmlang.experiments.digits.data import CLASSES, Images
from stmlang.models.vision.model import ImageModel


@dataclass(frozen=True, eq=False)
class Mistake:
    """An image of `digit` that was taken for `predicted`, with which probability."""

    pixels: Float[np.ndarray, "8 8 1"]
    digit: int
    predicted: int
    share: float


def probabilities(model: ImageModel, images: Images) -> Float[np.ndarray, "image digit"]:
    """How likely the model holds each digit to be, in each image."""

    @eqx.filter_jit
    def softmax(model: ImageModel, pixels: Array) -> Array:
        return jax.nn.softmax(jax.vmap(model)(pixels), axis=-1)

    return np.asarray(softmax(model, jnp.asarray(images.pixels)))


def confusion(predicted: Int[np.ndarray, " image"], images: Images) -> Int[np.ndarray, "digit digit"]:
    """`[digit, predicted]`: how often each digit was taken for each other."""
    matrix = np.zeros((CLASSES, CLASSES), np.int64)
    np.add.at(matrix, (images.labels, predicted), 1)
    return matrix


def mistakes(probability: Float[np.ndarray, "image digit"], images: Images) -> list[Mistake]:
    """What the model got wrong, what it was surest of first."""
    predicted = probability.argmax(axis=-1)
    wrong = np.flatnonzero(predicted != images.labels)
    share = probability[wrong, predicted[wrong]]
    return [
        Mistake(images.pixels[place], int(images.labels[place]), int(predicted[place]), float(probability[place].max()))
        for place in wrong[np.argsort(-share, kind="stable")]
    ]
