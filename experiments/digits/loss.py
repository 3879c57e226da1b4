"""What the classifier learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from stmlang.experiments.digits.data import CLASSES
from stmlang.models.vision.model import ImageModel


def smoothed(smoothing: float) -> Callable[[ImageModel, Any, Array], tuple[Array, dict[str, Array]]]:
    """The mean cross entropy against labels of which a share is spread over all classes, and the share of images that are
    right. A batch is `(pixels, labels)`."""

    def loss(model: ImageModel, batch: Any, key: Array) -> tuple[Array, dict[str, Array]]:
        del key
        pixels, labels = batch
        logits = jax.vmap(model)(pixels)
        targets = optax.smooth_labels(jax.nn.one_hot(labels, CLASSES), smoothing)
        right = jnp.mean(jnp.argmax(logits, axis=-1) == labels, dtype=jnp.float32)
        return jnp.mean(optax.softmax_cross_entropy(logits, targets)), {"accuracy": right}

    return loss
