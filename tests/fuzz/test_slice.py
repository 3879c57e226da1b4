"""A slice of `make fuzz`: the same examples every time, of every strategy and with every kind of check.

Parts, so that processes can share them. What one finds is saved in the folder that its failure names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stmlang.fuzz.fuzzer import TOGETHER, Fuzzer, Source, Task, generated, strategy_names
from stmlang.fuzz.jobs import matrix
from stmlang.fuzz.worker import Worker
from stmlang.strategies.registry import without_kernels

LEAST = len(without_kernels()) // 3
"""Strategies that are tried at least, whatever the seed: a batch takes up another one after `TOGETHER` examples at most."""
EXAMPLES = TOGETHER * LEAST


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_the_matrix_finds_nothing(seed: int, tmp_path: Path) -> None:
    task = Task(Source(generated().trials), seed, strategy_names(), tuple(matrix()))
    fuzzer, worker = Fuzzer(task, tmp_path, EXAMPLES, None), Worker(300.0)
    try:
        for _ in fuzzer.run([worker]):
            pass
    finally:
        worker.close()
    found = [f"{kept.saved.finding} saved as {kept.path}" for kept in fuzzer.kept.values()]
    assert not found, "\n".join(found)
    assert fuzzer.counts.total == EXAMPLES
    assert len(fuzzer.counts.by(1)) >= LEAST
