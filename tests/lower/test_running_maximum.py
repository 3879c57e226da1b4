"""The scale of a normalized chain, carried along by doubling, is what its recurrence says."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.program.log_stabilizer import running_maximum
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 12, 16, 33])
@pytest.mark.parametrize("start", [0.5, -np.inf])
def test_doubling_follows_the_recurrence(length: int, start: float) -> None:
    random = np.random.default_rng(length)
    through, added = random.normal(size=(2, 3, length)).astype(np.float32)
    through[random.random(through.shape) < 0.3] = -np.inf  # gates of exactly zero
    added[random.random(added.shape) < 0.5] = -np.inf
    expected, m = np.empty_like(added), np.full(3, start, np.float32)
    for t in range(length):
        m = np.maximum(through[:, t] + m, added[:, t])
        expected[:, t] = m
    found = running_maximum(jnp.asarray(through), jnp.asarray(added), jnp.full(3, start, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
