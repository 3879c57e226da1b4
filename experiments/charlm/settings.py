"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.training.settings import Training

Model = Literal["transformer", "gla", "mlstm", "mamba2", "deltanet", "plstm"]
MODELS: tuple[Model, ...] = get_args(Model)

TRAINING = Training(
    steps=1000, batch=8, rate=3e-3, b2=0.99, weight_decay=0.1, log=50, validate=100, checkpoint=60.0, out=Path("build/charlm")
)


@dataclass(frozen=True)
class Settings:
    """`rate` of `training` is that of each run, which `rates` sets; runs lie in folders of `training.out`."""

    training: Training = TRAINING
    text: Annotated[Path, Doc("the text, in UTF-8")] = Path("tinyshakespeare.txt")
    models: Annotated[tuple[Model, ...], Doc("which models")] = MODELS
    rates: Annotated[tuple[float, ...], Doc("peaks of the learning rate, of which each model has the best on validation")] = (
        3e-3,
        1e-2,
    )
    context: Annotated[int, Doc("characters of an example")] = 128
    windows: Annotated[int, Doc("examples of the validation part, evenly spaced")] = 128
    dim: Annotated[int, Doc("features of a character")] = 96
    heads: Annotated[int, Doc("heads of each layer")] = 4
    states: Annotated[int, Doc("numbers in a key of Mamba-2")] = 32
    depth: Annotated[int, Doc("layers of a mixer and a perceptron")] = 2
    sample: Annotated[int, Doc("characters that the best model writes")] = 400
    contexts: Annotated[tuple[int, ...], Doc("characters behind which generation is timed")] = (1, 1024, 16384)
    timed: Annotated[int, Doc("characters of which the time is taken")] = 256
    machine: Annotated[str, Doc("what the page says of the machine")] = "a machine of which nothing was said"
    page: Annotated[Path | None, Doc("folder that the page is written to as well")] = None

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        sizes = (self.context, self.windows, self.dim, self.heads, self.states, self.depth, self.sample, self.timed)
        checks = {
            "--models must name a model": len(self.models) > 0,
            "--rates must be positive": len(self.rates) > 0 and min(self.rates) > 0,
            "--contexts must be at least 1": len(self.contexts) > 0 and min(self.contexts) >= 1,
            "--context, --windows, --dim, --heads, --states, --depth, --sample and --timed must be at least 1": min(sizes) >= 1,
            "--dim must be a multiple of four times --heads": self.dim % (4 * max(self.heads, 1)) == 0,
            "--devices must be 1": self.training.devices == 1,
        }
        return [fault for fault, holds in checks.items() if not holds]

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.dim, self.heads, self.states, self.depth)

    def runs(self, model: Model, digest: str) -> list[Run]:
        """The trainings of a model on the text of this digest, one for each rate."""
        return [self._run(model, rate, digest) for rate in dict.fromkeys(self.rates)]

    def _run(self, model: Model, rate: float, digest: str) -> Run:
        training = replace(self.training, rate=rate, out=self.training.out / model / f"rate-{rate:g}")
        return Run(training, model, digest, self.context, self.windows, self.sizes)


@dataclass(frozen=True)
class Sizes:
    """Those of a model, whatever its mixer is."""

    dim: int
    heads: int
    states: int
    depth: int


@dataclass(frozen=True)
class Run:
    """One training of one model: all that its parameters depend on."""

    training: Training
    model: Model
    digest: str
    context: int
    windows: int
    sizes: Sizes
