"""Two processes on loopback, by `jax.distributed`: a scan shared along its nodes, and a step of training."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_scan_and_a_step_are_those_of_one_device() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1", "JAX_ENABLE_X64": "0"}
    command = [sys.executable, "-W", "ignore", "-m", "tests.runtime.two_processes"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    job = [
        subprocess.Popen([*command, str(number), port], cwd=ROOT, env=environment, text=True, **pipes) for number in range(2)
    ]
    try:
        said = [process.communicate(timeout=400) for process in job]
    finally:
        for process in job:
            process.kill()
    for process, (out, err) in zip(job, said, strict=True):
        assert process.returncode == 0, err
        errors = out.splitlines()[-1].split()  # Gloo says that it is connected before
        assert all(float(error) < 1e-5 for error in errors), out
