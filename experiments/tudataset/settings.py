"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

Model = Literal["plstm", "gcn", "gat", "gin", "mpnn", "lstm"]
MODELS: tuple[Model, ...] = get_args(Model)
SETS = ("MUTAG", "NCI1", "PROTEINS", "PTC_FM")
FOLDS = 10
DEPTHS = (4, 8)
"""Rounds of messages of a baseline that the paper chooses from."""

FREE = ("sets", "models", "depths", "folds", "out", "data", "archive")
"""Settings that say what is run and where. No number of a fold depends on them."""


@dataclass(frozen=True)
class Settings:
    """The defaults are the paper's, and where it says nothing those of its authors' code.

    `folds`: how many of the ten are run, the first ones. `depths`: for each baseline the one of these with the best validation
    accuracy counts. `data` is a folder that holds a folder for each data set, None where `archive` is to be asked. `batch`
    graphs a step. `rate` is the peak of a cosine that falls from epoch to epoch, after `warmup` epochs in which it rises;
    gradients are cut to the norm `clip`. `split` seeds the folds, `seed` parameters and the order of graphs. `dim` features of
    pLSTM's stream and `width` numbers for keys and values in each of `heads`; the baselines have `hidden` features.
    """

    sets: tuple[str, ...] = SETS
    models: tuple[Model, ...] = MODELS
    depths: tuple[int, ...] = DEPTHS
    folds: int = FOLDS
    out: Path = Path("build/tudataset")
    data: Path | None = None
    archive: str = "https://www.chrsmrrs.com/graphkerneldatasets"
    epochs: int = 100
    batch: int = 64
    rate: float = 1e-3
    warmup: int = 5
    weight_decay: float = 0.01
    clip: float = 1.0
    split: int = 42
    seed: int = 0
    dim: int = 96
    heads: int = 4
    width: int = 24
    pairs: int = 2
    expansion: int = 1
    hidden: int = 128

    @property
    def deciding(self) -> dict[str, Any]:
        """The settings that numbers depend on, as they stand in files of results."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in FREE}


@dataclass(frozen=True)
class Entry:
    """A model that is trained, and how deep it is, None where there is no choice."""

    model: Model
    depth: int | None

    def __str__(self) -> str:
        return self.model if self.depth is None else f"{self.model}-{self.depth}"
