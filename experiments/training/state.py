"""Where training is, as arrays, and the step that leads to the next state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int32

from stmlang.experiments.training.settings import Training
from stmlang.experiments.training.trees import copied

Loss = Callable[[Any, Any, Array], tuple[Float[Array, ""], Mapping[str, Float[Array, ""]]]]
"""`loss(model, batch, key)`: what falls, a mean over the examples of the batch, and further measures of it by name."""

NEVER = -1


class State(NamedTuple):
    """A pytree: parameters, what the optimizer remembers, the moving average of the parameters and the best ones so far (None
    where there are none), the steps behind it, and the first step whose loss or gradient was not finite, `NEVER` if all were.
    After such a step nothing changes any more, so that the parameters that led to it are still there."""

    learned: Any
    optimizer: Any
    average: Any
    best: Any
    step: Int32[Array, ""]
    bad: Int32[Array, ""]

    @property
    def judged(self) -> Any:
        """The parameters that are validated and kept."""
        return self.learned if self.average is None else self.average


def split(model: Any) -> tuple[Any, Any]:
    """What of a model is learned, and the rest."""
    return cast(tuple[Any, Any], eqx.partition(model, eqx.is_inexact_array))


def beginning(learned: Any, optimizer: optax.GradientTransformation, training: Training, *, best: bool) -> State:
    """The state before the first step; `best` says whether the best parameters will be kept. No array is shared."""
    copies = [copied(learned) for _ in range(3)]
    average, kept = copies[1] if training.average else None, copies[2] if best else None
    state = optimizer.init(cast(optax.Params, copies[0]))
    return State(copies[0], state, average, kept, jnp.asarray(0, jnp.int32), jnp.asarray(NEVER, jnp.int32))


def step_key(key: Array, step: Any) -> Array:
    """The random key of a step, from that of the run."""
    return jax.random.fold_in(key, step)


def stepper(loss: Loss, fixed: Any, optimizer: optax.GradientTransformation, training: Training) -> Callable[..., Any]:
    """A compiled function from a state, a batch and the run's key to the next state and the measures of the batch, `loss` among
    them. The old state's arrays are given up. The program is the same for every seed: a cache of programs has it."""

    def step(state: State, batch: Any, key: Array) -> tuple[State, dict[str, Array]]:
        def of(learned: Any) -> tuple[Array, Mapping[str, Array]]:
            return loss(eqx.combine(learned, fixed), batch, step_key(key, state.step))

        (value, measures), gradient = cast(Any, jax.value_and_grad(of, has_aux=True)(state.learned))
        finite = jnp.isfinite(value) & jnp.isfinite(optax.tree.norm(gradient))
        updates, behind = optimizer.update(gradient, state.optimizer, cast(optax.Params, state.learned))
        learned = cast(Any, eqx.apply_updates(state.learned, updates))
        average = None if state.average is None else averaged(state.average, learned, training.average, state.step)
        bad = jnp.where((state.bad == NEVER) & ~finite, state.step, state.bad)

        def advanced(new: Array, old: Array) -> Array:
            return jnp.where(bad == NEVER, new, old)

        before = (state.learned, state.optimizer, state.average)
        learned, behind, average = jax.tree.map(advanced, (learned, behind, average), before)
        return State(learned, behind, average, state.best, state.step + 1, bad), {"loss": value, **measures}

    return cast(Callable[..., Any], jax.jit(step, donate_argnums=0))


def averaged(average: Any, learned: Any, decay: float, step: Any) -> Any:
    """The moving average after a step: `d a + (1 - d) x` with `d = min(decay, (1 + step) / (10 + step))`, so that the first
    parameters are soon forgotten."""
    share = jnp.minimum(decay, (1.0 + step) / (10.0 + step))

    def moved(old: Array, new: Array) -> Array:
        return (share * old + (1 - share) * new).astype(old.dtype)

    return jax.tree.map(moved, average, learned)


def parameters(model: Any) -> int:
    """How many numbers a model learns."""
    return sum(array.size for array in jax.tree.leaves(split(model)[0]))


def digest(model: Any) -> str:
    """SHA-256 of the parameters, in order."""
    state = hashlib.sha256()
    for array in jax.tree.leaves(split(model)[0]):
        state.update(np.asarray(array).tobytes())
    return state.hexdigest()
