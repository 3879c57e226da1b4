"""What a fold is run with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stmlang.experiments.training.settings import Training, as_json, flat


@dataclass(frozen=True)
class Own:
    """The study's `settings`, reduced to a fold, its `training`, and those that its numbers depend on."""

    settings: Any
    training: Training
    deciding: Mapping[str, Any]


def own(settings: Any, training: Training, free: frozenset[str]) -> Own:
    """Of settings that say where the fold is kept. Those of `free` decide nothing."""
    return Own(settings, training, {name: value for name, value in flat(as_json(settings)).items() if name not in free})
