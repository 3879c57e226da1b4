"""Memory that a study's process keeps."""

from __future__ import annotations

import subprocess
import sys

import pytest

KEPT = """
import resource
import numpy as np
from stmlang.experiments.folds.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

assert keep_freed_memory()
np.ones(2**24)
before = faults()
for _ in range(4):
    np.ones(2**24)
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is what is asked")
def test_large_blocks_are_not_cleared_anew() -> None:
    """Of 128 MB each: as many pages as a few of them have would be cleared if they went back to the system."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
