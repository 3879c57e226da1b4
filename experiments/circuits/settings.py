"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

Model = Literal["plstm", "gin", "gine", "mpnn"]
MODELS: tuple[Model, ...] = get_args(Model)
FOLDS = 5

BANDS = ((1, 4), (5, 8), (9, 16), (17, None))
"""Levels of gates, from and to, of which errors are reported."""

RATES: dict[Model, float] = {"mpnn": 2e-3}
"""Of models that learn better at another rate than the rest."""
DEPTHS: dict[Model, int] = {"gin": 4, "gine": 4}
"""Of networks that learn better with another number of rounds than the rest. Of 4 and 8 rounds, and of the rates 0.002 and
0.005, each network has what has the smallest error on the validation circuits of the first fold, and so has pLSTM of the
rates."""

FREE = ("models", "folds", "out", "page", "data")
"""Settings that say what is run and where. No number of a fold depends on them."""


@dataclass(frozen=True)
class Settings:
    """`data` is a folder in which circuits lie, at any depth. `cones` of each circuit are taken, where there are as many, of at
    least `least` gates and at most `most` nodes; `split` seeds which, and the folds.

    `folds`: how many of the five are run, the first ones. `batch` cones a step; `rate`, `warmup`, `weight_decay` and `clip` are
    those of `Training`; `seed` is that of parameters and of the order of cones. pLSTM has `dim` features in its stream, `width`
    numbers for keys and values in each of `heads`, and `pairs` of layers; the networks have `depth` rounds of messages, and as
    many features as bring them to its size.
    """

    models: tuple[Model, ...] = MODELS
    folds: int = FOLDS
    out: Path = Path("build/circuits")
    page: Path | None = None
    data: Path = Path("data")
    cones: int = 20
    least: int = 16
    most: int = 128
    epochs: int = 16
    batch: int = 8
    rate: float = 5e-3
    warmup: int = 2
    weight_decay: float = 0.01
    clip: float = 1.0
    split: int = 42
    seed: int = 0
    dim: int = 48
    heads: int = 8
    width: int = 6
    pairs: int = 2
    expansion: int = 1
    depth: int = 8

    def of(self, model: Model) -> Settings:
        """The settings that a model is trained with."""
        return replace(self, rate=RATES.get(model, self.rate), depth=DEPTHS.get(model, self.depth))

    @property
    def deciding(self) -> dict[str, Any]:
        """The settings that numbers depend on, as they stand in files of results."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in FREE}
