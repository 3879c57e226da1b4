"""A process that does jobs, and may crash or hang without taking anything along."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import jax

from stmlang.ending import shielded
from stmlang.fuzz.jobs import Draw, Evaluate, Job, Outcome, Plan, answer
from stmlang.fuzz.trial import Finding
from stmlang.source.writing import temporary_file
from stmlang.xla_flags import hasten

TRIALS_BETWEEN_CLEARING = 40
"""After so many trials a process forgets its compiled programs."""
PATIENCE = 5
"""A process that has not had the processor for as long as a job may take gets so many times as long by the clock."""
START_SECONDS = 300.0
"""A process that takes longer to start never will."""


Entry = Callable[[Connection, str, bool], None]
"""What such a process runs: see `serve`."""


class Worker:
    """Does jobs in a process with JAX on the CPU.

    A process that dies, or takes longer than `limit` seconds of processor time for a job, is replaced, and so is one that
    compiles in haste for a job in which XLA is to optimize, and the other way round. The reply to a check whose process fails
    is an `Outcome` that says so; to other jobs, that nothing is known.
    """

    def __init__(self, limit: float, entry: Entry | None = None) -> None:
        self.limit = limit
        self._entry = entry or serve
        self.job: Job | None = None
        self.deadline = self._sent = self._used = 0.0
        self._optimizing = False
        self._kept = ExitStack()
        stream, self._errors = self._kept.enter_context(temporary_file(tempfile.gettempdir()))
        stream.close()
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        process = context.Process(target=self._entry, args=(other, self._errors, self._optimizing), daemon=True)
        resource_tracker.ensure_running()  # its start would end the shielding
        with shielded():  # an interruption is for the process that gives the jobs
            process.start()
        self._process, self._ready = process, False
        other.close()

    def send(self, job: Job) -> None:
        """Begin a job; its reply is to be received before the next. One that nobody waited for to the end, as when waiting was
        interrupted, is given up with its process: its reply would be taken for that of this job."""
        haste = isinstance(job, Evaluate) and job.optimized != self._optimizing
        if haste or self.job is not None:
            self._optimizing ^= haste
            self.job = None
            self._stop()
            self._start()
        if not self._ready:
            self._await_start()
        self.job, self._sent, self._used = job, time.monotonic(), self._processor_seconds() or 0.0
        self.deadline = self._sent + self.limit
        self.connection.send(job)

    def _await_start(self) -> None:
        """Raises RuntimeError where the process does not come up."""
        with suppress(EOFError, OSError):
            self._ready = self.connection.poll(START_SECONDS) and bool(self.connection.recv())
        if not self._ready:
            raise RuntimeError(f"a process for checks does not start: {self._last_words() or 'no reason given'}")

    def receive(self) -> Any:
        """The reply to the job that was sent, waiting for it as long as it may take."""
        job = self.job
        assert job is not None
        try:
            while not self.connection.poll(max(0.0, self.deadline - time.monotonic())):
                if not self.spared():
                    break
            else:
                reply = self.connection.recv()
                self.job = None
                return reply
            return self._failed(job, "hung", f"no answer after {self.limit:g} s", self.limit)
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            words = self._last_words()
            return self._failed(job, "died", f"the process ended with {how}" + (f": {words}" if words else ""), 0.0)

    def spared(self) -> bool:
        """Whether a job that is over its time, by the clock, may go on: a busy machine makes no hang. Its deadline is moved."""
        now, used = time.monotonic(), self._processor_seconds()
        left = 0.0 if used is None else self.limit - (used - self._used)
        if left <= 0.0 or now >= self._sent + PATIENCE * self.limit:
            return False
        self.deadline = min(now + left, self._sent + PATIENCE * self.limit)
        return True

    def _processor_seconds(self) -> float | None:
        """The processor time that the process has had; None where the system does not say."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError, AttributeError):
            return None

    def ask(self, job: Job) -> Any:
        """The reply to a job."""
        self.send(job)
        return self.receive()

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._stop()
        self._kept.close()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _failed(self, job: Job, kind: Any, what: str, allowed: float) -> Any:
        self._stop()
        self.job = None
        self._start()
        match job:
            case Evaluate(check=check, way=way):
                return Outcome(kind, Finding(check, way.label, what, float("inf"), allowed))
            case Plan():
                return []
            case Draw():
                return None

    def _last_words(self) -> str:
        """The last line that the process wrote to its standard error."""
        lines = Path(self._errors).read_text("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def serve(connection: Connection, errors: str, optimizing: bool) -> None:
    """Answer jobs until the other end is closed. What goes to standard error goes to the file `errors`."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_TRUNC), 2)
    if not optimizing:
        hasten()
    config: Any = jax.config
    config.update("jax_platforms", "cpu")
    config.update("jax_enable_x64", True)
    texts: set[str] = set()
    with suppress(EOFError, OSError):
        connection.send(True)
        while True:
            job = connection.recv()
            texts.add(job.trial.text)
            if len(texts) > TRIALS_BETWEEN_CLEARING:
                jax.clear_caches()
                texts = {job.trial.text}
            connection.send(answer(job))
