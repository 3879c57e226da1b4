"""Compiling takes most of the time of numerical tests, so XLA leaves out its expensive passes there, save in slow sweeps."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """To be imported by the `conftest.py` of a folder whose tests compile much."""
    jax.config.update("jax_disable_most_optimizations", request.node.get_closest_marker("slow") is None)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
