"""Training in processes of its own: killed at any time it goes on to the bit; on four devices it learns as on one, also where
they are those of two processes, and on two when one of these was killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments.small_run import TRAINING, run

ROOT = Path(__file__).parents[2]
LONG = ("epochs=6",)
"""30 steps with a checkpoint after each, so that many kills come in the midst of writing."""


class Server:
    """Runs of `small_run` in processes that have imported all before they begin."""

    def __init__(self, cache: Path) -> None:
        environment = {**os.environ, **settings(cache)}
        words = [sys.executable, "-W", "ignore", "-m", "tests.experiments.small_run", "--serve"]
        self.process: Any = subprocess.Popen(
            words, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, out: Path, *changes: str, limit: float = 0.0) -> tuple[int, float]:
        """The exit status of a run and its processor time, killed once that reaches a limit unless it is 0."""
        self.process.stdin.write(" ".join([str(limit), str(out), *changes]) + "\n")
        self.process.stdin.flush()
        status, seconds = self.process.stdout.readline().split()
        return int(status), float(seconds)


def settings(cache: Path, devices: int = 1) -> dict[str, str]:
    """The environment of a process, with one cache for what is compiled."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(devices),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }


def outcome(out: Path) -> tuple[str, str]:
    """The digests of the parameters, and the log."""
    return (out / "digest.txt").read_text(), (out / "log.jsonl").read_text()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("most", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_goes_on_to_the_bit(most: int, tmp_path: Path) -> None:
    """Killed so often, run after run."""
    server, draw = Server(tmp_path / "cache"), random.Random(14)
    try:
        server.run(tmp_path / "first", *LONG)  # which compiles
        status, seconds = server.run(tmp_path / "whole", *LONG)
        assert status == 0
        kills, runs, halfway = 0, 0, 0
        while kills < most:
            out, runs = tmp_path / f"run-{runs}", runs + 1
            status = -signal.SIGKILL
            while status == -signal.SIGKILL:
                limit = draw.uniform(0.01, seconds) if kills < most else 0.0
                status, _ = server.run(out, *LONG, "resume=true", limit=limit)
                kills += status == -signal.SIGKILL
                halfway += status == -signal.SIGKILL and any((out / "checkpoints").glob("[0-9]*"))
            assert status == 0
            assert outcome(out) == outcome(tmp_path / "whole")
        assert halfway >= most // 4
    finally:
        server.process.stdin.close()
        server.process.wait(60)
        server.process.stdout.close()


def test_four_devices_learn_as_one(tmp_path: Path) -> None:
    logs: list[list[dict[str, Any]]] = []
    for devices in (1, 4):
        out = tmp_path / str(devices)
        words = [sys.executable, "-m", "tests.experiments.small_run", str(out), f"devices={devices}", "log=1", "checkpoint=1e9"]
        subprocess.run(words, cwd=ROOT, env={**os.environ, **settings(tmp_path / "cache", 4)}, check=True, timeout=500)
        logs.append([json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()])
    alone, shared = logs
    assert len(alone) == len(shared) == 15 + 4
    for record, other in zip(alone, shared, strict=True):
        assert record.keys() == other.keys()
        flat, beside = (line.get("validation", line) for line in (record, other))
        np.testing.assert_allclose(list(flat.values()), list(beside.values()), rtol=2e-5)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def what_is_left_says(out: Path, cache: Path, changes: dict[str, Any], ending: signal.Signals) -> tuple[int, str]:
    """The exit status of the first of two processes, and what it says, once the second one gets a signal amid a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f'coordinator="127.0.0.1:{free.getsockname()[1]}"'
    words = [*(f"{name}={value}" for name, value in changes.items()), "devices=4", "processes=2", place]
    command = [sys.executable, "-W", "ignore", "-m", "tests.experiments.small_run", str(out), *words]
    job = [
        subprocess.Popen(
            [*command, f"process={number}"],
            cwd=ROOT,
            env={**os.environ, **settings(cache, 2)},
            text=True,
            stderr=subprocess.PIPE,
        )
        for number in range(2)
    ]
    try:
        while not any((out / "checkpoints").glob("[3-9]")):
            assert job[0].poll() is None, job[0].communicate()[1]
            time.sleep(0.02)
        job[1].send_signal(ending)
        _, said = job[0].communicate(timeout=200)
    finally:
        for process in job:
            process.kill()
            process.communicate()
    return job[0].returncode, said


def test_a_process_that_waits_for_one_that_is_silent_says_so_and_ends(tmp_path: Path) -> None:
    """Its connections are open, so no computation fails."""
    status, said = what_is_left_says(tmp_path / "job", tmp_path / "cache", {"epochs": 1000}, signal.SIGSTOP)
    assert status == 1, said
    assert "another process of this job is gone, and this one stops: process 1 gave no sign of life" in said
    assert "--resume" in said


def test_a_job_that_loses_a_process_goes_on_with_fewer_devices(tmp_path: Path) -> None:
    """The process that is left says so and ends by itself; the order of data is that of a run on one device."""
    out, changes = tmp_path / "job", {"epochs": 20, "log": 1}
    status, said = what_is_left_says(out, tmp_path / "cache", changes, signal.SIGKILL)
    assert status == 1, said
    assert "another process of this job is gone, and this one stops" in said
    assert "--resume" in said
    before = len(records(out))
    assert before < 100
    run(replace(TRAINING, out=out, resume=True, devices=2, checkpoint=1e9, **changes))
    run(replace(TRAINING, out=tmp_path / "alone", checkpoint=1e9, **changes))
    for record, other in zip(records(out), records(tmp_path / "alone"), strict=True):
        assert record["step"] == other["step"]
        flat, beside = (line.get("validation", line) for line in (record, other))
        np.testing.assert_allclose(list(flat.values()), list(beside.values()), rtol=2e-4)
