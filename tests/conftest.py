"""What all tests share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stmlang.xla_flags import hasten

# Before JAX is imported: no result may depend on whether it computes in 64 bits, and comparisons want to.
os.environ.setdefault("JAX_ENABLE_X64", "1")
# Two devices on every machine, so that what is spread over devices can be tested in the process; all else runs on the first.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")
# No plan may depend on what was measured on this machine before: there is no such folder.
os.environ["STMLANG_CACHE"] = str(Path(tempfile.gettempdir()) / f"stmlang-tests-{os.getpid()}")
# Most tests compile a program and run it once. XLA_FLAGS=--xla_cpu_use_fusion_emitters=true has them run what users run.
hasten()

MAPPINGS = 20_000
"""Mappings of memory at which compiled programs are dropped. Each takes about a dozen, Linux allows a process 65,530, and XLA
aborts it where there are no more."""


@pytest.fixture(autouse=True, scope="module")
def programs_of_other_modules() -> Iterator[None]:
    """Drops compiled programs between modules, once there are many of them."""
    yield
    mappings = Path("/proc/self/maps")
    if mappings.exists() and mappings.read_bytes().count(b"\n") > MAPPINGS:
        import jax

        jax.clear_caches()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs anew instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected outputs are to be written instead of compared with."""
    return bool(request.config.getoption("--update-golden"))
