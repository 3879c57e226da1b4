"""What can be set about a run of training, whichever study it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

from typing_extensions import Doc

Optimizer = Literal["adamw", "adam", "lamb", "lion", "sgd"]
Schedule = Literal["cosine", "linear", "constant"]

FREE = frozenset({"out", "resume", "checkpoint", "tensorboard", "processes", "process", "coordinator"})
"""Settings that say where and how a run is kept. No number depends on them, so that a run may go on with others."""
ROUNDING = frozenset({"devices"})
"""Settings that numbers depend on by rounding alone: a run may go on with others of these too."""


@dataclass(frozen=True)
class Training:
    """How a model is trained. The learning rate rises in a straight line over the first `warmup` of all steps, then falls to
    `floor` times its peak as the schedule says."""

    epochs: Annotated[int, Doc("passes over the training data")] = 10
    steps: Annotated[int | None, Doc("steps of the optimizer, instead of epochs")] = None
    batch: Annotated[int, Doc("examples in a step of training")] = 64
    seed: Annotated[int, Doc("of the initial parameters and of the order of examples")] = 0
    optimizer: Annotated[Optimizer, Doc("which optimizer")] = "adamw"
    rate: Annotated[float, Doc("peak of the learning rate")] = 1e-3
    schedule: Annotated[Schedule, Doc("how the learning rate falls after its peak")] = "cosine"
    warmup: Annotated[float, Doc("share of the steps in which the learning rate rises")] = 0.1
    floor: Annotated[float, Doc("learning rate after the last step, as a share of its peak")] = 0.01
    b1: Annotated[float, Doc("decay of the mean of gradients; momentum of sgd")] = 0.9
    b2: Annotated[float, Doc("decay of the mean of squared gradients")] = 0.99
    weight_decay: Annotated[float, Doc("of adamw, lamb and lion, on matrices alone")] = 0.0
    clip: Annotated[float, Doc("largest norm of a gradient, 0 for any")] = 1.0
    average: Annotated[float, Doc("decay of a moving average of the weights, which is judged and kept instead; 0 for none")] = (
        0.0
    )
    log: Annotated[int, Doc("steps from a line of the log to the next, 0 for an epoch")] = 0
    validate: Annotated[int, Doc("steps from a validation to the next, 0 for an epoch")] = 0
    patience: Annotated[int, Doc("validations without a better one after which training ends, 0 for never")] = 0
    devices: Annotated[int, Doc("devices that share each batch, those of all processes together")] = 1
    processes: Annotated[int, Doc("processes of the job, each with as many of the devices")] = 1
    process: Annotated[int, Doc("number of this process, from 0")] = 0
    coordinator: Annotated[str, Doc("HOST:PORT at which the processes meet, of the machine of process 0")] = ""
    out: Annotated[Path, Doc("folder for the run: settings, checkpoints, logs, report")] = Path("build/training")
    resume: Annotated[bool, Doc("go on from the last checkpoint in the folder")] = False
    checkpoint: Annotated[float, Doc("seconds from a checkpoint to the next")] = 30.0
    tensorboard: Annotated[bool, Doc("write a log for TensorBoard as well")] = False

    @property
    def faults(self) -> list[str]:
        """What is wrong with these settings, in words of the command line."""
        checks = {
            "--epochs must be at least 1": self.epochs >= 1,
            "--steps must be at least 1": self.steps is None or self.steps >= 1,
            "--batch must be at least 1": self.batch >= 1,
            "--seed must be from 0 to 2147483647": 0 <= self.seed < 2**31,
            "--rate must be positive": self.rate > 0,
            "--warmup must be from 0 to 1": 0 <= self.warmup <= 1,
            "--floor must be from 0 to 1": 0 <= self.floor <= 1,
            "--b1 must be from 0 to below 1": 0 <= self.b1 < 1,
            "--b2 must be from 0 to below 1": 0 <= self.b2 < 1,
            "--weight-decay must not be negative": self.weight_decay >= 0,
            "--clip must not be negative": self.clip >= 0,
            "--average must be from 0 to below 1": 0 <= self.average < 1,
            "--log, --validate and --patience must not be negative": min(self.log, self.validate, self.patience) >= 0,
            "--devices must be at least 1": self.devices >= 1,
            "--devices must divide --batch": self.devices < 1 or self.batch % self.devices == 0,
            "--processes must be at least 1": self.processes >= 1,
            "--processes must divide --devices": self.processes < 1 or self.devices % self.processes == 0,
            "--process must be from 0 to below --processes": self.processes < 1 or 0 <= self.process < self.processes,
            "--coordinator must be HOST:PORT where there are several --processes": self.processes == 1
            or ":" in self.coordinator,
            "--checkpoint must not be negative": self.checkpoint >= 0,
        }
        return [fault for fault, holds in checks.items() if not holds]


def meanings(of: type) -> dict[str, str]:
    """What each setting of a dataclass is, by name, in order, those of dataclasses within it among them."""
    says: dict[str, str] = {}
    for name, hint in get_type_hints(of, include_extras=True).items():
        if is_dataclass(hint):
            says |= meanings(cast(type, hint))
        else:
            says[name] = next(
                (entry.documentation for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, Doc)), ""
            )
    return says


def as_json(settings: Any) -> dict[str, Any]:
    """Settings as JSON has them: those of dataclasses within as objects, paths as text, tuples as lists."""

    def plain(value: Any) -> Any:
        if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, tuple | list):
            return [plain(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
        return str(value) if isinstance(value, Path) else value

    return plain(settings)


def flat(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of `as_json` by name, without those of `FREE`, and without the objects around them."""
    by_name: dict[str, Any] = {}
    for name, value in stored.items():
        if isinstance(value, dict):
            by_name |= flat(cast(Mapping[str, Any], value))
        elif name not in FREE:
            by_name[name] = value
    return by_name


def options(settings: Any, usual: Any) -> list[str]:
    """The words of a command line that say where settings differ from the usual ones, but for those of `FREE`."""
    before, words = flat(as_json(usual)), list[str]()
    for name, value in flat(as_json(settings)).items():
        if value != before[name]:
            values = cast(list[Any], value) if isinstance(value, list) else [] if value is True else [value]
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return words
