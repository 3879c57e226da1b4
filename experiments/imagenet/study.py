"""The study, run by run: seed after seed, all models on all sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import grain
import jax
import numpy as np
from jaxtyping import Int
from rich.console import Console

from stmlang.ending import rescuing
from stmlang.experiments.imagenet.examples import Examples, Mixed, Order, decoded
from stmlang.experiments.imagenet.learning import Judged, accuracy, confusion, loss
from stmlang.experiments.imagenet.mixing import Mixing
from stmlang.experiments.imagenet.models import made
from stmlang.experiments.imagenet.reading import Images, held_out, opened
from stmlang.experiments.imagenet.report import Result, write
from stmlang.experiments.imagenet.settings import FREE, SETS, Model, Set, Settings, Split
from stmlang.experiments.training import report as run_report
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.training.figures import confusion as confusion_figure
from stmlang.experiments.training.fitting import Fitted, Task, Validation, fit
from stmlang.experiments.training.settings import as_json, flat
from stmlang.experiments.training.streamed import Streamed
from stmlang.models.counting import multiply_adds, parameters
from stmlang.models.weights import save
from stmlang.source.writing import written_whole

RESULT, WEIGHTS, REPORT = "result.json", "model.safetensors", "report.html"
SHOWN = 20
"""Classes up to which a report shows how often each was taken for each other."""


@dataclass(frozen=True)
class Run:
    """One run of training."""

    on: Set
    model: Model
    seed: int

    def of(self, settings: Settings) -> Settings:
        """The settings of this run alone."""
        training = settings.training
        folder = training.out / self.on / self.model / f"seed-{self.seed}"
        training = replace(training, out=folder, seed=self.seed)
        return replace(settings, training=training, sets=(self.on,), models=(self.model,), seeds=(self.seed,))

    def kept_with(self, settings: Settings) -> dict[str, Any]:
        """The settings that its numbers depend on, by name."""
        return {name: value for name, value in flat(as_json(self.of(settings))).items() if name not in FREE}


@dataclass(frozen=True)
class Data:
    """A set: images to learn from, those held out of them, those of the test, and the side of them in training."""

    training: Images
    validation: Images | None
    test: Images
    side: int


def data(on: Set, settings: Settings) -> Data:
    """The images of a set. Raises TrainingError where they are not there, or where training and test have other classes."""

    def split(of: Split) -> Images:
        return opened(settings.data / of.path, settings.unpacked, of.within)

    training, test = split(SETS[on].training), split(SETS[on].test)
    if training.classes != test.classes:
        message = f"the classes of {SETS[on].training.path} and of {SETS[on].test.path} differ"
        raise TrainingError(message, "put each test image into the folder of its class")
    side = settings.side or decoded(test.encoded(0)).height
    if side % settings.patches:
        message = f"images of {side}x{side} do not divide into {settings.patches}x{settings.patches} patches"
        raise TrainingError(message, "choose other patches, `--patches`, or another side, `--side`")
    if settings.validation >= len(training.labels):
        message = f"of {len(training.labels)} images {settings.validation} cannot be held out"
        raise TrainingError(message, "hold out fewer: `--validation`")
    if not settings.validation:
        return Data(training, None, test, side)
    return Data(*held_out(training, settings.validation), test, side)


def source(images: Images, side: int, settings: Settings) -> Streamed:
    """Batches to learn from, of a run."""
    training, augmentation = settings.training, settings.augmentation
    order = Order(len(images.labels), training.batch, augmentation.repeats, training.seed)
    steps = training.steps or training.epochs * order.steps_an_epoch
    examples = Examples(images, order, augmentation, side, steps * training.batch)
    mixing = Mixing(augmentation.mixup, augmentation.cutmix, augmentation.smoothing)
    batches: grain.MapDataset[Any] = grain.MapDataset.source(examples).batch(training.batch)
    mixed = batches.map_with_index(Mixed(mixing, len(images.classes), training.seed))
    return Streamed(mixed, order.steps_an_epoch, settings.workers)


def run(settings: Settings, console: Console) -> list[Result]:
    """Train all that is not done yet, and write the page of each set anew after each run. Raises TrainingError where the folder
    holds a study that is not to go on, or one of other settings."""
    out = settings.training.out
    if not settings.training.resume and any(out.glob("*/*/seed-*/config.json")):
        raise TrainingError(
            f"in {out} lies a study", "go on with it: `--resume`; or choose another folder, `--out`, or delete it"
        )
    sets = {on: data(on, settings) for on in settings.sets}
    results: list[Result] = []
    for seed in settings.seeds:
        for on in settings.sets:
            for model in settings.models:
                results.append(one(Run(on, model, seed), settings, sets[on], console))
                write(results, settings)
    return results


def one(run: Run, settings: Settings, of: Data, console: Console) -> Result:
    """The result of a run, trained where it is not there yet, or from its last checkpoint on."""
    own, deciding = run.of(settings), run.kept_with(settings)
    folder = own.training.out
    kept = _kept(folder, deciding)
    if kept is not None:
        return kept
    console.print(f"{run.on}, {run.model}, seed {run.seed}")
    start = made(run.model, own, of.side, len(of.training.classes), jax.random.key(run.seed))
    batches = source(of.training, of.side, own)
    task = Task(loss(own.loss), batches, _validation(of, own))
    try:
        with rescuing(batches.close):
            fitted = fit(start, task, own.training, console, _Kept(own.training, deciding))
    finally:
        batches.close()
    model = cast(Any, eqx.nn.inference_mode(fitted.model))
    matrix = confusion(model, Judged(of.test, of.side, own.test_share, own.training.batch))
    result = _result(run, of, model, fitted, matrix)
    console.print(f"{run.on}, {run.model}, seed {run.seed}: {result.test:.1%} of the test images")
    save(model, folder / WEIGHTS)
    sections = run_report.of_run(fitted, own, ("grain", "pillow"))
    if len(matrix) <= SHOWN:
        sections += ["<h2>Test images</h2>", confusion_figure(matrix, "class")]
    run_report.write(f"{run.model} on {run.on}, seed {run.seed}", sections, folder / REPORT)
    with written_whole(folder / RESULT) as stream:
        stream.write((json.dumps({"settings": deciding, "result": asdict(result)}, indent=1) + "\n").encode())
    return result


def _result(run: Run, of: Data, model: Any, fitted: Fitted, matrix: Int[np.ndarray, "label predicted"]) -> Result:
    """What came of a run."""
    lines = [record for record in fitted.records if "loss" in record]
    validations = [record for record in fitted.records if "validation" in record]
    return Result(
        on=run.on,
        model=run.model,
        seed=run.seed,
        images=len(of.training.labels),
        side=of.side,
        parameters=parameters(model),
        multiply_adds=multiply_adds(model, jax.ShapeDtypeStruct((of.side, of.side, 3), "float32")),
        steps=fitted.steps,
        seconds=fitted.seconds,
        test_images=len(of.test.labels),
        test=accuracy(matrix),
        training=tuple({"step": line["step"], "loss": line["loss"]} for line in lines),
        validation=tuple({"step": record["step"], **record["validation"]} for record in validations),
    )


@dataclass(frozen=True)
class _Kept:
    """What is kept beside a run: the settings that decide about it."""

    training: Any
    study: Mapping[str, Any]


def _validation(of: Data, own: Settings) -> Validation | None:
    if of.validation is None:
        return None
    images = Judged(of.validation, of.side, own.test_share, own.training.batch)
    return Validation(lambda model: {"accuracy": accuracy(confusion(model, images))}, "accuracy")


def _kept(folder: Path, deciding: Mapping[str, Any]) -> Result | None:
    """The result of a run that is done, None where it is not. Raises TrainingError for one of other settings."""
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        stored: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        settings, result = stored["settings"], stored["result"]
        kept = replace(Result(**result), training=tuple(result["training"]), validation=tuple(result["validation"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path} cannot be read: {error}", "delete it, and the run is done anew") from None
    changed = sorted(name for name, value in deciding.items() if settings.get(name) != value)
    if changed:
        message = f"{path} was made with other settings: {', '.join(changed)}"
        raise TrainingError(message, "choose another folder, `--out`, or the settings as they were")
    return kept
