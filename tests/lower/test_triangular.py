"""Triangular systems by blocks, against numpy's solver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.lower.triangular import propagated


@pytest.mark.parametrize("size", [1, 2, 31, 33, 97, 260])
def test_solution_and_gradient(size: int) -> None:
    rng = np.random.default_rng(size)
    passed = np.triu(rng.normal(size=(2, size, size)), 1) / size**0.5
    right, cotangent = rng.normal(size=(2, 2, size, 3))
    inverse = np.linalg.inv(np.eye(size) - passed.swapaxes(-1, -2))
    solution, pull = jax.vjp(propagated, jnp.asarray(passed), jnp.asarray(right))
    by_passed, by_right = pull(jnp.asarray(cotangent))
    pulled = inverse.swapaxes(-1, -2) @ cotangent
    np.testing.assert_allclose(solution, inverse @ right, rtol=0, atol=1e-11)
    np.testing.assert_allclose(by_right, pulled, rtol=0, atol=1e-11)
    expected = np.triu((inverse @ right) @ pulled.swapaxes(-1, -2), 1)
    np.testing.assert_allclose(np.triu(by_passed, 1), expected, rtol=0, atol=1e-11)
