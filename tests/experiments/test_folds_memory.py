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
found = []
for _ in range(16):
    before = faults()
    step(x).block_until_ready()
    found.append(faults() - before)
print(min(found))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is what is asked")
def test_large_blocks_are_not_cleared_anew() -> None:
    """A program takes three of 16 MB: four thousand pages each, which are cleared each time if they go back to the system. How
    many steps it takes until there are holes for all of them depends on what else is allocated."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
