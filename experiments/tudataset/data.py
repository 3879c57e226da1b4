"""A data set as graphs with features, its ten folds, and the batches of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, Int32, Int64

from stmlang.experiments.tudataset.errors import StudyError
from stmlang.experiments.tudataset.settings import FOLDS, Settings
from stmlang.graph import DAG, Bucket
from stmlang.graph.batch import ALIGNMENT, SPARE_EDGES, SPARE_NODES
from stmlang.graph.orient import orient
from stmlang.graph.readers import TUDataset, read_tudataset

Numbers = Int64[np.ndarray, " chosen"]
"""Which graphs of a data set."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """A data set: each edge leads from the node of the lower number to the other, as in the authors' code.

    Features are labels, one place for each that occurs, and behind them attributes as they are.
    """

    name: str
    dags: tuple[DAG, ...]
    nodes: tuple[Float32[np.ndarray, "nodes node_features"], ...]
    edges: tuple[Float32[np.ndarray, "edges edge_features"], ...]
    labels: Int32[np.ndarray, " graphs"]
    classes: int

    def __len__(self) -> int:
        return len(self.dags)

    @property
    def node_features(self) -> int:
        return self.nodes[0].shape[1]

    @property
    def edge_features(self) -> int:
        return self.edges[0].shape[1]


@dataclass(frozen=True, eq=False)
class Fold:
    """Which graphs a model learns from, which decide when it was best, and which say how good it was then."""

    number: int
    train: Numbers
    validation: Numbers
    test: Numbers


def load(folder: Path, name: str) -> Graphs:
    """The data set in a folder. Raises SpecError where it cannot be read, StudyError where its graphs have no labels."""
    read = read_tudataset(folder, name)
    if read.graph_labels is None:
        raise StudyError(f"the graphs of {name} have no labels", "choose a data set with classes")
    values, labels = np.unique(read.graph_labels, return_inverse=True)
    nodes, edges = (_split(*part) for part in _features(read))
    return Graphs(
        name=name,
        dags=tuple(orient(graph.edges, graph.node_count) for graph in read),
        nodes=nodes,
        edges=edges,
        labels=labels.astype(np.int32),
        classes=len(values),
    )


def _features(read: TUDataset) -> Iterator[tuple[Float32[np.ndarray, "rows features"], Int64[np.ndarray, " starts"]]]:
    """Features of nodes and of edges, and where those of each graph begin. Nodes of which nothing is known have a one."""
    nodes = _encoded(read.node_labels, read.node_attributes, int(read.node_start[-1]))
    yield (nodes if nodes.shape[1] else np.ones((len(nodes), 1), np.float32)), read.node_start
    yield _encoded(read.edge_labels, read.edge_attributes, int(read.edge_start[-1])), read.edge_start


def _encoded(
    labels: Int64[np.ndarray, "rows columns"] | None, attributes: np.ndarray | None, rows: int
) -> Float32[np.ndarray, "rows features"]:
    """A place for each value of each column of labels, then the attributes."""
    columns = [] if labels is None else [column[:, None] == np.unique(column) for column in labels.T]
    parts = [np.zeros((rows, 0), np.float32), *columns, *([] if attributes is None else [attributes])]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _split(rows: Float32[np.ndarray, "rows features"], start: Int64[np.ndarray, " starts"]) -> tuple[Any, ...]:
    return tuple(np.split(rows, start[1:-1]))


def folds(graphs: Graphs, settings: Settings) -> list[Fold]:
    """All ten: a tenth of each class for testing, a ninth of the rest for validation.

    Raises StudyError where a class is too small to be divided like this.
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split  # pyright: ignore[reportUnknownVariableType]

    if int(np.bincount(graphs.labels).min()) < FOLDS:
        raise StudyError(f"a class of {graphs.name} has fewer than {FOLDS} graphs", "choose a larger data set")
    outer = cast(Any, StratifiedKFold(FOLDS, shuffle=True, random_state=settings.split))
    found: list[Fold] = []
    for number, (rest, test) in enumerate(outer.split(np.zeros(len(graphs)), graphs.labels)):
        stratify = graphs.labels[rest]
        parts = cast(Any, train_test_split(rest, test_size=1 / 9, stratify=stratify, random_state=settings.split))
        found.append(Fold(number, *(np.asarray(part, np.int64) for part in (*parts, test))))
    return found


@dataclass(frozen=True, eq=False)
class Part:
    """A batch: `graphs` are as many as any batch has, of which the first `count` count. The others only fill it up."""

    graphs: Numbers
    count: int


def parts(numbers: Numbers, size: int) -> list[Part]:
    """Graphs in batches of `size`, the last one filled up from the front.

    A batch that is not full would take other tables than all the rest, and so a program of its own.
    """
    starts = range(0, len(numbers), size)
    filled = np.resize(numbers, len(starts) * size)
    return [Part(filled[start : start + size], min(size, len(numbers) - start)) for start in starts]


def epoch_order(fold: Fold, epoch: int, settings: Settings) -> Numbers:
    """The graphs that a model learns from, in the order of an epoch, which no epoch before has a part in."""
    return np.random.default_rng([settings.seed, fold.number, epoch]).permutation(fold.train)


def bucket(graphs: Graphs, splits: list[Fold], settings: Settings) -> Bucket:
    """One shape for every batch of the study of a data set: of all folds and epochs, in training and in evaluation."""
    sizes = np.asarray([(dag.node_count, dag.edge_count) for dag in graphs.dags], np.int64)
    most = np.zeros(2, np.int64)
    for fold in splits:
        orders = [epoch_order(fold, epoch, settings) for epoch in range(settings.epochs)]
        for order in (*orders, evaluated(fold)):
            for part in parts(order, settings.batch):
                most = np.maximum(most, sizes[part.graphs].sum(axis=0))
    needed = most + np.asarray([SPARE_NODES, SPARE_EDGES])
    nodes, edges = (int(count) for count in -(-needed // ALIGNMENT) * ALIGNMENT)
    return Bucket(nodes, edges, settings.batch)


def evaluated(fold: Fold) -> Numbers:
    """The graphs whose classes are predicted after every epoch: for validation, then for the test."""
    return np.concatenate([fold.validation, fold.test])
