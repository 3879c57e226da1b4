"""Roots of gates that have underflowed: their slope at zero is infinite, and no gradient is NaN for it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang

GATES = [
    "sigmoid(linear(x)) ^ (1 / 16)",
    "sqrt(sigmoid(linear(x)))",
    "sigmoid(linear(x)) ^ 1.5",
    "relu(linear(x)) ^ (sigmoid(rate))",
]


@pytest.mark.parametrize("gate", GATES)
def test_gradients_are_finite_and_those_of_the_limit(gate: str) -> None:
    rate = "rate = param(0.5)\n" if "rate" in gate else ""
    body = f"{rate}transition[key] = {gate}\nsource = 1\nread after\n"
    text = f"scan s(heads = 1, key = 2, value = 1) on chain(t = 3) {{\n{body}}}\n"
    op = stmlang.compile(text, dtype="float64", strategy="recurrent")
    q, k, v, gates = op.example(0)
    gates = {name: array if name == "rate" else jnp.full_like(array, -1000.0).at[0].set(0.3) for name, array in gates.items()}

    def total(gates: dict[str, jax.Array]) -> jax.Array:
        return jnp.sum(op(q, k, v, gates) ** 2)

    slopes = jax.jit(jax.grad(total))
    gradient = slopes(gates)
    # Where sigmoid is merely tiny, the slope is tiny too: that is the limit.
    near = {name: array if name == "rate" else jnp.maximum(array, -600.0) for name, array in gates.items()}
    curvature = jax.jit(lambda gates: jax.jvp(jax.grad(total), (gates,), (jax.tree.map(jnp.ones_like, gates),))[1])(gates)
    for name, array in slopes(near).items():
        np.testing.assert_allclose(gradient[name], array, atol=1e-12)
        assert np.isfinite(curvature[name]).all()
    np.testing.assert_allclose(op(q, k, v, gates), op.reference(q, k, v, gates), atol=1e-14)
