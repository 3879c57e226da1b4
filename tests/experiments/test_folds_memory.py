"""Memory that a study's process keeps."""

from __future__ import annotations

import subprocess
import sys

import pytest

KEPT = """
import resource
from stmlang.experiments.folds.memory import keep_freed_memory

assert keep_freed_memory()

import jax
import jax.numpy as jnp

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

@jax.jit
def step(x):
    return jnp.sum(jnp.tanh(jnp.outer(x, x) @ jnp.outer(x, 1 + x)))

x = jnp.ones(2048)
for _ in range(12):  # blocks of other sizes come in between, until there are holes for all
    step(x).block_until_ready()
before = faults()
for _ in range(4):
    step(x).block_until_ready()
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is what is asked")
def test_large_blocks_are_not_cleared_anew() -> None:
    """A program takes three of 16 MB: four thousand pages each, which would be cleared if they had gone back to the system."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
