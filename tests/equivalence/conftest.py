"""Strategies are compared in double precision.

Compiling takes most of the time, so XLA leaves out its expensive passes here; the slow sweeps run with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def _quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    jax.config.update("jax_disable_most_optimizations", request.node.get_closest_marker("slow") is None)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
