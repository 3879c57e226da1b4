"""The flag that keeps jaxlib's faults on CPUs away is set where it is needed, and only there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stmlang import xla_flags


@pytest.mark.parametrize(
    ("needed", "before", "after"),
    [
        (True, "", xla_flags.FLAG),
        (True, "--xla_foo=1", f"--xla_foo=1 {xla_flags.FLAG}"),
        (True, f"{xla_flags.FLAG}dot", f"{xla_flags.FLAG}dot"),
        (False, "--xla_foo=1", "--xla_foo=1"),
    ],
)
def test_flags(monkeypatch: pytest.MonkeyPatch, needed: bool, before: str, after: str) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    monkeypatch.setattr(xla_flags, "affected", lambda: needed)
    xla_flags.guard()
    assert os.environ["XLA_FLAGS"] == after


def test_importing_stmlang_is_enough_for_a_right_sum() -> None:
    """A matrix-vector product under vmap, squared and summed: wrong in the last row on jaxlib 0.10.2 without the flag."""
    script = """
import stmlang, jax, jax.numpy as jnp
i = jnp.arange(32769, dtype=jnp.float32)
x, m = jnp.stack((i, 0 * i, 0 * i), 1), jnp.eye(3)
f = lambda x: jax.vmap(lambda row: jnp.sum((m @ row) ** 2))(x)
assert jax.jit(f)(x)[-1] == f(x)[-1] == 32768.0**2
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_ENABLE_X64")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
