"""Running commands in processes of their own, and stopping them."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

STATUS = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
    signal.SIGHUP: (129, "the terminal was closed"),
}

TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@dataclass(frozen=True)
class Stopped:
    """How a process ended, what it said, and how long that took after it was told."""

    status: int
    out: str
    err: str
    seconds: float


def stopped(words: list[str], number: signal.Signals, delay: float, folder: Path, ready: bool = False) -> Stopped:
    """A process, told to stop after some seconds; with `ready`, once it has printed a line. Nothing of it runs on."""
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    first = ""
    if ready:
        assert process.stdout is not None
        first = process.stdout.readline()
    time.sleep(delay)
    begin = time.monotonic()
    if process.poll() is None:
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)  # Ctrl-C goes to children too
    out, err = process.communicate(timeout=60)
    assert not living(process.pid)
    return Stopped(process.returncode, first + out, err, time.monotonic() - begin)


def hung_up(words: list[str], delay: float, folder: Path) -> int:
    """The exit status of a process whose terminal is closed after some seconds."""
    master, slave = pty.openpty()
    begin = [sys.executable, "-c", TAKE_TERMINAL, *words]
    process = subprocess.Popen(begin, cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    time.sleep(delay)
    os.close(master)
    status = process.wait(timeout=60)
    assert not living(process.pid)
    return status


def living(session: int) -> list[str]:
    """The commands of a session that still run, a moment later."""
    for _ in range(50):
        found = [words for number in os.listdir("/proc") if number.isdigit() and (words := _of(number, session))]
        if not found:
            return []
        time.sleep(0.1)
    return found


def _of(number: str, session: int) -> str:
    try:
        state, _, _, group = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[:4]
        return Path(f"/proc/{number}/cmdline").read_text() if int(group) == session and state != "Z" else ""
    except OSError:
        return ""
