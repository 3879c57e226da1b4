"""Writing on behind a prompt, token by token."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from stmlang.models.sequence.language import LanguageModel
from stmlang.nn.errors import require_key, require_size
from stmlang.runtime.signature import call_error


def generate(
    model: LanguageModel,
    prompt: Int[Array, " time"],
    count: int,
    *,
    temperature: float = 1.0,
    key: PRNGKeyArray,
) -> Int[Array, " count"]:
    """So many tokens behind a prompt of at least one, each drawn from softmax(logits / temperature); with a temperature of 0
    the likeliest is taken. The prompt is read at once, and a step costs what it costs, however long the text is.

    To be compiled as a whole: `eqx.filter_jit(generate)(model, prompt, 200, key=key)`. Raises SpecError (STM5208) for a `count`
    or `temperature` below zero, STM5201 for an empty prompt.
    """
    count, key = require_size("count", count, 0), require_key(key)
    if not temperature >= 0:
        raise call_error("STM5208", f"`temperature` must be a number from 0 on, not {temperature!r:.80}")
    if prompt.ndim != 1 or prompt.shape[0] == 0:
        raise call_error("STM5201", f"`prompt` must have the shape (time,), with a token at least, not {prompt.shape}")
    logits, state = model.prefill(model.init_state(), prompt)
    return written(model, state, logits[-1], count, temperature=temperature, key=key)[0]


def written(
    model: LanguageModel,
    state: Any,
    logits: Float[Array, " vocabulary"],
    count: int,
    *,
    temperature: float,
    key: PRNGKeyArray,
) -> tuple[Int[Array, " count"], Any]:
    """So many tokens behind those that a state has seen, and the state behind them; `logits` are those behind the last."""

    def step(carry: tuple[Any, Array], own: PRNGKeyArray) -> tuple[tuple[Any, Array], Array]:
        state, logits = carry
        token = drawn(logits, temperature, own)
        logits, state = model.step(state, token)
        return (state, logits), token

    (state, _), tokens = jax.lax.scan(step, (state, logits), jax.random.split(key, count))
    return tokens, state


def drawn(logits: Float[Array, " vocabulary"], temperature: float, key: PRNGKeyArray) -> Int[Array, ""]:
    """A token, by its logits."""
    if temperature == 0:
        return jnp.argmax(logits).astype(jnp.int32)
    return jax.random.categorical(key, logits / temperature).astype(jnp.int32)
