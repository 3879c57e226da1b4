"""The loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from stmlang.ending import rescuing
from stmlang.experiments.training.checkpoints import Checkpoints, Progress, opened
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.logs import Log, Record, records
from stmlang.experiments.training.mesh import Placement
from stmlang.experiments.training.optimizers import Decays, matrices, optimizer, schedule
from stmlang.experiments.training.processes import LostError, agreed, first, still_there, together
from stmlang.experiments.training.programs import Programs
from stmlang.experiments.training.settings import Training, as_json
from stmlang.experiments.training.source import Source
from stmlang.experiments.training.state import NEVER, Loss, State, beginning, split, step_key, stepper
from stmlang.experiments.training.trees import copied
from stmlang.experiments.training.watch import first_bad


@dataclass(frozen=True)
class Validation:
    """How good a model is: `measure(model)` is a measure for each name, and the best model has the largest one (or with
    `largest=False` the smallest) of the measure `by`. The model is in inference mode."""

    measure: Callable[[Any], Mapping[str, float]]
    by: str
    largest: bool = True


@dataclass(frozen=True)
class Task:
    """What a model learns, what its batches are, how it is judged on the way, and which of its leaves decay."""

    loss: Loss
    source: Source
    validation: Validation | None = None
    decays: Decays = matrices


@dataclass(frozen=True, eq=False)
class Fitted:
    """What training came to: the model after the last step, the best by validation (the same one where there is none), their
    steps, the log, and seconds of training over all parts of the run. Models are averages where those were asked for."""

    model: Any
    best: Any
    steps: int
    best_step: int
    records: list[dict[str, Any]]
    seconds: float


def fit(
    model: Any, task: Task, training: Training, console: Console, config: Any = None, programs: Programs | None = None
) -> Fitted:
    """Train a model, or go on with the run in `training.out`. `config` is the study's dataclass of settings, `training` where
    there is none; it is kept beside the run, and a run goes on with the same one only, save for the number of devices.
    `programs` are those of runs that share what is compiled. Same settings, same machine: same bits, wherever the run was
    stopped. All processes of a job call it, each with its own number.

    Raises TrainingError where the run cannot begin or go on, where another process of the job ended, or where the loss or its
    gradient is not finite, and says in which layer that began.
    """
    placement = Placement(training.devices)
    stored = as_json(training if config is None else config)
    steps = training.steps or training.epochs * task.source.steps_an_epoch
    checkpoints = opened(training.out, stored, resume=training.resume)
    lost = False
    try:
        run = _Run(model, task, training, steps, placement, checkpoints, programs or Programs())
        try:
            with still_there():
                _loop(run, console)
                together("the run has ended")
            return run.fitted()
        finally:
            run.log.close()
    except LostError:
        lost = True
        raise
    finally:
        if not lost:  # else closing would wait for those that are gone
            checkpoints.close()


class _Run:
    """What a run holds while it goes on: `state` on devices, `progress` on the host."""

    def __init__(
        self,
        model: Any,
        task: Task,
        training: Training,
        steps: int,
        placement: Placement,
        checkpoints: Checkpoints,
        programs: Programs,
    ) -> None:
        learned, self.fixed = split(model)
        self.task, self.training, self.steps = task, training, steps
        self.placement, self.checkpoints = placement, checkpoints
        chosen, self.rate = optimizer(training, steps, learned, task.decays), schedule(training, steps)
        self.step = programs.step(training, steps, lambda: stepper(task.loss, self.fixed, chosen, training))
        state = beginning(learned, chosen, training, best=task.validation is not None)
        kept = checkpoints.last(state)
        state, self.progress = (state, Progress()) if kept is None else kept
        self.state: State = placement.everywhere(copied(state))
        self.key = placement.everywhere(jax.random.key(training.seed))
        self.log = Log(
            training.out, self.progress.logged, self.progress.step, tensorboard=training.tensorboard, written=first()
        )
        self.measured: list[dict[str, Any]] = []
        self.since, self.kept_at, self.steps_since = time.monotonic(), time.monotonic(), 0

    def advance(self) -> None:
        """One more step. Nothing waits for its result."""
        batch = self.placement.divided(self.task.source.batch(self.progress.step))
        self.state, measures = self.step(self.state, batch, self.key)
        self.measured.append(measures)
        self.progress.step += 1
        self.steps_since += 1

    def arrive(self) -> None:
        """Wait for the steps so far; raises TrainingError where one was not finite."""
        self.progress.pending += [{name: float(value) for name, value in step.items()} for step in self.measured]
        self.measured.clear()
        if int(self.state.bad) != NEVER:
            raise self._not_finite(int(self.state.bad))

    def write(self) -> Record:
        """A line of the log, of the steps since the last one."""
        self.arrive()
        pending, step = self.progress.pending, self.progress.step
        means = {name: float(np.mean([measures[name] for measures in pending])) for name in pending[0]}
        record = {"step": step, **means, "rate": float(np.asarray(self.rate(step - 1)))}
        self.progress.pending = []
        self.log.line(record)
        self.log.chart({"steps a second": self.speed()}, step)
        self.since, self.steps_since = self._clock(), 0
        return record

    def validate(self) -> Record:
        """A line of the log of how good the model is, which is kept where it is better than all before."""
        self.arrive()
        validation, progress = self.task.validation, self.progress
        assert validation is not None
        model = cast(Any, eqx.nn.inference_mode(eqx.combine(self.state.judged, self.fixed)))
        measures = {name: float(value) for name, value in validation.measure(model).items()}
        value = measures[validation.by] if validation.largest else -measures[validation.by]
        progress.since += 1
        if progress.best is None or value > progress.best:
            progress.best, progress.best_step, progress.since = value, progress.step, 0
            self.state = self.state._replace(best=copied(self.state.judged))
        record = {"step": progress.step, "validation": measures}
        self.log.line(record)
        return record

    def keep(self) -> None:
        """A checkpoint."""
        self.arrive()
        now = self._clock()
        self.progress.logged = self.log.length
        self.checkpoints.keep(self.state, self.progress)
        self.kept_at = time.monotonic()
        self.since += self.kept_at - now

    def speed(self) -> float:
        """Steps a second since the last line of the log."""
        return self.steps_since / max(time.monotonic() - self.since, 1e-9)

    def _clock(self) -> float:
        """Now; the seconds since the last time are counted."""
        now = time.monotonic()
        self.progress.seconds += now - getattr(self, "counted", self.since)
        self.counted = now
        return now

    def _not_finite(self, step: int) -> TrainingError:
        key = step_key(self.key, step)
        model = eqx.combine(self.state.learned, self.fixed)
        where = first_bad(self.task.loss, model, self.task.source.batch(step), key)
        message = f"step {step + 1} is not finite: {where}"
        return TrainingError(message, "lower the rate, `--rate`, or cut gradients, `--clip`; the last checkpoint is before it")

    def fitted(self) -> Fitted:
        progress = self.progress
        model = eqx.combine(self.state.judged, self.fixed)
        best = model if progress.best is None else eqx.combine(self.state.best, self.fixed)
        best_step = progress.step if progress.best is None else progress.best_step
        return Fitted(model, best, progress.step, best_step, records(self.training.out), progress.seconds)


def _loop(run: _Run, console: Console) -> None:
    training, progress, an_epoch = run.training, run.progress, run.task.source.steps_an_epoch
    log, validate = training.log or an_epoch, training.validate or an_epoch
    with Bar(*_columns(), console=console) as bar, rescuing(bar.stop):
        shown = bar.add_task("training", total=run.steps, completed=progress.step, note="compiling")
        said: dict[str, str] = {}
        while not progress.done:
            run.advance()
            step = progress.step
            last = step == run.steps
            if run.task.validation is not None and (last or step % validate == 0):
                said |= _words(run.validate()["validation"], "validation ")
            progress.done = last or (training.patience > 0 and progress.since >= training.patience)
            if progress.done or step % log == 0:
                speed = run.speed() * training.batch
                said |= _words(run.write()) | {"speed": f"{speed:,.0f} examples/s"}
            if progress.done or agreed(time.monotonic() - run.kept_at >= training.checkpoint):
                run.keep()
            bar.update(shown, completed=step, note=", ".join(said.values()) or "compiled")


def _words(measures: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Measures in words, by name."""
    return {before + name: f"{before}{name} {value:.4g}" for name, value in measures.items() if name not in ("step", "rate")}


def _columns() -> tuple[Any, ...]:
    note = TextColumn("{task.fields[note]}")
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), note, TimeElapsedColumn(), TimeRemainingColumn()
