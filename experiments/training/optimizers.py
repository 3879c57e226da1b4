"""Optimizers and schedules from settings, by optax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import optax

from stmlang.experiments.training.settings import Training

Decays = Callable[[tuple[Any, ...], Any], bool]
"""Whether weight decay is for a leaf of the model, by its path and its array."""


def matrices(path: tuple[Any, ...], _: Any) -> bool:
    """Leaves that are called `weight` or `out`: the matrices of this library's layers and of Equinox's, stacked or not."""
    return any(getattr(entry, "name", "") in ("weight", "out") for entry in path)


def schedule(training: Training, steps: int) -> optax.Schedule:
    """The learning rate by step, of so many."""
    warmup = min(round(training.warmup * steps), steps - 1)
    end, falling = training.rate * training.floor, steps - warmup
    match training.schedule:
        case "cosine":
            after = optax.cosine_decay_schedule(training.rate, falling, training.floor)
        case "linear":
            after = optax.linear_schedule(training.rate, end, falling)
        case "constant":
            after = optax.constant_schedule(training.rate)
    if warmup == 0:
        return after
    return optax.join_schedules([optax.linear_schedule(0.0, training.rate, warmup), after], [warmup])


def optimizer(training: Training, steps: int, learned: Any, decays: Decays) -> optax.GradientTransformation:
    """The optimizer of a run of so many steps on these parameters, behind a cut of the gradient's norm."""
    rate, decay = schedule(training, steps), training.weight_decay
    mask: Any = jax.tree_util.tree_map_with_path(decays, learned)
    match training.optimizer:
        case "adamw":
            chosen = optax.adamw(rate, b1=training.b1, b2=training.b2, weight_decay=decay, mask=mask)
        case "adam":
            chosen = optax.adam(rate, b1=training.b1, b2=training.b2)
        case "lamb":
            chosen = lamb(rate, training, mask)
        case "lion":
            chosen = optax.lion(rate, b1=training.b1, b2=training.b2, weight_decay=decay, mask=mask)
        case "sgd":
            chosen = optax.sgd(rate, momentum=training.b1 or None, nesterov=training.b1 > 0)
    return optax.chain(optax.clip_by_global_norm(training.clip), chosen) if training.clip else chosen


def lamb(rate: optax.Schedule, training: Training, mask: Any) -> optax.GradientTransformation:
    """LAMB (You et al., 2020) as the authors of pLSTM use it: what does not decay has no trust ratio either, and takes a step
    of Adam. `optax.lamb` gives every leaf one, and so small biases small steps."""
    return optax.chain(
        optax.scale_by_adam(training.b1, training.b2),
        optax.add_decayed_weights(training.weight_decay, mask),
        optax.masked(optax.scale_by_trust_ratio(), mask),
        optax.scale_by_learning_rate(rate),
    )
