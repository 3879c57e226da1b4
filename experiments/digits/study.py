"""The study, step by step."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import stmlang
from stmlang.ending import rescuing
from stmlang.experiments.digits.data import CLASSES, SIDE, Images, load
from stmlang.experiments.digits.receptive import compared
from stmlang.experiments.digits.report import Choice, Outcome, write
from stmlang.experiments.digits.settings import D_SPEC, P_SPEC, Settings
from stmlang.experiments.digits.testing import confusion, mistakes, probabilities
from stmlang.experiments.digits.training import Epoch, train
from stmlang.models.vision.plstm import PLSTM

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
    """Compile, train, test, and write the report to `settings.out`."""
    clock = Clock()
    with clock.stage("compiling the specs, writing artifacts"):
        scans = {spec: compiled(spec, settings) for spec in (P_SPEC, D_SPEC)}
        artifacts = cross_compiled(settings)
    for name, size in artifacts.items():
        console.print(f"wrote {settings.out / name} ({size})")
    train_images, test_images = load()
    start = _model(scans[P_SPEC], scans[D_SPEC], settings)
    with clock.stage("training, with compilation"):
        model, curve = _train(start, train_images, settings, console)
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
        parameters=sum(array.size for array in _parameters(model)),
        digest=digest(model),
        curve=curve,
        confusion=confusion(predicted, test_images),
        mistakes=mistakes(probability, test_images),
        fields=fields,
        plans={spec: Choice(op.plan, op.explain()) for spec, op in scans.items()},
        artifacts=artifacts,
        seconds=clock.seconds,
    )
    write(outcome, settings.out / "report.html")
    return outcome


def _model(p: stmlang.CompiledScan, d: stmlang.CompiledScan, settings: Settings) -> PLSTM:
    """The classifier as it starts."""
    return PLSTM(
        p,
        d,
        classes=CLASSES,
        channels=1,
        patch=settings.patch,
        stride=settings.stride,
        dim=settings.dim,
        pairs=settings.pairs,
        expansion=settings.expansion,
        key=jax.random.key(settings.seed),
    )


def compiled(spec: str, settings: Settings, target: str = "auto") -> stmlang.CompiledScan:
    """One of the two specs at this study's sizes, planned for its batches."""
    side = SIDE // settings.stride
    op = stmlang.compile(
        spec,
        target=target,
        batch=settings.batch,
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
    settings.out.mkdir(parents=True, exist_ok=True)
    written: dict[str, str] = {}
    for target in TARGETS:
        for spec in (P_SPEC, D_SPEC):
            name = f"{Path(spec).name}.{target}.stmx"
            compiled(spec, settings, target).export(settings.out / name)
            written[name] = f"{(settings.out / name).stat().st_size:,} bytes"
    return written


def digest(model: PLSTM) -> str:
    """SHA-256 of the parameters, in order."""
    state = hashlib.sha256()
    for array in _parameters(model):
        state.update(np.asarray(array).tobytes())
    return state.hexdigest()


def _parameters(model: PLSTM) -> list[jax.Array]:
    return jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))


def _train(model: PLSTM, images: Images, settings: Settings, console: Console) -> tuple[PLSTM, list[Epoch]]:
    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress, rescuing(progress.stop):
        task = progress.add_task("training", total=settings.epochs, note="compiling")

        def report(number: int, epoch: Epoch) -> None:
            progress.update(task, completed=number, note=f"loss {epoch.loss:.3f}, accuracy {epoch.accuracy:.1%}")

        return train(model, images, settings, report)
