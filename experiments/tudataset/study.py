"""The study, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Array
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import stmlang
from stmlang.experiments.tudataset.data import Fold, Graphs, bucket, folds, load
from stmlang.experiments.tudataset.download import fetched
from stmlang.experiments.tudataset.kept import Entry, Place, Result
from stmlang.experiments.tudataset.report import write
from stmlang.experiments.tudataset.settings import D_SPEC, P_SPEC, Settings
from stmlang.experiments.tudataset.training import Trainer
from stmlang.models.graph.baselines import GNN
from stmlang.models.graph.inputs import GraphModel
from stmlang.models.graph.plstm import PLSTM
from stmlang.plan.cache import cache_folder


def run(settings: Settings, console: Console) -> dict[str, dict[Entry, list[Result]]]:
    """Train everything that is not done yet, and write tables and figures to `settings.out`, anew after each model.

    Raises StudyError and SpecError for what somebody can put right.
    """
    settings.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[Entry, list[Result]]] = {}
    for name in settings.sets:
        graphs = load(folder(name, settings), name)
        found[name] = {}
        for entry in entries(settings):
            found[name][entry] = crossed(entry, graphs, settings, console)
            write(found, settings)
    return found


def folder(name: str, settings: Settings) -> Path:
    """Where a data set lies, fetched from the archive if it has to be."""
    return fetched(name, settings.archive, cache_folder() / "tudataset") if settings.data is None else settings.data / name


def entries(settings: Settings) -> Iterator[Entry]:
    """What is trained, in order."""
    for model in settings.models:
        yield from [Entry(model, None)] if model == "plstm" else [Entry(model, depth) for depth in settings.depths]


def maker(entry: Entry, graphs: Graphs, settings: Settings) -> Callable[[Array], GraphModel]:
    """What makes a model of its random key. The scans of all that it makes are the same, and so compiled once."""
    sizes = {"classes": graphs.classes, "node_features": graphs.node_features, "edge_features": graphs.edge_features}
    if entry.model != "plstm":
        assert entry.depth is not None
        return _keyed(partial(GNN, entry.model, depth=entry.depth, dim=settings.hidden, **sizes))
    heads, width = settings.heads, settings.width
    p, d = (stmlang.compile(spec, heads=heads, key=width, value=width) for spec in (P_SPEC, D_SPEC))
    return _keyed(partial(PLSTM, p, d, dim=settings.dim, pairs=settings.pairs, expansion=settings.expansion, **sizes))


def _keyed(make: Callable[..., GraphModel]) -> Callable[[Array], GraphModel]:
    def made(key: Array) -> GraphModel:
        return make(key=key)

    return made


def crossed(entry: Entry, graphs: Graphs, settings: Settings, console: Console) -> list[Result]:
    """The results of an entry on a data set, fold by fold, those that are not there trained first."""
    place = Place(settings.out / graphs.name / str(entry), settings)
    numbers = range(settings.folds)
    if all(place.result(number) is not None for number in numbers):
        return [result for number in numbers if (result := place.result(number)) is not None]
    splits = folds(graphs, settings)
    trainer = Trainer(maker(entry, graphs, settings), graphs, bucket(graphs, splits, settings), settings)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    results: list[Result] = []
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"{graphs.name} {entry}", total=settings.folds * settings.epochs, note="compiling")
        for number in numbers:

            def tell(done: int, note: str, number: int = number) -> None:
                progress.update(task, completed=number * settings.epochs + done, note=f"fold {number + 1}, {note}")

            result = place.result(number)
            results.append(_trained(trainer, place, splits[number], tell) if result is None else result)
            tell(settings.epochs, f"test accuracy {results[-1].best.test:.1%}")
    tests = np.asarray([result.best.test for result in results])
    console.print(
        f"{graphs.name} {entry}: test accuracy {tests.mean():.4f} +- {tests.std():.4f} over {len(tests)} folds, "
        f"{trainer.parameters:,} parameters, {trainer.programs} programs compiled"
    )
    return results


def _trained(trainer: Trainer, place: Place, fold: Fold, tell: Callable[[int, str], None]) -> Result:
    """Train on a fold from wherever it was left."""
    state = place.state(fold.number, trainer.start(fold))
    while len(state.curve) < trainer.settings.epochs:
        state = trainer.epoch(state, fold)
        place.keep_state(fold.number, state)
        last = state.curve[-1]
        tell(len(state.curve), f"loss {last.loss:.3f}, validation {last.validation:.1%}")
    return place.keep_result(fold.number, trainer.parameters, state)
