"""Compiled steps that runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stmlang.experiments.training.settings import Training

Key = tuple[int, Training]


@dataclass(frozen=True, eq=False)
class Programs:
    """The step of training of runs that follow each other in a process and differ in their data, their seeds and the values of
    their parameters alone, such as the folds of a study: it is compiled for the first of them. Whoever gives the same one to
    several runs says that their losses are one function and their models have one structure."""

    steps: dict[Key, Callable[..., Any]] = field(default_factory=dict[Key, Callable[..., Any]])

    def step(self, training: Training, steps: int, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """That of runs of so many steps with these settings; `make` makes it where it is not there."""
        key = steps, replace(training, seed=0, out=Path(), resume=False, checkpoint=0.0, tensorboard=False)
        if key not in self.steps:
            self.steps[key] = make()
        return self.steps[key]
