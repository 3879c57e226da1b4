"""A TUDataset folder as what a model is trained on: DAGs, features, classes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.orient import Order, checked_order, checked_seed, orient
from stmlang.graph.readers.files import path_text
from stmlang.graph.readers.tudataset import TUDataset, file_of, read_tudataset, sets_among
from stmlang.graph.refusal import refusal, shown
from stmlang.source.suggest import did_you_mean

if TYPE_CHECKING:
    from jaxtyping import Float32, Float64, Int32, Int64

Unknown = Literal["degrees", "ones"]
MOST_DEGREES = 64
"""Nodes of more edges than this have the feature of those with as many."""
MOST_NEIGHBOURS = 1000
"""Folders and files that are looked at for a data set of another name."""


@dataclass(frozen=True, eq=False)
class GraphSet:
    """A data set of graphs, each undirected edge led from the node that comes first in an order to the other.

    Features are labels, one place for each that occurs, and behind them attributes as they are; rows of `edges` belong to the
    edges of the DAGs. Classes count from 0: class `c` is what the file writes as `values[c]`. A set without classes has no
    labels; where it has numbers to predict they are `targets`.
    """

    name: str
    dags: tuple[DAG, ...]
    nodes: tuple[Float32[np.ndarray, "nodes node_features"], ...]
    edges: tuple[Float32[np.ndarray, "edges edge_features"], ...]
    labels: Int32[np.ndarray, " graphs"] | None
    values: tuple[int, ...]
    targets: Float64[np.ndarray, "graphs targets"] | None

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


def tudataset(
    name: str, folder: str | os.PathLike[str], *, order: Order = "index", seed: int = 0, unknown: Unknown = "degrees"
) -> GraphSet:
    """The data set `NAME` whose files lie in a folder, or in a folder `NAME` there: `NAME_A.txt` and its companions.

    `order` and `seed` say which way edges lead, as in `orient`. `unknown` are the features of nodes of which the set says
    nothing: `degrees`, a place for each number of edges that occurs, from `MOST_DEGREES` on the same; or `ones`. Raises
    SpecError: STM3401 where there is no such set, STM3506 for an unknown order, and what `read_tudataset` raises.
    """
    order, seed = checked_order(order), checked_seed(seed)
    if unknown not in get_args(Unknown):
        message = f"nodes of which nothing is known cannot have the features {shown(unknown)}"
        raise refusal("STM3509", message, 'say `unknown="degrees"` or `unknown="ones"`')
    read = read_tudataset(_place(name, Path(path_text(folder))), name)
    values, labels = (None, None) if read.graph_labels is None else np.unique(read.graph_labels, return_inverse=True)
    nodes = _encoded(read.node_labels, read.node_attributes, int(read.node_start[-1]))
    if not nodes.shape[1]:
        nodes = _degrees(read) if unknown == "degrees" else np.ones((len(nodes), 1), np.float32)
    edges = _encoded(read.edge_labels, read.edge_attributes, int(read.edge_start[-1]))
    return GraphSet(
        name=name,
        dags=tuple(orient(graph.edges, graph.node_count, order, seed) for graph in read),
        nodes=tuple(np.split(nodes, read.node_start[1:-1])),
        edges=tuple(np.split(edges, read.edge_start[1:-1])),
        labels=None if labels is None else labels.astype(np.int32),
        values=() if values is None else tuple(values.tolist()),
        targets=read.graph_attributes,
    )


def _encoded(
    labels: Int64[np.ndarray, "rows columns"] | None, attributes: Float64[np.ndarray, "rows attributes"] | None, rows: int
) -> Float32[np.ndarray, "rows features"]:
    """A place for each value of each column of labels, then the attributes."""
    columns = [] if labels is None else [column[:, None] == np.unique(column) for column in labels.T]
    blocks = [np.zeros((rows, 0), np.float32), *columns, *([] if attributes is None else [attributes])]
    return np.concatenate(blocks, axis=1).astype(np.float32)


def _degrees(read: TUDataset) -> Float32[np.ndarray, "nodes degrees"]:
    """A place for each degree that occurs."""
    counts = np.diff(read.edge_start)
    ends = read.edges + np.repeat(read.node_start[:-1], counts)[:, None]
    degree = np.bincount(ends.reshape(-1), minlength=int(read.node_start[-1]))
    return _encoded(np.minimum(degree, MOST_DEGREES)[:, None], None, len(degree))


def _place(name: object, folder: Path) -> Path:
    """The folder that holds the files of a set. Raises SpecError (STM3401) where there is none."""
    for place in (folder, folder / str(name)):
        if isinstance(name, str) and file_of(place, name, "A"):
            return place
    message = f"no file `{name}_A.txt` lies in the folder `{folder}`, nor in `{folder / str(name)}`"
    help = f"fetch the data set, `{name}.zip` of the TUDataset collection, and unpack it there"
    raise refusal("STM3401", message, did_you_mean(name, _names(folder), 'tudataset("{}", ...)') or help)


def _names(folder: Path) -> list[str]:
    """The data sets that lie in a folder."""
    try:
        entries = sorted(os.listdir(folder))[:MOST_NEIGHBOURS]
    except (OSError, ValueError):
        return []
    return [*sorted(sets_among(entries)), *(entry for entry in entries if file_of(folder / entry, entry, "A"))]
