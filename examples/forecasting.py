"""Forecasting: the next value of a noisy series, whole series in training and one value at a time in use.

    python examples/forecasting.py

A series is three waves of unknown periods and noise. The model reads a value and says the next one. Afterwards it runs on a
stream: a step takes the last value and a state of fixed size, and says what the whole pass would say.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stmlang

TIME, NOISE = 256, 0.1


class Forecaster(eqx.Module):
    """A map in, two layers, a map out to the change of the series."""

    inward: eqx.nn.Linear
    layers: list[stmlang.nn.ScanLayer]
    outward: eqx.nn.Linear

    def __init__(self, dim: int, key: jax.Array) -> None:
        inward, outward, *own = jax.random.split(key, 4)
        op = stmlang.compile("std:chain/gla", heads=4, key=8, value=8)
        self.inward, self.outward = eqx.nn.Linear(2, dim, key=inward), eqx.nn.Linear(dim, 1, key=outward)
        self.layers = [stmlang.nn.ScanLayer(op, dim, key=each) for each in own]

    def __call__(self, series: jax.Array) -> jax.Array:
        """The series in, the forecast of the value behind each."""
        change = jnp.diff(series, prepend=series[:1])
        x = jax.vmap(self.inward)(jnp.stack([series, change], axis=-1))
        for layer in self.layers:
            x = x + layer(x)
        return series + jax.vmap(self.outward)(x)[:, 0]

    def init_state(self) -> tuple[Any, ...]:
        return (jnp.nan, *(layer.init_state() for layer in self.layers))

    def step(self, state: tuple[Any, ...], value: jax.Array) -> tuple[jax.Array, tuple[Any, ...]]:
        """The forecast behind one value, and the state behind it."""
        before, *states = state
        x = self.inward(jnp.stack([value, jnp.where(jnp.isnan(before), 0.0, value - before)]))
        moved: tuple[Any, ...] = ()
        for layer, own in zip(self.layers, states, strict=True):
            y, after = layer.step(own, x)
            x, moved = x + y, (*moved, after)
        return value + self.outward(x)[0], (value, *moved)


def series(count: int, generator: np.random.Generator) -> np.ndarray:  # waves with periods of 8 to 64, and noise
    rate = 2 * np.pi / generator.uniform(8, 64, (count, 3, 1))
    phase, size = generator.uniform(0, 2 * np.pi, (count, 3, 1)), generator.uniform(0.3, 1, (count, 3, 1))
    waves = (size * np.sin(rate * np.arange(TIME + 1) + phase)).sum(1)
    return (waves + NOISE * generator.standard_normal(waves.shape)).astype(np.float32)


@eqx.filter_jit
def step(model: Forecaster, state: optax.OptState, values: jax.Array) -> tuple[Forecaster, optax.OptState, jax.Array]:
    value, slope = eqx.filter_value_and_grad(error)(model, values)
    updates, state = OPTIMIZER.update(slope, state, eqx.filter(model, eqx.is_inexact_array))
    return eqx.apply_updates(model, updates), state, value


def error(model: Forecaster, values: jax.Array) -> jax.Array:
    return jnp.mean((jax.vmap(model)(values[:, :-1]) - values[:, 1:]) ** 2)


OPTIMIZER = optax.adamw(3e-3)


def main(steps: int = 400) -> tuple[float, float]:
    """Train, print, and return the error of the forecasts beside that of taking the last value for the next."""
    generator = np.random.default_rng(0)
    model = Forecaster(32, jax.random.key(0))
    state = OPTIMIZER.init(eqx.filter(model, eqx.is_inexact_array))
    for number in range(steps):
        model, state, value = step(model, state, series(16, generator))
        if number % 100 == 0:
            print(f"step {number}: squared error {value:.4f}")
    test = series(64, generator)
    reached, naive = float(error(model, test)), float(np.mean(np.diff(test) ** 2))
    whole = model(test[0, :-1])
    streamed = jax.lax.scan(lambda state, value: model.step(state, value)[::-1], model.init_state(), test[0, :-1])[1]
    print(f"squared error {reached:.4f}; the last value for the next {naive:.4f}; the noise alone {NOISE**2:.4f}")
    print(f"one value at a time differs from the whole pass by at most {jnp.abs(streamed - whole).max():.1e}")
    return reached, naive


if __name__ == "__main__":
    main()
