"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.folds.own import Own, own
from stmlang.experiments.training.settings import Training

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
RATE, DEPTH = 5e-3, 8
"""Those of the rest."""

FREE = frozenset({"folds", "page", "data"})
"""Settings that say what is run and where. No number of a fold depends on them."""

TRAINING = Training(
    epochs=16,
    batch=8,
    rate=RATE,
    warmup=0.125,
    floor=0.0,
    b2=0.999,
    weight_decay=0.01,
    checkpoint=60.0,
    out=Path("build/circuits"),
)


@dataclass(frozen=True)
class Settings:
    """`batch` of `training` counts cones. Folds lie in folders of `training.out`."""

    data: Annotated[Path, Doc("folder with circuits, BENCH or AIGER, at any depth")]
    training: Training = TRAINING
    models: Annotated[tuple[Model, ...], Doc("which models")] = MODELS
    folds: Annotated[int, Doc("how many of the five folds, the first ones")] = FOLDS
    page: Annotated[Path | None, Doc("folder that gets the page and its figure as well")] = None
    cones: Annotated[int, Doc("sub-circuits of each circuit, where there are as many")] = 20
    least: Annotated[int, Doc("gates of a sub-circuit at least")] = 16
    most: Annotated[int, Doc("nodes of a sub-circuit at most")] = 128
    split: Annotated[int, Doc("seed of the sub-circuits and of the folds")] = 42
    dim: Annotated[int, Doc("features of pLSTM's stream")] = 48
    heads: Annotated[int, Doc("heads of a layer of pLSTM")] = 8
    width: Annotated[int, Doc("numbers in a key and in a value of a head")] = 6
    pairs: Annotated[int, Doc("pairs of layers of pLSTM, one in P-mode and one in D-mode")] = 2
    expansion: Annotated[int, Doc("features within a perceptron of pLSTM, in multiples of dim")] = 1
    depth: Annotated[
        int, Doc("rounds of messages of the networks, which have as many features as bring them to pLSTM's size")
    ] = DEPTH

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        sizes = (self.cones, self.least, self.dim, self.heads, self.width, self.pairs, self.expansion, self.depth)
        checks = {
            "--models must name a model": len(self.models) > 0,
            f"--folds must be from 1 to {FOLDS}": 1 <= self.folds <= FOLDS,
            "--split must be from 0 to 2147483647": 0 <= self.split < 2**31,
            "--cones, --least, --dim, --heads, --width, --pairs, --expansion and --depth must be at least 1": min(sizes) >= 1,
            "--most must be above --least": self.most > self.least,
            "--devices must be 1": self.training.devices == 1,
        }
        return [fault for fault, holds in checks.items() if not holds]

    def of(self, model: Model) -> Settings:
        """The settings that a model is trained with: its own rate and rounds, unless others were asked for."""
        rate, depth = self.training.rate, self.depth
        rate = RATES.get(model, rate) if rate == RATE else rate
        depth = DEPTHS.get(model, depth) if depth == DEPTH else depth
        return replace(self, models=(model,), training=replace(self.training, rate=rate), depth=depth)

    def on(self, model: Model, fold: int) -> Own:
        """Those of one fold of a model."""
        one = self.of(model)
        training = replace(one.training, out=self.training.out / model / f"fold-{fold}")
        return own(replace(one, training=training), training, FREE)
