"""What can be set about the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from typing_extensions import Doc

from stmlang.experiments.statetracking.groups import Form, Name, Nodes
from stmlang.experiments.training.settings import Training

Model = Literal["gla", "gated_deltanet", "deltaproduct", "plstm", "reflection", "rotation"]
Problem = Literal["z2", "s3", "a5", "z2-grid", "s3-grid", "a5-grid"]
Scale = Literal["small", "whole"]
MODELS: tuple[Model, ...] = get_args(Model)
ON_GRIDS: tuple[Model, ...] = ("plstm", "rotation")
"""The models that there are on grids, too."""
ABLE: tuple[Model, ...] = ("deltaproduct", "rotation")
"""The models whose transitions hold every rotation: what is claimed of them rests on several seeds."""
SEEDS = 2**31

TRAINING = Training(batch=64, rate=1e-2, log=50, out=Path("build/statetracking"))
STEPS: dict[Scale, int] = {"small": 50, "whole": 300}
"""Steps of training where `--steps` does not say how many."""


@dataclass(frozen=True)
class Settings:
    """`training.seed` is the first seed of several; runs lie in folders of `training.out`."""

    training: Training = TRAINING
    scale: Annotated[Scale, Doc("small: few steps, to see that all works; whole: what the page is made of")] = "whole"
    problems: Annotated[tuple[Problem, ...], Doc("whose words, and whether they lie on grids")] = ("s3", "s3-grid")
    models: Annotated[tuple[Model, ...], Doc("which models, of those that a problem has")] = MODELS
    seeds: Annotated[int, Doc("trainings of each model that could follow every group")] = 3
    others: Annotated[int, Doc("trainings of each other model")] = 1
    length: Annotated[int, Doc("elements of a word in training, on chains")] = 32
    tests: Annotated[tuple[int, ...], Doc("elements of the words in tests, on chains")] = (32, 128, 512)
    side: Annotated[int, Doc("side of a grid in training")] = 6
    sides: Annotated[tuple[int, ...], Doc("sides of the grids in tests")] = (6, 12, 24)
    count: Annotated[int, Doc("words of a test")] = 128
    dim: Annotated[int, Doc("features of a token")] = 32
    depth: Annotated[int, Doc("layers of a scan and a perceptron")] = 1
    heads: Annotated[int, Doc("scans side by side in a layer")] = 4
    width: Annotated[int, Doc("numbers in a key and in a value of a head")] = 8
    writes: Annotated[int, Doc("keys and values that a node of `rotation` writes")] = 1
    growing: Annotated[bool, Doc("words as long as the products that are asked for, and the more of them the shorter")] = False
    report: Annotated[Path | None, Doc("file that gets the page as well")] = None

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        checks = {
            "--problems must name a problem": len(self.problems) > 0,
            "--models must name a model of each problem": all(self.of(problem) for problem in self.problems),
            "--seeds and --others must be at least 1": min(self.seeds, self.others) >= 1,
            "--length must be at least 1": self.length >= 1,
            "--tests must be lengths of at least 1": len(self.tests) > 0 and min(self.tests) >= 1,
            "--side must be at least 2": self.side >= 2,
            "--sides must be at least 2": len(self.sides) > 0 and min(self.sides) >= 2,
            "--count must be at least 1": self.count >= 1,
            "--dim, --depth, --heads, --width and --writes must be at least 1": min(
                self.dim, self.depth, self.heads, self.width, self.writes
            )
            >= 1,
            "--devices must be 1": self.training.devices == 1,
        }
        return [fault for fault, holds in checks.items() if not holds]

    @property
    def steps(self) -> int:
        return self.training.steps or STEPS[self.scale]

    def of(self, problem: Problem) -> list[Model]:
        """The models that are trained on a problem."""
        return [model for model in dict.fromkeys(self.models) if form(problem) == "chain" or model in ON_GRIDS]

    def tested(self, problem: Problem) -> list[Nodes]:
        """Where the words of a problem's tests lie."""
        sizes = self.tests if form(problem) == "chain" else self.sides
        return [Nodes(form(problem), size) for size in sizes]

    def runs(self, problem: Problem) -> list[Run]:
        """Every training on a problem, model by model."""
        models = self.of(problem)
        return [self._run(problem, model, number) for model in models for number in range(self.trainings(model))]

    def trainings(self, model: Model) -> int:
        """How often a model is trained, each time from another seed."""
        return self.seeds if model in ABLE else self.others

    def _run(self, problem: Problem, model: Model, number: int) -> Run:
        seed = (self.training.seed + number) % SEEDS
        training = replace(self.training, steps=self.steps, seed=seed, out=self.training.out / problem / f"{model}-{seed}")
        size = self.length if form(problem) == "chain" else self.side
        sizes = (size, self.dim, self.depth, self.heads, self.width, self.writes)
        return Run(training, model, problem, *sizes, self.growing)


@dataclass(frozen=True)
class Run:
    """One training of one model: all that its parameters depend on. `size` is that of `Nodes`."""

    training: Training
    model: Model
    problem: Problem
    size: int
    dim: int
    depth: int
    heads: int
    width: int
    writes: int
    growing: bool

    @property
    def nodes(self) -> Nodes:
        return Nodes(form(self.problem), self.size)


def form(problem: Problem) -> Form:
    """Where the words of a problem lie."""
    return "grid" if problem.endswith("-grid") else "chain"


def group_of(problem: Problem) -> Name:
    """Whose words they are."""
    match problem:
        case "z2" | "z2-grid":
            return "z2"
        case "s3" | "s3-grid":
            return "s3"
        case "a5" | "a5-grid":
            return "a5"
