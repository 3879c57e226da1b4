"""Compiling takes most of the time of numerical tests, so XLA leaves out its expensive passes there, save in slow sweeps and
where tests compile as users do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

COMPILE = "STMLANG_COMPILE"
AS_USERS = os.environ.get(COMPILE) == "users"
"""Whether every program is compiled as at a user's: with XLA's fusion emitters, and with all its passes."""


@pytest.fixture(autouse=True)
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """To be imported by the `conftest.py` of a folder whose tests compile much."""
    import jax

    quick = not AS_USERS and request.node.get_closest_marker("slow") is None
    jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
