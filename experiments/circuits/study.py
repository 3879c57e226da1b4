"""The study, step by step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array
from rich.console import Console

from stmlang.experiments.circuits.data import Cones, folds, load
from stmlang.experiments.circuits.report import Outcome, write
from stmlang.experiments.circuits.settings import Model, Settings
from stmlang.experiments.circuits.task import Probability
from stmlang.experiments.folds.graphs import Fold, covering
from stmlang.experiments.folds.kept import Result
from stmlang.experiments.folds.models import keyed, plstm
from stmlang.experiments.folds.problem import Learner
from stmlang.experiments.folds.study import Crossing, crossed, refuse_begun
from stmlang.models.graph.baselines import GNN, Kind
from stmlang.models.graph.inputs import GraphModel

SIZES: dict[str, Any] = {"classes": 1, "node_features": 2, "edge_features": 1, "readout": "nodes"}
WIDTHS = range(4, 513, 4)
"""Numbers of features that a network may have."""


def run(settings: Settings, console: Console) -> Outcome:
    """Train everything that is not done yet, and write the page and its figure to `settings.training.out`, anew after each
    model.

    Raises TrainingError and SpecError for what somebody can put right.
    """
    refuse_begun(settings.training.out, settings.training.resume)
    settings.training.out.mkdir(parents=True, exist_ok=True)
    dataset = load(settings)
    problem, splits = Probability(dataset), folds(dataset, settings)[: settings.folds]
    simple = {
        "mean": [problem.always_the_mean(fold) for fold in splits],
        "independent": [problem.as_if_independent(fold) for fold in splits],
    }
    outcome = Outcome(dataset, simple, {})
    for model in dict.fromkeys(settings.models):
        outcome.models[model] = trained(model, dataset, settings, console)
        write(outcome, settings)
    return outcome


def trained(model: Model, dataset: Cones, settings: Settings, console: Console) -> list[Result]:
    """The results of a model, fold by fold, those that are not there trained first."""

    def begin() -> tuple[Learner, list[Fold]]:
        splits = folds(dataset, settings)
        return learner(model, dataset, splits, settings.of(model)), splits

    def words(results: list[Result]) -> str:
        tests = np.asarray([result.best["test"] for result in results])
        return f"test error {tests.mean():.4f} +- {tests.std():.4f} over {len(tests)} folds"

    crossing = Crossing(
        name=model,
        folds=settings.folds,
        own=lambda fold: settings.on(model, fold),
        begin=begin,
        best_words=lambda result: f"test error {result.best['test']:.4f}",
        words=words,
    )
    return crossed(crossing, console)


def learner(model: Model, dataset: Cones, splits: list[Fold], settings: Settings) -> Learner:
    """What trains a model, in batches that share one program."""
    room = covering(dataset.dags, splits, settings.training)
    return Learner(maker(model, settings), Probability(dataset), room)


def maker(model: Model, settings: Settings) -> Callable[[Array], GraphModel]:
    """What makes a model of its random key. The scans of all that it makes are the same, and so compiled once."""
    ours = plstm(settings, **SIZES)
    return keyed(ours if model == "plstm" else _network(model, matched(model, _parameters(ours), settings), settings))


def matched(kind: Kind, parameters: int, settings: Settings) -> int:
    """The number of features that gives a network as many parameters, as nearly as it can be."""

    def count(dim: int) -> int:
        return _parameters(_network(kind, dim, settings))

    place = bisect_left(WIDTHS, parameters, 1, len(WIDTHS) - 1, key=count)
    return min(WIDTHS[place - 1 : place + 1], key=lambda dim: abs(count(dim) - parameters))


def _network(kind: Kind, dim: int, settings: Settings) -> Callable[..., GraphModel]:
    return partial(GNN, kind, dim=dim, depth=settings.depth, directed=kind != "gin", **SIZES)


def _parameters(make: Callable[..., GraphModel]) -> int:
    shapes = cast(Any, eqx.filter_eval_shape(lambda: make(key=jax.random.key(0))))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes) if hasattr(leaf, "size"))
