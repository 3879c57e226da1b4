"""Running commands in processes of their own, and stopping them."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@contextmanager
def session(words: list[str], folder: Path, **streams: Any) -> Generator[subprocess.Popen[str]]:
    """A process in a session of its own, of which nothing is left behind the block. It hears signals even where who runs the
    tests has them ignored, as `nohup` and a shell's `&` do: what is ignored is inherited."""
    ignored = [number for number in STATUS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        process = subprocess.Popen([sys.executable, *words], cwd=folder, text=True, start_new_session=True, **streams)
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
    try:
        yield process
        assert not living(process.pid)
    finally:
        if process.poll() is None or living(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stopped(words: list[str], number: signal.Signals, delay: float, folder: Path, ready: bool = False) -> Stopped:
    """A process, told to stop after some seconds; with `ready`, once it has printed a line."""
    with session(words, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        first = ""
        if ready:
            assert process.stdout is not None
            first = process.stdout.readline()
        time.sleep(delay)
        begin = time.monotonic()
        if process.poll() is None:
            (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)  # Ctrl-C goes to children too
        out, err = process.communicate(timeout=60)
        seconds = time.monotonic() - begin
    return Stopped(process.returncode, first + out, err, seconds)


def hung_up(words: list[str], delay: float, folder: Path) -> int:
    """The exit status of a process whose terminal is closed after some seconds."""
    master, slave = pty.openpty()
    with session(["-c", TAKE_TERMINAL, *words], folder, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        time.sleep(delay)
        os.close(master)
        return process.wait(timeout=60)


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
