"""Compiling takes most of the time of numerical tests, so XLA leaves out its expensive passes there, save in slow sweeps and
where tests compile as users do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

COMPILE = "STMLANG_COMPILE"
AS_USERS = os.environ.get(COMPILE) == "users"
"""Whether every program is compiled as at a user's: with XLA's fusion emitters, and with all its passes."""


def _compiling(*, quickly: bool) -> Iterator[None]:
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", quickly)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """To be imported by the `conftest.py` of a folder whose tests compile much."""
    yield from _compiling(quickly=not AS_USERS and request.node.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True, scope="module")
def quick_modules() -> Iterator[None]:
    """To be imported beside it where fixtures for whole modules compile: those are set up before it."""
    yield from _compiling(quickly=not AS_USERS)
