"""What all tests share."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from stmlang.xla_flags import hasten
from tests.helpers.compilation import AS_USERS, COMPILE

# Before JAX is imported: no result may depend on whether it computes in 64 bits, and comparisons want to.
os.environ.setdefault("JAX_ENABLE_X64", "1")
# Eight devices on every machine, so that what is spread over devices can be tested in the process; all else runs on the first.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
# No plan may depend on what was measured on this machine before: there is no such folder.
os.environ["STMLANG_CACHE"] = str(Path(tempfile.gettempdir()) / f"stmlang-tests-{os.getpid()}")
# How long an example takes is no property of it: on a busy machine any of them is late once.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
# Most tests compile a program and run it once. `make test-as-users` has a part of them run what users run.
if not AS_USERS:
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
    parser.addoption("--part", metavar="K/N", help="of the tests chosen, only those of part K of N")
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs anew instead of comparing")


def pytest_report_header() -> str | None:
    return f"{COMPILE}=users: XLA compiles with its fusion emitters and all optimizations" if AS_USERS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test's part depends on its name alone: other tests that come or go do not move it."""
    if config.getoption("--part"):
        part, parts = map(int, config.getoption("--part").split("/"))
        assert 1 <= part <= parts, "--part takes K/N with K from 1 to N"
        chosen = [item for item in items if crc32(item.nodeid.encode()) % parts == part - 1]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def pytest_collection_finish() -> None:
    """The modules and thousands of tests that are loaded now stay to the end: the collector, which tracing sets off often, need
    not look at them each time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected outputs are to be written instead of compared with."""
    return bool(request.config.getoption("--update-golden"))
