"""`clip` between bounds that are numbers or gates: its value, and the derivative by what it clips and by its bounds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang

BOUNDS = {
    "numbers": ("-0.25", "0.5"),
    "below by a gate": ("low", "0.5"),
    "above by a gate": ("-0.25", "high"),
    "both by gates": ("low", "high"),
}


def _scan(low: str, high: str) -> str:
    body = f"low = param(-0.3)\nhigh = param(0.3)\na = given(-1, 1)\ntransition = clip(a, {low}, {high}) + 0 * (low + high)\n"
    return f"scan s(heads = 2, key = 2, value = 1) on chain(t = 5) {{\n{body}source = 1\nread after\n}}\n"


@pytest.mark.parametrize("bounds", BOUNDS)
def test_clip_is_bounded_by_what_is_written(bounds: str) -> None:
    low, high = BOUNDS[bounds]
    op = stmlang.compile(_scan(low, high), dtype="float64", strategy="recurrent")
    q, k, v, gates = op.example(0)
    gates = {**gates, "low": jnp.asarray([-0.3, -0.2]), "high": jnp.asarray([0.3, 0.1])}

    def total(gates: dict[str, jax.Array]) -> jax.Array:
        return jnp.sum(op(q, k, v, gates) ** 2)

    np.testing.assert_allclose(op(q, k, v, gates), op.reference(q, k, v, gates), atol=1e-14)
    gradient = jax.grad(total)(gates)
    for name in ("low", "high"):
        assert (np.abs(gradient[name]).max() > 0) == (name in (low, high))
    change = jax.tree.map(lambda array: np.random.default_rng(1).standard_normal(array.shape), gates)
    wanted = (
        total(jax.tree.map(lambda a, b: a + 1e-6 * b, gates, change))
        - total(jax.tree.map(lambda a, b: a - 1e-6 * b, gates, change))
    ) / 2e-6
    along = sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), gradient, change)))
    np.testing.assert_allclose(along, wanted, rtol=1e-6)
