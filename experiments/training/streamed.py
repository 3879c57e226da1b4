"""Batches that grain makes, in processes of their own where asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grain
from absl import flags

BUFFER = 2
"""Batches that are made ahead, by each process."""


class Streamed:
    """A `Source` over a dataset of grain whose element at a step is the batch of that step.

    What a random-access dataset gives at a step depends on nothing but the step, so that the step in a checkpoint is all that
    there is to know of an iterator: a run that goes on has the batches that it would have had, with any number of processes. An
    iterator gives them in order; where another step is asked for, a new one begins there.
    """

    def __init__(self, batches: grain.MapDataset[Any], steps_an_epoch: int, workers: int) -> None:
        """`workers` processes make batches ahead, with 0 a thread of this process."""
        self.batches, self.steps_an_epoch, self.workers = batches, steps_an_epoch, workers
        self._iterator: Iterator[Any] | None = None
        self._next = 0
        if workers and not flags.FLAGS.is_parsed():  # grain asks a flag of its own before it starts processes
            flags.FLAGS.mark_as_parsed()

    def batch(self, step: int) -> Any:
        if self._iterator is None or step != self._next:
            self.close()
            self._iterator = iter(self._from(step))
        self._next = step + 1
        return next(self._iterator)

    def close(self) -> None:
        """End the processes; the next batch starts new ones."""
        if self._iterator is not None:
            getattr(self._iterator, "close", lambda: None)()
            self._iterator = None

    def _from(self, step: int) -> Any:
        threads = grain.ReadOptions(num_threads=1, prefetch_buffer_size=BUFFER)
        ahead = self.batches[step:].to_iter_dataset(threads)
        if not self.workers:
            return ahead
        return ahead.mp_prefetch(grain.MultiprocessingOptions(num_workers=self.workers, per_worker_buffer_size=BUFFER))
