"""A data set in one call: DAGs, features, classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stmlang.graph import batch, tudataset
from tests.api.refusals import Refusal, refused
from tests.graph.test_dataset_tu import write
from tests.helpers.data import data_folder

BARE = dict.fromkeys(("node_labels", "node_attributes", "edge_labels", "edge_attributes"))


def test_labels_and_attributes_are_features(tmp_path: Path) -> None:
    made = tudataset("SET", write(tmp_path))
    assert (len(made), made.name, made.classes, made.values) == (3, "SET", 2, (-1, 1))
    assert made.labels is not None
    assert made.labels.tolist() == [1, 0, 1]
    assert made.targets is not None
    assert made.targets.tolist() == [[0.5], [1.5], [2.5]]
    # Four labels, then two attributes; five labels of edges, then one attribute.
    assert (made.node_features, made.edge_features) == (6, 6)
    last = [[0, 1, 0, 0, 5.5, -0.5], [0, 1, 0, 0, 6.5, -0.6], [0, 0, 0, 1, 7.5, -0.7]]
    np.testing.assert_allclose(made.nodes[2], last, rtol=1e-7)
    assert [len(rows) for rows in made.edges] == [4, 0, 1]
    assert made.edges[2].tolist() == [[0, 0, 0, 0, 1, 4.25]]
    assert {array.dtype for array in (*made.nodes, *made.edges)} == {np.dtype(np.float32)}
    here = batch(made.dags)
    assert here.nodes(made.nodes).shape == (here.bucket.nodes, 6)


def test_features_follow_the_edges_of_any_order(tmp_path: Path) -> None:
    ahead, turned = tudataset("SET", write(tmp_path)), tudataset("SET", tmp_path, order="degree")
    assert turned.dags[0].tail.tolist() != ahead.dags[0].tail.tolist()
    for one, other in zip(ahead.dags, turned.dags, strict=True):
        assert [set(edge) for edge in zip(one.tail, one.head, strict=True)] == [
            set(edge) for edge in zip(other.tail, other.head, strict=True)
        ]
    assert all((one == other).all() for one, other in zip(ahead.edges, turned.edges, strict=True))


def test_nodes_of_which_nothing_is_known_have_their_degrees(tmp_path: Path) -> None:
    made = tudataset("SET", write(tmp_path, BARE))
    degrees = [(array @ np.asarray([0, 1, 2, 3])).tolist() for array in made.nodes]
    assert degrees == [[2, 2, 3, 1], [0], [1, 1, 0]]
    assert all((array.sum(axis=1) == 1).all() for array in made.nodes)
    assert made.edge_features == 0
    ones = tudataset("SET", tmp_path, unknown="ones")
    assert all((array == 1).all() and array.shape[1] == 1 for array in ones.nodes)


def test_many_edges_count_alike(tmp_path: Path) -> None:
    star = "".join(f"1, {node}\n{node}, 1\n" for node in range(2, 72)) + "72, 73\n73, 72\n"
    files = {"A": star, "graph_indicator": "1\n" * 71 + "2\n2\n", "graph_labels": None, "graph_attributes": None}
    made = tudataset("SET", write(tmp_path, {**BARE, **files}))
    assert made.node_features == 2
    assert (made.labels, made.values, made.targets) == (None, (), None)


def test_the_folder_of_a_set_or_one_above_it(tmp_path: Path) -> None:
    (tmp_path / "SET").mkdir()
    write(tmp_path / "SET")
    assert len(tudataset("SET", tmp_path)) == len(tudataset("SET", str(tmp_path / "SET"))) == 3


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "SET").mkdir()
    write(tmp_path / "SET")
    refused(lambda: tudataset("MUTAG", tmp_path), Refusal("STM3401", "no file `MUTAG_A.txt`", "`MUTAG.zip` of the TUDataset"))
    refused(lambda: tudataset("Set", tmp_path), Refusal("STM3401", "`Set_A.txt`", 'did you mean `tudataset("SET", ...)`?'))
    refused(lambda: tudataset("SET", tmp_path / "none"), Refusal("STM3401", "no file `SET_A.txt`", "fetch the data set"))
    refused(lambda: tudataset(3, tmp_path), Refusal("STM3401", "no file `3_A.txt`", "fetch"))  # type: ignore[arg-type]
    refused(lambda: tudataset("SET", 3), Refusal("STM3401", "named by 3", "give its path"))  # type: ignore[arg-type]
    refused(
        lambda: tudataset("SET", tmp_path, order="degre"),  # type: ignore[arg-type]
        Refusal("STM3506", "no order 'degre'", 'did you mean `order="degree"`?'),
    )
    refused(lambda: tudataset("SET", tmp_path, seed=-1), Refusal("STM3506", "the seed -1", "at least 0"))
    refused(
        lambda: tudataset("SET", tmp_path, unknown="zeros"),  # type: ignore[arg-type]
        Refusal("STM3509", "cannot have the features 'zeros'", 'say `unknown="degrees"`'),
    )


@pytest.mark.parametrize(
    ("name", "graphs", "classes", "features", "of_edges"),
    [("MUTAG", 188, 2, 7, 4), ("PROTEINS", 1113, 2, 4, 0), ("IMDB-MULTI", 1500, 3, 56, 0), ("ENZYMES", 600, 6, 21, 0)],
)
def test_real_sets(name: str, graphs: int, classes: int, features: int, of_edges: int) -> None:
    made = tudataset(name, data_folder("data/tu"))
    assert (len(made), made.classes, made.node_features, made.edge_features) == (graphs, classes, features, of_edges)
    assert made.labels is not None
    assert len(made.labels) == graphs
    first = batch(made.dags[:64])
    assert first.nodes(made.nodes[:64]).shape == (first.bucket.nodes, features)


def test_the_document_on_graphs_reads_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "graphs.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python data\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = {}
    exec(block.replace('"data"', repr(str(data_folder("data/tu")))), found)
    assert found["x"].shape == (found["here"].bucket.nodes, 7)
    assert found["e"].shape == (found["here"].bucket.edges, 4)
    assert set(found["classes"].tolist()) == {0, 1}
