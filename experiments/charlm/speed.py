"""How fast a model writes on behind a text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from stmlang.models.sequence import LanguageModel
from stmlang.models.sequence.generate import written

PIECE = 512
"""Characters of a text that are read at once."""
REPEATS = 10


@dataclass(frozen=True)
class Speed:
    """Characters a second behind a context of so many, the fastest of `REPEATS`, one sequence at a time."""

    context: int
    rate: float


@eqx.filter_jit
def _read(model: LanguageModel, state: Any, tokens: Array) -> tuple[Array, Any]:
    logits, state = model.prefill(state, tokens)
    return logits[-1], state


@eqx.filter_jit
def _write(model: LanguageModel, state: Any, logits: Array, count: int) -> Array:
    return written(model, state, logits, count, temperature=0.0, key=jax.random.key(0))[0]


def prefilled(model: LanguageModel, tokens: Int[Array, " time"]) -> tuple[Float[Array, " vocabulary"], Any]:
    """The logits behind a text of at least one token and the state behind it, read piece by piece: attention over a whole text
    would keep a number for each pair of its tokens."""
    state, logits = model.init_state(), jnp.zeros(model.vocabulary)
    for start in range(0, len(tokens), PIECE):
        logits, state = _read(model, state, tokens[start : start + PIECE])
    return logits, state


def measured(model: LanguageModel, tokens: Int[Array, " time"], count: int) -> Speed:
    """How fast a model writes `count` characters behind this text."""
    logits, state = prefilled(model, tokens)
    jax.block_until_ready(_write(model, state, logits, count))  # compiled
    seconds: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(_write(model, state, logits, count))
        seconds.append(time.perf_counter() - start)
    return Speed(len(tokens), count / min(seconds))
