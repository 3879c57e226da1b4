"""The study, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Array
from rich.console import Console

from stmlang.cost.cache import cache_folder
from stmlang.experiments.folds.graphs import Fold, bucket
from stmlang.experiments.folds.kept import Place, Result
from stmlang.experiments.folds.models import keyed, plstm
from stmlang.experiments.folds.study import Crossing
from stmlang.experiments.folds.study import crossed as folds_crossed
from stmlang.experiments.folds.training import Trainer
from stmlang.experiments.tudataset.classes import Classes, Epoch
from stmlang.experiments.tudataset.data import folds, load
from stmlang.experiments.tudataset.download import fetched
from stmlang.experiments.tudataset.report import write
from stmlang.experiments.tudataset.settings import Entry, Settings
from stmlang.graph import GraphSet
from stmlang.models.graph.baselines import GNN
from stmlang.models.graph.inputs import GraphModel


def run(settings: Settings, console: Console) -> dict[str, dict[Entry, list[Result[Epoch]]]]:
    """Train everything that is not done yet, and write tables and figures to `settings.out`, anew after each model.

    Raises StudyError and SpecError for what somebody can put right.
    """
    settings.out.mkdir(parents=True, exist_ok=True)
    by_set: dict[str, dict[Entry, list[Result[Epoch]]]] = {}
    for name in settings.sets:
        graphs = load(folder(name, settings), name)
        by_set[name] = {}
        for entry in entries(settings):
            by_set[name][entry] = crossed(entry, graphs, settings, console)
            write(by_set, settings)
    return by_set


def folder(name: str, settings: Settings) -> Path:
    """Where a data set lies, fetched from the archive if it has to be."""
    return fetched(name, settings.archive, cache_folder() / "tudataset") if settings.data is None else settings.data / name


def entries(settings: Settings) -> Iterator[Entry]:
    """What is trained, in order."""
    for model in settings.models:
        yield from [Entry(model, None)] if model == "plstm" else [Entry(model, depth) for depth in settings.depths]


def maker(entry: Entry, graphs: GraphSet, settings: Settings) -> Callable[[Array], GraphModel]:
    """What makes a model of its random key. The scans of all that it makes are the same, and so compiled once."""
    sizes: dict[str, Any] = {
        "classes": graphs.classes,
        "node_features": graphs.node_features,
        "edge_features": graphs.edge_features,
    }
    if entry.model != "plstm":
        assert entry.depth is not None
        return keyed(partial(GNN, entry.model, depth=entry.depth, dim=settings.hidden, **sizes))
    return keyed(plstm(settings, **sizes))


def trainer(entry: Entry, graphs: GraphSet, splits: list[Fold], settings: Settings) -> Trainer[Epoch]:
    """What trains an entry on a data set, in batches of one shape."""
    return Trainer(maker(entry, graphs, settings), Classes(graphs), bucket(graphs.dags, splits, settings), settings)


def crossed(entry: Entry, graphs: GraphSet, settings: Settings, console: Console) -> list[Result[Epoch]]:
    """The results of an entry on a data set, fold by fold, those that are not there trained first."""

    def begin() -> tuple[Trainer[Epoch], list[Fold]]:
        splits = folds(graphs, settings)
        return trainer(entry, graphs, splits, settings), splits

    def words(results: list[Result[Epoch]]) -> str:
        tests = np.asarray([result.best.test for result in results])
        return f"test accuracy {tests.mean():.4f} +- {tests.std():.4f} over {len(tests)} folds"

    crossing = Crossing(
        name=f"{graphs.name} {entry}",
        place=Place(settings.out / graphs.name / str(entry), settings, Epoch),
        folds=settings.folds,
        begin=begin,
        epoch_words=lambda epoch: f"loss {epoch.loss:.3f}, validation {epoch.validation:.1%}",
        best_words=lambda epoch: f"test accuracy {epoch.test:.1%}",
        words=words,
    )
    return folds_crossed(crossing, console)
