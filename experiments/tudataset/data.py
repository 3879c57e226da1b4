"""A data set as graphs with features, and its ten folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float32, Int32, Int64

from stmlang.experiments.folds.errors import StudyError
from stmlang.experiments.folds.graphs import Fold
from stmlang.experiments.tudataset.settings import FOLDS, Settings
from stmlang.graph import DAG
from stmlang.graph.orient import orient
from stmlang.graph.readers import TUDataset, read_tudataset


@dataclass(frozen=True, eq=False)
class Graphs:
    """A data set: each edge leads from the node of the lower number to the other, as in the authors' code.

    Features are labels, one place for each that occurs, and behind them attributes as they are. Classes count from 0: class `c`
    is what the file writes as `values[c]`.
    """

    name: str
    dags: tuple[DAG, ...]
    nodes: tuple[Float32[np.ndarray, "nodes node_features"], ...]
    edges: tuple[Float32[np.ndarray, "edges edge_features"], ...]
    labels: Int32[np.ndarray, " graphs"]
    values: tuple[int, ...]

    @property
    def classes(self) -> int:
        return len(self.values)

    def __len__(self) -> int:
        return len(self.dags)

    @property
    def node_features(self) -> int:
        return self.nodes[0].shape[1]

    @property
    def edge_features(self) -> int:
        return self.edges[0].shape[1]


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
        values=tuple(values.tolist()),
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
