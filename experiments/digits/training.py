"""Training the classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from stmlang.experiments.digits.data import CLASSES, Images, batches
from stmlang.experiments.digits.settings import Settings
from stmlang.models.vision.plstm import PLSTM


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training images came to: mean loss, and accuracy on the images as they were shown."""

    loss: float
    accuracy: float


def train(model: PLSTM, images: Images, settings: Settings, report: Callable[[int, Epoch], None]) -> tuple[PLSTM, list[Epoch]]:
    """The trained model and its learning curve. Same settings, same machine: same bits."""
    learned = cast(PLSTM, eqx.filter(model, eqx.is_inexact_array))
    fixed = cast(PLSTM, eqx.filter(model, eqx.is_inexact_array, inverse=True))
    optimizer = _optimizer(settings, len(images) // settings.batch, learned)
    state: Any = optimizer.init(cast(optax.Params, learned))

    @jax.jit
    def step(learned: PLSTM, state: Any, pixels: Any, labels: Any) -> tuple[PLSTM, Any, Array, Array]:
        def loss(learned: PLSTM) -> tuple[Array, Array]:
            return _loss(eqx.combine(learned, fixed), pixels, labels, settings.smoothing)

        (value, right), gradient = jax.value_and_grad(loss, has_aux=True)(learned)
        updates, state = optimizer.update(gradient, state, cast(optax.Params, learned))
        return cast(PLSTM, eqx.apply_updates(learned, updates)), state, value, right

    generator = np.random.default_rng(settings.seed)
    curve: list[Epoch] = []
    for number in range(settings.epochs):
        steps: list[tuple[Array, Array]] = []
        for batch in batches(images, settings.batch, settings.shift, generator):
            done = cast(tuple[PLSTM, Any, Array, Array], step(learned, state, batch.pixels, batch.labels))
            learned, state = done[:2]
            steps.append(done[2:])
        loss, accuracy = np.asarray(steps).mean(axis=0)
        curve.append(Epoch(float(loss), float(accuracy)))
        report(number + 1, curve[-1])
    return eqx.combine(learned, fixed), curve


def _loss(
    model: PLSTM, pixels: Float[Array, "batch 8 8 1"], labels: Int[Array, " batch"], smoothing: float
) -> tuple[Array, Array]:
    """Mean cross entropy against smoothed labels, and the share of images that are right."""
    logits = jax.vmap(model)(pixels)
    targets = optax.smooth_labels(jax.nn.one_hot(labels, CLASSES), smoothing)
    right = jnp.mean(jnp.argmax(logits, axis=-1) == labels, dtype=jnp.float32)
    return jnp.mean(optax.softmax_cross_entropy(logits, targets)), right


def _optimizer(settings: Settings, steps_an_epoch: int, learned: PLSTM) -> optax.GradientTransformation:
    """AdamW on matrices, Adam on biases and scales; gradients clipped to norm one; warm-up and a cosine."""
    steps = settings.epochs * steps_an_epoch
    rate = optax.warmup_cosine_decay_schedule(0.0, settings.rate, steps // 10, steps, settings.rate / 100)

    def decays(path: tuple[Any, ...], _: Array) -> bool:
        return any(getattr(entry, "name", "") in ("weight", "out") for entry in path)

    mask = jax.tree_util.tree_map_with_path(decays, learned)
    return optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(rate, b2=0.99, weight_decay=settings.weight_decay, mask=mask),
    )
