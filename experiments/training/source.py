"""Batches by their number, so that a run can go on in the middle of an epoch: what a batch holds depends on nothing but it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Int64

from stmlang.experiments.training.errors import TrainingError


class Source(Protocol):
    """Batches of an endless sequence of epochs. `batch(step)` is a pytree of arrays whose first axis counts examples, of few
    shapes, since a step is compiled for each, and the same arrays whenever it is asked for: the state of a source is the number
    of the step."""

    @property
    def steps_an_epoch(self) -> int: ...
    def batch(self, step: int) -> Any: ...


@dataclass(frozen=True)
class Shuffled:
    """Every example once an epoch, in an order of the epoch's own; what does not fill a batch is left out. `load(numbers,
    generator)` makes a batch of the examples with these numbers; what is drawn from the generator depends on the step alone."""

    length: int
    size: int
    seed: int
    load: Callable[[Int64[np.ndarray, " batch"], np.random.Generator], Any]

    def __post_init__(self) -> None:
        if self.size > self.length:
            message = f"a batch of {self.size} is larger than the {self.length} examples there are"
            raise TrainingError(message, "choose a smaller batch: `--batch`")

    @property
    def steps_an_epoch(self) -> int:
        return self.length // self.size

    def batch(self, step: int) -> Any:
        epoch, place = divmod(step, self.steps_an_epoch)
        order = np.random.default_rng([self.seed, 0, epoch]).permutation(self.length)
        numbers = order[place * self.size : (place + 1) * self.size]
        return self.load(numbers, np.random.default_rng([self.seed, 1, step]))
