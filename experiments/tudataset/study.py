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
from stmlang.experiments.folds.graphs import Fold, bucket, node_counts
from stmlang.experiments.folds.kept import Result
from stmlang.experiments.folds.models import keyed, plstm
from stmlang.experiments.folds.problem import Learner
from stmlang.experiments.folds.study import Crossing, refuse_begun
from stmlang.experiments.folds.study import crossed as folds_crossed
from stmlang.experiments.tudataset.classes import Classes
from stmlang.experiments.tudataset.data import folds, load
from stmlang.experiments.tudataset.download import fetched
from stmlang.experiments.tudataset.report import write
from stmlang.experiments.tudataset.settings import Entry, Settings
from stmlang.graph import GraphSet
from stmlang.models.graph.baselines import GNN
from stmlang.models.graph.inputs import GraphModel


def run(settings: Settings, console: Console) -> dict[str, dict[Entry, list[Result]]]:
    """Train everything that is not done yet, and write tables and figures to `settings.training.out`, anew after each model.

    Raises TrainingError and SpecError for what somebody can put right.
    """
    refuse_begun(settings.training.out, settings.training.resume)
    settings.training.out.mkdir(parents=True, exist_ok=True)
    by_set: dict[str, dict[Entry, list[Result]]] = {}
    for name in dict.fromkeys(settings.sets):
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
    for model in dict.fromkeys(settings.models):
        depths = sorted(set(settings.depths))
        yield from [Entry(model, None)] if model == "plstm" else [Entry(model, depth) for depth in depths]


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
    usual = None if settings.pooling == "mean" else usual_nodes(graphs)
    return keyed(plstm(settings, usual_nodes=usual, **sizes))


def usual_nodes(graphs: GraphSet) -> float:
    """The mean number of nodes of a graph of the set, rounded: whatever the fold, the model is the same."""
    return float(round(node_counts(graphs.dags).mean()))


def learner(entry: Entry, graphs: GraphSet, splits: list[Fold], settings: Settings) -> Learner:
    """What trains an entry on a data set, in batches of one shape."""
    return Learner(maker(entry, graphs, settings), Classes(graphs), bucket(graphs.dags, splits, settings.training))


def crossed(entry: Entry, graphs: GraphSet, settings: Settings, console: Console) -> list[Result]:
    """The results of an entry on a data set, fold by fold, those that are not there trained first."""

    def begin() -> tuple[Learner, list[Fold]]:
        splits = folds(graphs, settings)
        return learner(entry, graphs, splits, settings), splits

    def words(results: list[Result]) -> str:
        tests = np.asarray([result.best["test"] for result in results])
        return f"test accuracy {tests.mean():.4f} +- {tests.std():.4f} over {len(tests)} folds"

    crossing = Crossing(
        name=f"{graphs.name} {entry}",
        folds=settings.folds,
        own=lambda fold: settings.of(graphs.name, entry, fold),
        begin=begin,
        best_words=lambda result: f"test accuracy {result.best['test']:.1%}",
        words=words,
    )
    return folds_crossed(crossing, console)
