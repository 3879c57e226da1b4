"""A job of several processes, on one machine or many: all of them run the same program on the same folder, by JAX's own engine.

    python -m STUDY ... --processes 2 --process 0 --coordinator HOST:PORT --devices 8
    python -m STUDY ... --processes 2 --process 1 --coordinator HOST:PORT --devices 8

Each evaluates its devices' part of every batch. What is written, the first one writes. Whatever the processes have to decide
alike, such as whether it is time for a checkpoint, the first one decides.

Where one of them dies, a computation of the others that needs it either fails or waits for ever, and JAX aborts a process once
the service that they meet at gives up on the dead one. So each process also says every second that it is there, and one that
still waits for a process which was silent for `SILENCE` seconds says so and ends. That service runs in the first process: where
that one dies, JAX ends the others itself, in its own words.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any, NoReturn, cast

import jax
import numpy as np
from jax.experimental import multihost_utils

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.settings import Training

PATIENCE = 60
"""Seconds in which all processes have to come, and after which JAX takes one that says nothing for dead."""
BEAT = 1.0
"""Seconds from one sign of life to the next."""
SILENCE = 20.0
"""Seconds without a sign of life after which a process is taken for dead by those that wait for it. A process that traces a
program or compiles one gives signs, since a thread does."""
GONE = "another process of this job is gone, and this one stops"
AGAIN = (
    "start all of them again with --resume: with as many devices as there are now, `--devices`, the order of data is the same"
)


def join(training: Training) -> None:
    """Become one of the processes of a job, if there are several; before JAX computes anything. Raises TrainingError where the
    others do not come."""
    if training.processes == 1:
        return
    try:
        jax.distributed.initialize(
            training.coordinator,
            training.processes,
            training.process,
            initialization_timeout=PATIENCE,
            heartbeat_timeout_seconds=PATIENCE,
        )
    except Exception as error:  # of the service that processes meet at: its errors have no common base
        reason = (str(error) or type(error).__name__).partition("\n")[0]
        message = (
            f"process {training.process} of {training.processes} cannot join the job at {training.coordinator}: {reason:.200}"
        )
        raise TrainingError(message, "start all processes of a job, each with its own number `--process`") from None
    threading.Thread(target=_signs_of_life, args=(training.process, training.processes), daemon=True).start()


def first() -> bool:
    """Whether this is the process that writes."""
    return jax.process_index() == 0


def together(what: str) -> None:
    """Wait until all processes are here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)


def agreed(decision: bool) -> bool:
    """What the first process has decided."""
    if jax.process_count() == 1:
        return decision
    return bool(multihost_utils.broadcast_one_to_all(np.asarray(decision)))


@contextmanager
def still_there() -> Generator[None]:
    """Raises TrainingError instead of what JAX raises where another process of the job ended, and ends this process where it
    would wait for that one."""
    _waiting.set()
    try:
        yield
    except RuntimeError as error:  # `jax.errors.JaxRuntimeError` is one
        if jax.process_count() == 1 or not isinstance(error, jax.errors.JaxRuntimeError):
            raise
        reason = str(error).partition("\n")[0]
        raise LostError(f"{GONE}: {reason:.200}", AGAIN) from None
    finally:
        _waiting.clear()


class LostError(TrainingError):
    """The other processes cannot be waited for any more."""


_waiting = threading.Event()
"""Whether this process computes what others have a part in."""


def _signs_of_life(process: int, processes: int) -> None:
    """Give one every `BEAT` seconds as long as this process lives, and look for the others' while it may wait for them."""
    client: Any = cast(Any, multihost_utils).distributed.global_state.client  # which has no public name
    others = [number for number in range(processes) if number != process]
    heard: dict[int, tuple[str | None, float]] = {}
    for beat in count():
        now = time.monotonic()
        try:
            client.key_value_set(f"stmlang/alive/{process}", str(beat), allow_overwrite=True)
            signs = {number: _sign(client, number) for number in others}
        except RuntimeError:  # the service is gone: JAX ends this process
            return
        for number, sign in signs.items():
            if number not in heard or heard[number][0] != sign or not _waiting.is_set():
                heard[number] = sign, now
            elif now - heard[number][1] > SILENCE:
                _leave(f"{GONE}: process {number} gave no sign of life for {SILENCE:.0f} seconds")
        time.sleep(BEAT)


def _sign(client: Any, number: int) -> str | None:
    """The last sign of life of a process, None before its first."""
    try:
        return client.key_value_try_get(f"stmlang/alive/{number}")
    except RuntimeError as error:
        if "NOT_FOUND" in str(error):
            return None
        raise


def _leave(message: str) -> NoReturn:
    """End this process as a command ends on a LostError. Its main thread waits in C++, where no exception reaches it."""
    print(f"{message}\n  help: {AGAIN}", file=sys.stderr, flush=True)
    os._exit(1)
