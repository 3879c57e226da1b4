"""TUDataset folders: many undirected graphs in a few files of numbers.

    NAME_A.txt                  an edge in each line, `7, 12`, nodes counted from 1 through all graphs, both senses listed
    NAME_graph_indicator.txt    the graph of each node, from 1, in ascending order; each has a node
    NAME_graph_labels.txt       an integer for each graph
    NAME_node_labels.txt        integers for each node
    NAME_edge_labels.txt        integers for each line of `NAME_A.txt`
    NAME_node_attributes.txt    numbers likewise; so also `NAME_edge_attributes.txt` and `NAME_graph_attributes.txt`

All but the first two may be missing, and each may be packed by gzip, `NAME_A.txt.gz`. Lines that repeat an edge count once; how
many there are is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stmlang.graph.readers.files import open_file, path_text, refusal
from stmlang.graph.readers.table import integers, line_count, numbers
from stmlang.graph.readers.text import GraphFile
from stmlang.source import short
from stmlang.source.wording import listing

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64, Shaped

ANEW = "correct the file here, or fetch the data set anew"
ADVICE = {"STM3403": ANEW, "STM3411": ANEW}


@dataclass(frozen=True, eq=False)
class UndirectedGraph:
    """One graph: each edge once, the smaller node first, sorted. Isolated nodes are nodes."""

    node_count: int
    edges: Int64[np.ndarray, "edges 2"]
    node_labels: Int64[np.ndarray, "nodes labels"] | None
    edge_labels: Int64[np.ndarray, "edges labels"] | None
    node_attributes: Float64[np.ndarray, "nodes attributes"] | None
    edge_attributes: Float64[np.ndarray, "edges attributes"] | None

    __repr__ = short.fields


@dataclass(frozen=True, eq=False)
class TUDataset:
    """Graphs one after the other: graph `k` has the nodes from `node_start[k]` to `node_start[k + 1]`, and edges likewise.

    `edges` number the nodes within their graph. What a data set does not have is None. `repeated` is how many lines list an
    edge in a sense in which a line before has listed it.
    """

    name: str
    node_start: Int64[np.ndarray, " graphs+1"]
    edge_start: Int64[np.ndarray, " graphs+1"]
    edges: Int64[np.ndarray, "edges 2"]
    graph_labels: Int64[np.ndarray, " graphs"] | None
    node_labels: Int64[np.ndarray, "nodes labels"] | None
    edge_labels: Int64[np.ndarray, "edges labels"] | None
    graph_attributes: Float64[np.ndarray, "graphs attributes"] | None
    node_attributes: Float64[np.ndarray, "nodes attributes"] | None
    edge_attributes: Float64[np.ndarray, "edges attributes"] | None
    repeated: int

    __repr__ = short.fields

    def __len__(self) -> int:
        return len(self.node_start) - 1

    def __getitem__(self, number: int) -> UndirectedGraph:
        """One graph, which shares its arrays with the data set."""
        number = range(len(self))[number]
        nodes = slice(int(self.node_start[number]), int(self.node_start[number + 1]))
        edges = slice(int(self.edge_start[number]), int(self.edge_start[number + 1]))
        return UndirectedGraph(
            node_count=nodes.stop - nodes.start,
            edges=self.edges[edges],
            node_labels=None if self.node_labels is None else self.node_labels[nodes],
            edge_labels=None if self.edge_labels is None else self.edge_labels[edges],
            node_attributes=None if self.node_attributes is None else self.node_attributes[nodes],
            edge_attributes=None if self.edge_attributes is None else self.edge_attributes[edges],
        )

    def __iter__(self) -> Iterator[UndirectedGraph]:
        return (self[number] for number in range(len(self)))


def read_tudataset(folder: str | os.PathLike[str], name: str | None = None) -> TUDataset:
    """The data set in a folder; `name` is what its files begin with, None where only one set lies there.

    Raises SpecError, with the file and its line: STM3401 for a missing or unreadable file, STM3403 for what is no number or not
    the right count of them, STM3405 for an edge from a node to itself, STM3408 for a node or graph that is not there, STM3411
    for no node at all, STM3412, STM3413 as for any graph file, STM3416 for lines that contradict each other.
    """
    place = Path(path_text(folder))
    name = _name(place) if name is None else name
    graph = _graph_of_nodes(place, name)
    count = int(graph[-1]) + 1
    graph_labels = _values(place, name, "graph_labels", count)
    file = _open(place, name, "A")
    pairs = _pairs(file, graph)
    edges, edge_of_line = _once(file, pairs, len(graph))
    node_start = np.searchsorted(graph, np.arange(count + 1))
    return TUDataset(
        name=name,
        node_start=node_start,
        edge_start=np.searchsorted(graph[edges[:, 0]], np.arange(count + 1)),
        edges=edges - node_start[graph[edges[:, 0]]][:, None],
        graph_labels=None if graph_labels is None else graph_labels[:, 0],
        node_labels=_values(place, name, "node_labels", len(graph)),
        edge_labels=_values_of_edges(place, name, "edge_labels", edge_of_line),
        graph_attributes=_values(place, name, "graph_attributes", count),
        node_attributes=_values(place, name, "node_attributes", len(graph)),
        edge_attributes=_values_of_edges(place, name, "edge_attributes", edge_of_line),
        repeated=len(pairs) - 2 * len(edges),
    )


def _name(folder: Path) -> str:
    """The name of the one data set in a folder."""
    try:
        names = sorted(sets_among(os.listdir(folder)))
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise refusal(
            "STM3401", f"the folder `{folder}` cannot be read: {reason}", None, "name the folder of a data set"
        ) from None
    if not names:
        help = "name the folder that holds `NAME_A.txt` and its companions"
        raise refusal("STM3401", f"no file `NAME_A.txt` lies in the folder `{folder}`", None, help)
    if len(names) > 1:
        message = f"the folder `{folder}` holds several data sets: {listing(names, 'and')}"
        raise refusal("STM3401", message, None, f'say which one: `read_tudataset(..., "{names[0]}")`')
    return names[0]


def sets_among(entries: Iterable[str]) -> set[str]:
    """The names of the data sets whose files are among the entries of a folder."""
    plain = (entry.removesuffix(".gz") for entry in entries)
    return {entry.removesuffix("_A.txt") for entry in plain if entry.endswith("_A.txt")}


def file_of(folder: Path, name: str, what: str) -> Path | None:
    """A file of a data set, as it is or packed by gzip, if it is there."""
    plain = folder / f"{name}_{what}.txt"
    return next((path for path in (plain, plain.with_name(f"{plain.name}.gz")) if os.path.lexists(path)), None)


def _open(folder: Path, name: str, what: str) -> GraphFile:
    place = file_of(folder, name, what) or folder / f"{name}_{what}.txt"
    return replace(open_file(str(place), "tudataset"), advice=ADVICE)


def _companion(folder: Path, name: str, what: str, count: int) -> GraphFile | None:
    """A file that has a line for each of `count` things, if it is there."""
    if file_of(folder, name, what) is None:
        return None
    file = _open(folder, name, what)
    lines = line_count(file)
    if lines != count:
        message = f"this file has {lines:,} lines, where the others make it {count:,}"
        file.refuse("STM3416", message, file.line_at(lines), "fetch the data set anew")
    return file


def _lines(file: GraphFile, what: str) -> Shaped[np.ndarray, "lines columns"]:
    """Labels as integers, of which a graph has one, and attributes as numbers."""
    if what.endswith("labels"):
        return integers(file, ",", 1 if what == "graph_labels" else None)
    return numbers(file, ",")


def _values(folder: Path, name: str, what: str, count: int) -> Shaped[np.ndarray, "count columns"] | None:
    """What a file says of each of `count` things, None where there is none."""
    file = _companion(folder, name, what, count)
    return None if file is None else _lines(file, what)


def _values_of_edges(
    folder: Path, name: str, what: str, edge: Int64[np.ndarray, " lines"]
) -> Shaped[np.ndarray, "edges columns"] | None:
    """What a file says of each edge, in the lines that list it. Refuses lines of one edge that differ (STM3416)."""
    file = _companion(folder, name, what, len(edge))
    if file is None:
        return None
    values = _lines(file, what)
    _, first = np.unique(edge, return_index=True)
    wrong = np.flatnonzero((values != values[first[edge]]).any(axis=1))
    if wrong.size:
        line = int(wrong[0])
        before = int(first[edge[line]])
        file.refuse(
            "STM3416",
            f"the edge of line {line + 1} is that of line {before + 1}, and has another value",
            file.line_at(line + 1),
            "give an edge the same value in both senses",
            earlier=(file.line_at(before + 1), "the other sense"),
        )
    return values[first]


def _graph_of_nodes(folder: Path, name: str) -> Int64[np.ndarray, " nodes"]:
    """The graph of each node. Refuses a set without nodes (STM3411) and graphs that do not follow one another (STM3416)."""
    file = _open(folder, name, "graph_indicator")
    listed = integers(file, ",", 1)[:, 0]
    if not listed.size:
        file.refuse("STM3411", "this data set has no node", None)
    before = np.concatenate([[0], listed[:-1]])
    wrong = np.flatnonzero((listed < np.maximum(before, 1)) | (listed > before + 1))
    if wrong.size:
        line = int(wrong[0])
        message = f"graph `{listed[line]}` where `{before[line] + 1}` or the graph of the node before is expected"
        file.refuse("STM3416", message, file.line_at(line + 1), "number graphs from 1, and leave out none")
    return listed - 1


def _pairs(file: GraphFile, graph: Int64[np.ndarray, " nodes"]) -> Int64[np.ndarray, "lines 2"]:
    """The nodes that each line joins, from 0. Refuses edges of nodes that are not there (STM3408), of a node with itself
    (STM3405), and across graphs (STM3416)."""
    listed = integers(file, ",", 2)
    outside = np.argwhere((listed < 1) | (listed > len(graph)))
    if outside.size:
        message = f"there is no node `{listed[tuple(outside[0])]}`: there are {len(graph):,}"
        help = "nodes are numbered from 1, as lines of the file that gives their graphs"
        file.refuse("STM3408", message, file.line_at(int(outside[0, 0]) + 1), help)
    loop = np.flatnonzero(listed[:, 0] == listed[:, 1])
    if loop.size:
        line = int(loop[0])
        node = listed[line, 0]
        file.refuse("STM3405", f"the graph has a cycle: {node} -> {node}", file.line_at(line + 1), "remove the line")
    across = np.flatnonzero(graph[listed[:, 0] - 1] != graph[listed[:, 1] - 1])
    if across.size:
        line = int(across[0])
        first, second = graph[listed[line] - 1] + 1
        message = f"this edge joins the graphs `{first}` and `{second}`"
        file.refuse("STM3416", message, file.line_at(line + 1), ANEW)
    return listed - 1


def _once(
    file: GraphFile, pairs: Int64[np.ndarray, "lines 2"], node_count: int
) -> tuple[Int64[np.ndarray, "edges 2"], Int64[np.ndarray, " lines"]]:
    """Each edge once, the smaller node first, sorted, and the edge of each line. Refuses one in one sense only (STM3416)."""
    ends = np.sort(pairs, axis=1)
    # Files are below 2^28 bytes, so that this product stays far below 2^63.
    _, first, edge = np.unique(ends[:, 0] * node_count + ends[:, 1], return_index=True, return_inverse=True)
    forward = pairs[:, 0] < pairs[:, 1]
    senses = np.bincount(2 * edge + forward, minlength=2 * len(first)).reshape(-1, 2)
    single = first[(senses == 0).any(axis=1)]
    if single.size:
        line = int(single.min())
        tail, head = pairs[line] + 1
        message = f"the edge `{tail}, {head}` is not listed as `{head}, {tail}` too"
        help = "graphs of a data set are undirected and list their edges in both senses: fetch the data set anew"
        file.refuse("STM3416", message, file.line_at(line + 1), help)
    return ends[first], edge
