"""Data sets of graphs.

C29 (RexYing/diffpool#4, JuliaML/MLDatasets.jl#197 and #203, pyg-team/pytorch_geometric#2019, dmlc/dgl#2087). Readers of the
TU collection stumbled over labels -1 and 1, gave edges the attributes of others, took files in which a graph's number is left
out, and returned features of width zero. Here classes are mapped and the map is kept, an edge keeps its label, and what does
not fit together is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stmlang.experiments.tudataset.data import load
from stmlang.graph import batch
from stmlang.graph.orient import orient
from stmlang.graph.readers import read_tudataset
from stmlang.models.graph.inputs import Links, degree_code
from stmlang.source.diagnostic import SpecError
from tests.helpers.data import data_folder

SMALL = {
    "A": "1, 2\n2, 1\n3, 2\n2, 3\n6, 7\n7, 6\n5, 6\n6, 5\n5, 7\n7, 5\n",
    "graph_indicator": "1\n1\n1\n2\n3\n3\n3\n",
    "graph_labels": "-1\n1\n-1\n",
    "edge_labels": "8\n8\n2\n2\n5\n5\n9\n9\n4\n4\n",
}
"""A path, one node, and a triangle whose edges are listed in no order."""


def written(folder: Path, *, end: str = "\n", tail: str = "", **changed: str) -> Path:
    for what, content in (SMALL | changed).items():
        (folder / f"SMALL_{what}.txt").write_bytes((content + tail).replace("\n", end).encode())
    return folder


@pytest.mark.parametrize("tail", ["", "\n", "\n\n"], ids=["no blank line", "a blank line", "blank lines"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_C29_labels_nodes_and_edges_stay_together(end: str, tail: str, tmp_path: Path) -> None:
    """Labels are the file's own, -1 among them; a graph of one node without edges is one; each edge keeps its label."""
    found = read_tudataset(written(tmp_path, end=end, tail=tail))
    assert found.graph_labels is not None
    assert found.graph_labels.tolist() == [-1, 1, -1]
    assert [graph.node_count for graph in found] == [3, 1, 3]
    labels: list[dict[tuple[int, ...], int]] = []
    for graph in found:
        assert graph.edge_labels is not None
        labels.append(dict(zip(map(tuple, graph.edges.tolist()), graph.edge_labels[:, 0].tolist(), strict=True)))
    assert labels == [{(0, 1): 8, (1, 2): 2}, {}, {(1, 2): 5, (0, 1): 9, (0, 2): 4}]


def test_C29_edges_keep_their_labels_in_a_batch(tmp_path: Path) -> None:
    """Whatever way they come to point."""
    found = read_tudataset(written(tmp_path))
    for seed in range(4):
        here = batch([orient(graph.edges, graph.node_count, "random", seed) for graph in found])
        labels = here.edges([graph.edge_labels for graph in found])[here.edge_mask, 0].tolist()
        ends = np.sort(np.stack([here.tail, here.head], 1)[here.edge_mask], axis=1)
        assert dict(zip(map(tuple, ends.tolist()), labels, strict=True)) == {
            (0, 1): 8,
            (1, 2): 2,
            (5, 6): 5,
            (4, 5): 9,
            (4, 6): 4,
        }


def test_C29_what_a_set_does_not_have_is_none(tmp_path: Path) -> None:
    """No features is not features of no width."""
    found = read_tudataset(written(tmp_path))
    assert found.node_labels is found.node_attributes is found.edge_attributes is None
    assert found[0].node_labels is None


def test_C29_classes_count_from_0_and_say_what_they_were(tmp_path: Path) -> None:
    """In the order of the labels, and the labels are kept."""
    (tmp_path / "SMALL").mkdir()
    written(tmp_path / "SMALL", graph_labels="7\n-1\n7\n")
    found = load(tmp_path / "SMALL", "SMALL")
    assert (found.labels.tolist(), found.values, found.classes) == ([1, 0, 1], (-1, 7), 2)


def test_C29_degrees_where_a_set_says_nothing_of_its_nodes(tmp_path: Path) -> None:
    """A one for each node, to which the model adds a code of its degree: a loner, the ends and the middle of a path, and the
    nodes of a triangle come out as different as their degrees are."""
    found = load(written(tmp_path), "SMALL")
    assert [rows.tolist() for rows in found.nodes] == [[[1.0]] * 3, [[1.0]], [[1.0]] * 3]
    here = batch(found.dags)
    links = Links.of(here.arrays, here.edges(found.edges))
    assert links.degree[here.node_mask].tolist() == [1, 2, 1, 0, 2, 2, 2]
    code = np.asarray(degree_code(links.degree, 8))[here.node_mask]
    assert len(np.unique(code, axis=0)) == 3
    assert np.ptp(code[[1, 4, 5, 6]], axis=0).max() == 0


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"graph_indicator": "1\n1\n1\n3\n4\n4\n4\n"}, 4),
        ({"graph_indicator": "0\n0\n0\n1\n2\n2\n2\n"}, 1),
        ({"A": SMALL["A"].replace("1, 2\n2, 1\n", "0, 1\n1, 0\n")}, 1),
        ({"A": SMALL["A"].replace("5, 7\n7, 5\n", "4, 7\n7, 4\n")}, 9),
        ({"edge_labels": SMALL["edge_labels"].replace("4\n4\n", "")}, 8),
        ({"edge_labels": SMALL["edge_labels"].replace("5\n5\n9\n9\n", "5\n9\n5\n9\n")}, 6),
    ],
    ids=["skipped graph", "graphs from 0", "nodes from 0", "edge across graphs", "label missing", "labels out of step"],
)
def test_C29_what_does_not_fit_together_is_refused(changed: dict[str, str], line: int, tmp_path: Path) -> None:
    """Files that contradict each other, a graph's number that is left out among them; the error points at the line."""
    with pytest.raises(SpecError) as caught:
        read_tudataset(written(tmp_path, **changed))
    (found,) = caught.value.diagnostics
    assert found.code in ("STM3416", "STM3408")
    assert found.span is not None
    assert found.span.file.position(found.span.start)[0] == line


@pytest.mark.parametrize(("name", "count"), [("MUTAG", 188), ("PTC_FM", 349), ("PROTEINS", 1113), ("NCI1", 4110)])
def test_C29_real_sets_have_all_their_graphs(name: str, count: int) -> None:
    """As many as are published, of two classes, and all of them make one batch."""
    found = read_tudataset(data_folder("data/tu") / name)
    assert len(found) == count
    assert found.graph_labels is not None
    assert len(np.unique(found.graph_labels)) == 2
    assert batch([orient(graph.edges, graph.node_count) for graph in found]).count == count
