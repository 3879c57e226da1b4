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
from stmlang.experiments.digits.data import CLASSES, SIDE, Images, load
from stmlang.experiments.digits.receptive import at_the_start, trained
from stmlang.experiments.digits.report import Outcome, write
from stmlang.experiments.digits.settings import D_SPEC, P_SPEC, Settings
from stmlang.experiments.digits.training import Epoch, predict, train
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
        p, d = (compiled(spec, settings) for spec in (P_SPEC, D_SPEC))
        artifacts = cross_compiled(settings)
    for name, size in artifacts.items():
        console.print(f"wrote {settings.out / name} ({size})")
    train_images, test_images = load()
    model = PLSTM(
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
    with clock.stage("training, with compilation"):
        model, curve = _train(model, train_images, settings, console)
    with clock.stage("testing"):
        predicted = predict(model, test_images)
    with clock.stage("receptive fields"):
        fields = [*trained(model, test_images.pixels[0]), *at_the_start(settings)]
    right = int((predicted == test_images.labels).sum())
    outcome = Outcome(
        settings=settings,
        accuracy=right / len(test_images),
        right=right,
        images=len(test_images),
        parameters=sum(array.size for array in _parameters(model)),
        digest=digest(model),
        curve=curve,
        confusion=_confusion(predicted, test_images),
        fields=fields,
        plans={P_SPEC: p.explain(), D_SPEC: d.explain()},
        artifacts=artifacts,
        seconds=clock.seconds,
    )
    write(outcome, settings.out / "report.html")
    return outcome


def compiled(spec: str, settings: Settings, target: str = "auto") -> stmlang.CompiledScan | stmlang.OpenScan:
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
    assert not isinstance(op, stmlang.GraphScan), "its topologies are grids"
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
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("training", total=settings.epochs, note="compiling")

        def report(number: int, epoch: Epoch) -> None:
            progress.update(task, completed=number, note=f"loss {epoch.loss:.3f}, accuracy {epoch.accuracy:.1%}")

        return train(model, images, settings, report)


def _confusion(predicted: np.ndarray, images: Images) -> np.ndarray:
    matrix = np.zeros((CLASSES, CLASSES), np.int64)
    np.add.at(matrix, (images.labels, predicted), 1)
    return matrix
