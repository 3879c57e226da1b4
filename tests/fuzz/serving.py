"""What a process for checks runs in tests: it does what the name of a check says."""

from __future__ import annotations

import os
import signal
import sys
import time
from multiprocessing.connection import Connection

from stmlang.fuzz.jobs import Evaluate, Outcome


def obedient(connection: Connection, errors: str, optimizing: bool) -> None:
    """`die` by a signal, `leave` with last words, `hang`; anything else passes, and says which process it was."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_TRUNC), 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send(True)
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        match job.check if isinstance(job, Evaluate) else job.trial.text:
            case "die":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "leave":
                print("first\nlast words\n", file=sys.stderr, flush=True)
                os._exit(3)
            case "hang":
                time.sleep(600)
            case _:
                connection.send(Outcome("passed") if isinstance(job, Evaluate) else (os.getpid(), optimizing))


def broken(_: Connection, errors: str, __: bool) -> None:
    """A process that cannot start."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_TRUNC), 2)
    raise ImportError("something is missing")
