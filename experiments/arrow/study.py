"""The study, step by step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Int
from rich.console import Console

from stmlang.experiments.arrow.control import controls
from stmlang.experiments.arrow.data import TEST, VALIDATION, accuracy, batches, confusion, judged, loss, measuring
from stmlang.experiments.arrow.generation import Form
from stmlang.experiments.arrow.models import made, scans
from stmlang.experiments.arrow.report import Outcome, Result, write
from stmlang.experiments.arrow.settings import Model, Settings
from stmlang.experiments.training import report as run_report
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.figures import confusion as confusion_figure
from stmlang.experiments.training.fitting import Fitted, Task, Validation, fit
from stmlang.experiments.training.settings import as_json, flat
from stmlang.experiments.training.state import parameters
from stmlang.source.writing import written_whole

RESULT = "result.json"


@dataclass(frozen=True)
class Run:
    """One run of training."""

    form: Form
    model: Model
    rate: float
    seed: int

    def folder(self, settings: Settings) -> Path:
        return settings.training.out / self.form / self.model / f"rate-{self.rate:g}" / f"seed-{self.seed}"

    def of(self, settings: Settings) -> Settings:
        """The settings of this run alone, which are kept beside it: `vit_steps` is in the number of steps, so that no other
        model is trained anew where it changes."""
        folder, training = self.folder(settings), settings.training
        steps = training.steps or training.epochs * (settings.images // training.batch)
        steps *= settings.vit_steps if self.model == "vit" else 1
        training = replace(training, out=folder, rate=self.rate, seed=self.seed, steps=steps)
        one = replace(settings, training=training, forms=(self.form,), models=(self.model,), ablations=(), page=None)
        return replace(one, seeds=(self.seed,), rates=(self.rate,), vit_steps=1)


def run(settings: Settings, console: Console) -> Outcome:
    """Train all that is not done yet, and write the page, anew after each model. Raises TrainingError where the folder holds a
    study that is not to go on, or one of other settings."""
    out = settings.training.out
    if not settings.training.resume and any(out.glob("*/*/rate-*/seed-*/config.json")):
        raise TrainingError(
            f"in {out} lies a study", "go on with it: `--resume`; or choose another folder, `--out`, or delete it"
        )
    outcome = Outcome(settings, {form: controls(form, settings) for form in settings.forms}, [])
    write(outcome)
    for form in settings.forms:
        for model in settings.models:
            outcome = replace(outcome, results=[*outcome.results, *trained(form, model, settings, console)])
            write(outcome)
    for form in settings.forms:
        alone = replace(settings, seeds=settings.seeds[:1], rates=_rates(outcome.of(form, "plstm"), settings))
        for model in settings.ablations:
            outcome = replace(outcome, results=[*outcome.results, *trained(form, model, alone, console)])
            write(outcome)
    return outcome


def _rates(results: Sequence[Result], settings: Settings) -> tuple[float, ...]:
    """That of results, or those of the settings where there are none."""
    return (results[0].rate,) if results else settings.rates


def trained(form: Form, model: Model, settings: Settings, console: Console) -> list[Result]:
    """The results of a model: of every rate with the first seed, and of the other seeds with the rate that is best on the
    validation scenes of the size of training."""
    first, *others = settings.seeds
    tried = [one(Run(form, model, rate, first), settings, console) for rate in settings.rates]
    best = max(tried, key=lambda result: result.validation)
    again = [one(Run(form, model, best.rate, seed), settings, console) for seed in others]
    return [replace(result, chosen=result.rate == best.rate) for result in (*tried, *again)]


def one(run: Run, settings: Settings, console: Console) -> Result:
    """The result of a run, trained where it is not there yet, or from its last checkpoint on."""
    own = run.of(settings)
    kept = _kept(own)
    if kept is not None:
        return kept
    console.print(f"{run.form}, {run.model}, rate {run.rate:g}, seed {run.seed}")
    start = made(run.model, own, jax.random.key(run.seed))
    validation = Validation(measuring(judged(run.form, own, VALIDATION, own.validation)), "accuracy")
    task = Task(loss, batches(run.form, own, run.seed), validation)
    fitted = fit(start, task, own.training, console, own)
    matrices = [confusion(fitted.model, of) for of in judged(run.form, own, TEST, own.test)]
    result = _result(run, fitted, matrices)
    _write_report(run, own, fitted, matrices)
    with written_whole(own.training.out / RESULT) as stream:
        stream.write((json.dumps({"settings": _deciding(own), "result": asdict(result)}, indent=1) + "\n").encode())
    return result


def _result(run: Run, fitted: Fitted, matrices: Sequence[Int[np.ndarray, "label predicted"]]) -> Result:
    """What came of a run, with the weights after the last step."""
    curve = [{"step": record["step"], **record["validation"]} for record in fitted.records if "validation" in record]
    training = [record["accuracy"] for record in fitted.records if "accuracy" in record]
    return Result(
        form=run.form,
        model=run.model,
        rate=run.rate,
        seed=run.seed,
        parameters=parameters(fitted.model),
        steps=fitted.steps,
        seconds=fitted.seconds,
        training=training[-1],
        validation=curve[-1]["accuracy"],
        larger_validation=curve[-1]["larger"],
        test=accuracy(matrices[0]),
        larger_test=accuracy(matrices[1]),
        curve=tuple(curve),
    )


def _kept(own: Settings) -> Result | None:
    """The result of a run that is done, None where it is not. Raises TrainingError for one of other settings."""
    path = own.training.out / RESULT
    if not path.exists():
        return None
    try:
        stored: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        settings, result = stored["settings"], stored["result"]
        kept = replace(Result(**result), curve=tuple(result["curve"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path} cannot be read: {error}", "delete it, and the run is done anew") from None
    changed = sorted(name for name, value in _deciding(own).items() if settings.get(name) != value)
    if changed:
        message = f"{path} was made with other settings: {', '.join(changed)}"
        raise TrainingError(message, "choose another folder, `--out`, or the settings as they were")
    return kept


def _deciding(own: Settings) -> dict[str, Any]:
    """The settings that numbers depend on, by name."""
    return flat(as_json(own))


def _write_report(run: Run, own: Settings, fitted: Fitted, matrices: Sequence[Int[np.ndarray, "label predicted"]]) -> None:
    """The page of one run, beside it."""
    sections = run_report.of_run(fitted, own, ("scikit-learn",))
    for geometry, matrix in zip((own.geometry, own.larger), matrices, strict=True):
        sections += [f"<h2>Test scenes of {geometry.size}x{geometry.size}</h2>", confusion_figure(matrix, "pointing")]
    for op in scans(fitted.model):
        scan = op.at(own.grid)
        sections += run_report.plan(op.scan.name, run_report.Choice(scan.plan, scan.explain()))
    run_report.write(f"{run.model}, {run.form}, seed {run.seed}", sections, own.training.out / "report.html")
