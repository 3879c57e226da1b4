"""A job of several processes, on one machine or many: all of them run the same program on the same folder, by JAX's own engine.

    python -m STUDY ... --processes 2 --process 0 --coordinator HOST:PORT --devices 8
    python -m STUDY ... --processes 2 --process 1 --coordinator HOST:PORT --devices 8

Each evaluates its devices' part of every batch. What is written, the first one writes. Whatever the processes have to decide
alike, such as whether it is time for a checkpoint, the first one decides.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import jax
import numpy as np
from jax.experimental import multihost_utils

from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.settings import Training

PATIENCE = 60
"""Seconds in which all processes have to come, and after which one that says nothing is taken for dead."""
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
    """Raises TrainingError instead of what JAX raises where another process of the job ended."""
    try:
        yield
    except RuntimeError as error:  # `jax.errors.JaxRuntimeError` is one
        if jax.process_count() == 1 or not isinstance(error, jax.errors.JaxRuntimeError):
            raise
        reason = str(error).partition("\n")[0]
        raise LostError(f"another process of this job is gone, and this one stops: {reason:.200}", AGAIN) from None


class LostError(TrainingError):
    """The other processes cannot be waited for any more."""
