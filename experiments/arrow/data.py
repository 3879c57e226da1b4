"""What models are shown: batches to learn from, and scenes that they are judged on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Int32

from stmlang.experiments.arrow.drawing import CHANNELS, pixels, tokens
from stmlang.experiments.arrow.generation import Form, Geometry, Scenes, scenes
from stmlang.experiments.arrow.settings import Settings
from stmlang.experiments.training.source import Shuffled

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's channels, by which the paper normalizes images."""
VALIDATION, TEST = 100_042, 200_042
"""Seeds of scenes of the size of training; those of the larger ones are one more."""
FILLED = -1
"""The label of what fills up a batch."""

Examples = tuple[np.ndarray, Int32[np.ndarray, " example"]]
"""Grids of tokens `(example, rows, cols, 9)`, or images `(example, size, size)` of bytes; and 1 where the arrow points."""


@dataclass(frozen=True)
class Judged:
    """Scenes that models are judged on, of one size."""

    scenes: Scenes
    geometry: Geometry
    settings: Settings

    def batches(self) -> Iterator[Examples]:
        """All of them, the last batch filled up with what is labelled `FILLED`."""
        size = self.settings.training.batch
        for start in range(0, len(self.scenes), size):
            x, y = examples(self.scenes.take(slice(start, start + size)), self.geometry, self.settings)
            missing = size - len(y)
            filled = np.pad(x, [(0, missing), *((0, 0) for _ in x.shape[1:])])
            yield filled, np.pad(y, (0, missing), constant_values=FILLED)


def channels(settings: Settings) -> int:
    """Numbers that a token or a pixel has."""
    return CHANNELS if settings.cell else len(MEAN)


def examples(drawn: Scenes, geometry: Geometry, settings: Settings) -> Examples:
    """Scenes as models see them, and labels."""
    labels = drawn.pointing.astype(np.int32)
    if settings.cell:
        return tokens(drawn, geometry.size, settings.cell), labels
    return pixels(drawn, geometry.size), labels


def batches(form: Form, settings: Settings, seed: int) -> Shuffled:
    """Scenes to learn from, of a seed, in an order of each epoch's own. They are drawn as images when they are needed."""
    drawn = scenes(form, settings.geometry, seed, settings.images)

    def load(numbers: Any, generator: np.random.Generator) -> Examples:
        del generator
        return examples(drawn.take(numbers), settings.geometry, settings)

    return Shuffled(settings.images, settings.training.batch, seed, load)


def judged(form: Form, settings: Settings, seed: int, count: int) -> tuple[Judged, Judged]:
    """Scenes of the size of training, and of twice the size."""
    first = Judged(scenes(form, settings.geometry, seed, count), settings.geometry, settings)
    return first, Judged(scenes(form, settings.larger, seed + 1, count), settings.larger, settings)


def prepared(x: Array) -> Float[Array, "example rows cols channel"]:
    """What goes into a model: bytes of images as three normalized channels, tokens as they are."""
    if x.dtype != jnp.uint8:
        return x
    grey = x[..., None].astype(jnp.float32) / 255
    return (grey - jnp.asarray(MEAN)) / jnp.asarray(DEVIATION)


def loss(model: Any, batch: Any, key: Array) -> tuple[Array, dict[str, Array]]:
    """The mean cross entropy, and the share that is right."""
    del key
    x, y = batch
    logits = jax.vmap(model)(prepared(x))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)[:, 0]
    return -jnp.mean(chosen), {"accuracy": jnp.mean(jnp.argmax(logits, axis=1) == y, dtype=jnp.float32)}


@eqx.filter_jit
def _counts(model: Any, x: Array, y: Array) -> Int[Array, "2 2"]:
    predicted = jnp.argmax(jax.vmap(model)(prepared(x)), axis=1)
    return jnp.zeros((2, 2), jnp.int32).at[y, predicted].add((y != FILLED).astype(jnp.int32))


def confusion(model: Any, of: Judged) -> Int[np.ndarray, "label predicted"]:
    """How often each label was taken for each other."""
    total = np.zeros((2, 2), np.int64)
    for x, y in of.batches():
        total += np.asarray(_counts(model, jnp.asarray(x), jnp.asarray(y)))
    return total


def accuracy(matrix: Int[np.ndarray, "label predicted"]) -> float:
    """The share that was right."""
    return float(np.trace(matrix) / matrix.sum())


def measuring(sets: tuple[Judged, Judged]) -> Callable[[Any], dict[str, float]]:
    """The accuracy of a model at the size of training, and at twice the size."""
    return lambda model: {name: accuracy(confusion(model, of)) for name, of in zip(("accuracy", "larger"), sets, strict=True)}
