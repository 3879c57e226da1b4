"""The study, step by step."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import jax
from rich.console import Console

import stmlang
from stmlang.experiments.digits.data import CLASSES, SIDE, batches, load
from stmlang.experiments.digits.loss import smoothed
from stmlang.experiments.digits.receptive import compared
from stmlang.experiments.digits.report import TITLE, Outcome, sections
from stmlang.experiments.digits.settings import D_SPEC, P_SPEC, Settings
from stmlang.experiments.digits.testing import confusion, mistakes, probabilities
from stmlang.experiments.training.fitting import Task, fit
from stmlang.experiments.training.report import Choice, write
from stmlang.experiments.training.state import digest, parameters
from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.plstm import plstm

TARGETS = ("cpu", "gpu")


class Clock:
    """Seconds by stage, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None, None, None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = time.perf_counter() - start


def run(settings: Settings, console: Console) -> Outcome:
    """Compile, train, test, and write the report to `settings.training.out`."""
    clock, training = Clock(), settings.training
    with clock.stage("compiling the specs, writing artifacts"):
        scans = {spec: compiled(spec, settings) for spec in (P_SPEC, D_SPEC)}
        artifacts = cross_compiled(settings)
    for name, size in artifacts.items():
        console.print(f"wrote {settings.training.out / name} ({size})")
    train_images, test_images = load()
    start = _model(scans[P_SPEC], scans[D_SPEC], settings)
    with clock.stage("training, with compilation"):
        task = Task(smoothed(settings.smoothing), batches(train_images, training, settings.shift))
        fitted = fit(start, task, training, console, settings)
        model = fitted.model
    with clock.stage("testing"):
        probability = probabilities(model, test_images)
    with clock.stage("receptive fields"):
        fields = compared(start, model, test_images.pixels[0], int(test_images.labels[0]))
    predicted = probability.argmax(axis=-1)
    right = int((predicted == test_images.labels).sum())
    outcome = Outcome(
        settings=settings,
        accuracy=right / len(test_images),
        right=right,
        images=len(test_images),
        parameters=parameters(model),
        digest=digest(model),
        curve=fitted.records,
        confusion=confusion(predicted, test_images),
        mistakes=mistakes(probability, test_images),
        fields=fields,
        plans={spec: Choice(op.plan, op.explain()) for spec, op in scans.items()},
        artifacts=artifacts,
        seconds=clock.seconds,
    )
    write(TITLE, sections(outcome), training.out / "report.html")
    return outcome


def _model(p: stmlang.CompiledScan, d: stmlang.CompiledScan, settings: Settings) -> ImageModel:
    """The classifier as it starts."""
    return plstm(
        p,
        d,
        classes=CLASSES,
        channels=1,
        patch=settings.patch,
        stride=settings.stride,
        dim=settings.dim,
        pairs=settings.pairs,
        expansion=settings.expansion,
        key=jax.random.key(settings.training.seed),
    )


def compiled(spec: str, settings: Settings, target: str = "auto") -> stmlang.CompiledScan:
    """One of the two specs at this study's sizes, planned for its batches."""
    side = SIDE // settings.stride
    op = stmlang.compile(
        spec,
        target=target,
        batch=settings.training.batch,
        rows=side,
        cols=side,
        heads=settings.heads,
        key=settings.width,
        value=settings.width,
    )
    assert isinstance(op, stmlang.CompiledScan), "its topologies are grids, and their sizes are given"
    return op


def cross_compiled(settings: Settings) -> dict[str, str]:
    """Both specs as artifacts for each target, whatever this machine is: file names and sizes."""
    settings.training.out.mkdir(parents=True, exist_ok=True)
    written: dict[str, str] = {}
    for target in TARGETS:
        for spec in (P_SPEC, D_SPEC):
            name = f"{Path(spec).name}.{target}.stmx"
            compiled(spec, settings, target).export(settings.training.out / name)
            written[name] = f"{(settings.training.out / name).stat().st_size:,} bytes"
    return written
