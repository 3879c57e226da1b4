"""Strategies are compared in double precision, while JAX refuses what it would else broadcast or convert without a word."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True)
def nothing_implied() -> Iterator[None]:
    """Every strategy, every case: value and gradient where arrays of unequal rank or of different types may not meet."""
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield
