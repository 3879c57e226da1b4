"""The scale of a normalized chain, carried along by doubling, is what its recurrence says, and so are its derivatives."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from stmlang.lower.running_maximum import running_maximum
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]


def rows(length: int) -> tuple[Any, Any]:
    """Logarithms, those of gates of exactly zero among them, and equal ones."""
    random = np.random.default_rng(length)
    through, added = random.normal(size=(2, 3, length)).astype(np.float32)
    through[random.random(through.shape) < 0.3] = -np.inf
    added[random.random(added.shape) < 0.5] = -np.inf
    if length > 4:
        through[:, 4], added[:, 4], added[:, 3] = 0.0, added[:, 2], added[:, 2]
    return through, added


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 12, 16, 33])
@pytest.mark.parametrize("start", [0.5, -np.inf])
def test_doubling_follows_the_recurrence(length: int, start: float) -> None:
    through, added = rows(length)
    expected, m = np.empty_like(added), np.full(3, start, np.float32)
    for t in range(length):
        m = np.maximum(through[:, t] + m, added[:, t])
        expected[:, t] = m
    passed, largest = running_maximum(jnp.asarray(through), jnp.asarray(added))
    np.testing.assert_allclose(np.maximum(passed + start, largest), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 33])
def test_its_derivative_is_that_of_the_largest_term(length: int) -> None:
    """The Jacobian, both ways, beside a loop that remembers which term is the largest, the earlier one among equals."""
    through, added = rows(length)
    by_through, by_added = np.zeros((2, 3, length, length), np.float32)
    for lane in range(3):
        m, place = -np.inf, 0
        for t in range(length):
            handed = through[lane, t] + m
            m, place = (handed, place) if t > 0 and handed >= added[lane, t] else (added[lane, t], t)
            by_added[lane, t, place] = 1
            by_through[lane, t, place + 1 : t + 1] = 1

    def largest(through: Array, added: Array) -> Array:
        return running_maximum(through, added)[1]

    for derivative in (jax.jacfwd, jax.jacrev):
        jacobians = jax.vmap(derivative(largest, (0, 1)))(jnp.asarray(through), jnp.asarray(added))
        for jacobian, expected in zip(jacobians, (by_through, by_added), strict=True):
            np.testing.assert_allclose(jacobian, expected, atol=1e-6)


def test_what_passes_from_the_start_has_its_own_derivative() -> None:
    def passed(through: Array) -> Array:
        return running_maximum(through, jnp.full(5, -jnp.inf))[0]

    through = jnp.asarray([0.5, -1.0, 2.0, 0.25, -3.0])
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(derivative(passed)(through), np.tri(5))
