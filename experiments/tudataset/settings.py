"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.folds.own import Own, own
from stmlang.experiments.training.settings import Training

Model = Literal["plstm", "gcn", "gat", "gin", "mpnn", "lstm"]
MODELS: tuple[Model, ...] = get_args(Model)
SETS = ("MUTAG", "NCI1", "PROTEINS", "PTC_FM")
Pooling = Literal["mean", "sum"]
FOLDS = 10

FREE = frozenset({"folds", "data", "archive"})
"""Settings that say what is run and where. No number of a fold depends on them."""

TRAINING = Training(
    epochs=100, warmup=0.05, floor=0.0, b2=0.999, weight_decay=0.01, checkpoint=60.0, out=Path("build/tudataset")
)
"""Of the paper, and where it says nothing of its authors' code: 100 epochs of AdamW at 1e-3 in batches of 64, five of them of
warm-up, then half a cosine down to zero."""


@dataclass(frozen=True)
class Settings:
    """The defaults are the paper's, and where it says nothing those of its authors' code; but for `pooling`, which is "mean"
    there, and from which pLSTM does not learn how large a graph is. Folds lie in folders of
    `training.out`."""

    training: Training = TRAINING
    sets: Annotated[tuple[str, ...], Doc("data sets, such as MUTAG")] = SETS
    models: Annotated[tuple[Model, ...], Doc("which models")] = MODELS
    depths: Annotated[
        tuple[int, ...], Doc("rounds of messages of baselines; of each the number with the best validation accuracy counts")
    ] = (4, 8)
    folds: Annotated[int, Doc("how many of the ten folds, the first ones")] = FOLDS
    data: Annotated[
        Path | None, Doc("folder that holds a folder for each data set; without it they are fetched from the archive")
    ] = None
    archive: Annotated[str, Doc("where the zip files of data sets lie")] = "https://www.chrsmrrs.com/graphkerneldatasets"
    split: Annotated[int, Doc("seed of the folds")] = 42
    dim: Annotated[int, Doc("features of pLSTM's stream")] = 96
    heads: Annotated[int, Doc("heads of a layer of pLSTM")] = 4
    width: Annotated[int, Doc("numbers in a key and in a value of a head")] = 24
    pairs: Annotated[int, Doc("pairs of layers of pLSTM, one in P-mode and one in D-mode")] = 2
    pooling: Annotated[Pooling, Doc("what pLSTM decodes: the mean over nodes, or their sum by the mean size of a graph")] = (
        "sum"
    )
    expansion: Annotated[int, Doc("features within a perceptron of pLSTM, in multiples of dim")] = 1
    hidden: Annotated[int, Doc("features of the baselines")] = 128

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        sizes = (self.dim, self.heads, self.width, self.pairs, self.expansion, self.hidden)
        checks = {
            "--sets, --models and --depths must not be empty": bool(self.sets and self.models and self.depths),
            "--sets takes names of data sets": all(name.replace("_", "").replace("-", "").isalnum() for name in self.sets),
            "--depths must be at least 1": all(depth >= 1 for depth in self.depths),
            f"--folds must be from 1 to {FOLDS}": 1 <= self.folds <= FOLDS,
            "--split must be from 0 to 2147483647": 0 <= self.split < 2**31,
            "--dim, --heads, --width, --pairs, --expansion and --hidden must be at least 1": min(sizes) >= 1,
            "--devices must be 1": self.training.devices == 1,
        }
        return [fault for fault, holds in checks.items() if not holds]

    def of(self, name: str, entry: Entry, fold: int) -> Own:
        """Those of one fold of one model on one data set."""
        folder = self.training.out / name / str(entry) / f"fold-{fold}"
        training = replace(self.training, out=folder)
        depths = () if entry.depth is None else (entry.depth,)
        one = replace(self, training=training, sets=(name,), models=(entry.model,), depths=depths)
        return own(one, training, FREE)


@dataclass(frozen=True)
class Entry:
    """A model that is trained, and how deep it is, None where there is no choice."""

    model: Model
    depth: int | None

    def __str__(self) -> str:
        return self.model if self.depth is None else f"{self.model}-{self.depth}"
