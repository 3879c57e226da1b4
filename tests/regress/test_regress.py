"""What was found once stays right: every pair of files here is a finding of `stmlang fuzz`, or of before it, replayed.

To add one, fix the fault and move NAME.stm and NAME.npz here from where `stmlang fuzz` saved them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stmlang.fuzz.jobs import replaying
from stmlang.fuzz.saved import load
from stmlang.fuzz.worker import Worker

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker(300.0)
    yield found
    found.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_past_finding(name: str, worker: Worker) -> None:
    job = replaying(load(FOLDER / f"{name}.npz"))
    assert worker.ask(job).kind == "passed"


def test_every_finding_is_a_pair() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.stm")) == NAMES
    assert NAMES
