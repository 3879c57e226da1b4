"""A data set as graphs with features, and its ten folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Int32

from stmlang.experiments.folds.graphs import Fold
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.tudataset.settings import FOLDS, Settings
from stmlang.graph import GraphSet, tudataset


def load(folder: Path, name: str) -> GraphSet:
    """The data set in a folder, each edge led from the node of the lower number to the other, as in the authors' code. Nodes of
    which nothing is known have a one: models add a code of their degree. Raises SpecError where it cannot be read,
    TrainingError where its graphs have no labels."""
    graphs = tudataset(name, folder, unknown="ones")
    labels(graphs)
    return graphs


def labels(graphs: GraphSet) -> Int32[np.ndarray, " graphs"]:
    """The class of each graph. Raises TrainingError where a data set has none."""
    if graphs.labels is None:
        raise TrainingError(f"the graphs of {graphs.name} have no labels", "choose a data set with classes")
    return graphs.labels


def folds(graphs: GraphSet, settings: Settings) -> list[Fold]:
    """All ten: a tenth of each class for testing, a ninth of the rest for validation.

    Raises TrainingError where a class is too small to be divided like this.
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split  # pyright: ignore[reportUnknownVariableType]

    classes = labels(graphs)
    if int(np.bincount(classes).min()) < FOLDS:
        raise TrainingError(f"a class of {graphs.name} has fewer than {FOLDS} graphs", "choose a larger data set")
    outer = cast(Any, StratifiedKFold(FOLDS, shuffle=True, random_state=settings.split))
    splits: list[Fold] = []
    for number, (rest, test) in enumerate(outer.split(np.zeros(len(graphs)), classes)):
        stratify = classes[rest]
        subsets = cast(Any, train_test_split(rest, test_size=1 / 9, stratify=stratify, random_state=settings.split))
        splits.append(Fold(number, *(np.asarray(subset, np.int64) for subset in (*subsets, test))))
    return splits
