"""Graphs that a program brings: functions that take them, files by what is no path, archives made to hurt."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import stmlang
from stmlang.experiments.training.errors import TrainingError
from stmlang.experiments.tudataset import download
from stmlang.graph import DAG, Bucket, as_dag, batch, from_edge_index, levels
from stmlang.graph.build import ragged_dag
from stmlang.graph.readers import read_graph, read_listops, read_treebank, read_tudataset
from stmlang.graph.readers.d8 import read_flow
from stmlang.graph.readers.read import FORMATS
from tests.api.refusals import Refusal, nothing_written, refused, refused_cheaply

SPEC = "scan s on {} {{\nsource = sigmoid(linear(x))\nmark = 1\ntransition = 0.5\n}}"


@cache
def scan(topology: str = "dag(nodes <= 8, edges <= 9)") -> stmlang.GraphScan:
    found = stmlang.compile(SPEC.format(topology))
    assert isinstance(found, stmlang.GraphScan)
    return found


def whole(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


PATH = ragged_dag(3, whole(0, 1), whole(1, 2))
RING = ragged_dag(4, whole(0, 1, 2, 3), whole(1, 2, 3, 1))
LOOP = ragged_dag(2, whole(0, 1), whole(1, 1), ("carbon", "oxygen"))
ARRAYS, DOOR = "an array of a whole number for each edge", "make it with `as_dag` or `convert`"
COVER = "`Bucket.covering(batches)`"

GRAPHS: dict[str, tuple[Any, Refusal]] = {
    "a cycle": (RING, Refusal("STM3505", "graph 0 has a cycle: 1 -> 2 -> 3 -> 1", "`as_dag(edges, condense=True)`")),
    "a cycle among others": ([PATH, RING], Refusal("STM3505", "graph 1 has a cycle: 1 -> 2 -> 3 -> 1", "leave one of these")),
    "a loop": ([LOOP], Refusal("STM3505", "graph 0 has a cycle: oxygen -> oxygen", "leave one of these edges out")),
    "fractions": (
        replace(PATH, tail=np.asarray([0.0, 1.0])),
        Refusal("STM3501", f"is float64 of shape (2,), not {ARRAYS}", DOOR),
    ),
    "lists": (replace(PATH, head=[1, 2]), Refusal("STM3501", f"the `head` of graph 0 is list, not {ARRAYS}", DOOR)),
    "columns": (replace(PATH, tail=whole(0, 1)[:, None]), Refusal("STM3501", "is int64 of shape (2, 1)", DOOR)),
    "more heads": (replace(PATH, head=whole(1, 2, 2)), Refusal("STM3501", "2 in `tail`, 3 in `head`, 2 in `port`", DOOR)),
    "fewer ports": (replace(PATH, port=whole(0)), Refusal("STM3501", "2 in `tail`, 2 in `head`, 1 in `port`", DOOR)),
    "fewer nodes than none": (replace(PATH, node_shape=(-3,)), Refusal("STM3501", "its `node_shape` is (-3,)", DOOR)),
    "a number of nodes": (replace(PATH, node_shape=3), Refusal("STM3501", "its `node_shape` is 3", DOOR)),
    "half a node": (replace(PATH, node_shape=(2.5,)), Refusal("STM3501", "its `node_shape` is (2.5,)", DOOR)),
    "an edge past the end": (
        ragged_dag(3, whole(0), whole(2**40)),
        Refusal("STM3503", "node 1099511627776", "number the nodes"),
    ),
    "a negative node": (ragged_dag(3, whole(-3), whole(1)), Refusal("STM3503", "from node -3 to node 1", "number the nodes")),
    "networkx": (
        [nx.path_graph(3)],
        Refusal("STM3501", "number 0 of the graphs of a batch is of type Graph", "`as_dag(graph)`"),
    ),
    "pairs": ([(0, 1)], Refusal("STM3501", "of type tuple", "`as_dag(graph)`")),
    "arrays": (np.zeros((2, 2)), Refusal("STM3501", "of type ndarray", "`as_dag(graph)`")),
    "texts": ("ab", Refusal("STM3501", "of type str", "`as_dag(graph)`")),
    "nothing": (None, Refusal("STM3501", "not of one NoneType", "`batch([dag])`")),
    "a bucket": (Bucket(16, 16, 1), Refusal("STM3501", "not of one Bucket", "`batch([dag])`")),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_that_are_none(name: str) -> None:
    """`batch`, `Bucket.of` and `op.at` refuse the same, word for word."""
    graphs, wanted = GRAPHS[name]
    listed = [graphs] if isinstance(graphs, DAG) else graphs
    for action in (lambda: batch(listed), lambda: Bucket.of(listed), lambda: scan().at(graphs)):
        refused(action, wanted)


CALLS: dict[str, tuple[Callable[[], Any], Refusal]] = {
    "many nodes": (
        lambda: scan().at([PATH, ragged_dag(9, whole(), whole())]),
        Refusal("STM3507", "graph 1 has 9 nodes, more than the 8 that the topology allows", "`dag(nodes <= 9)`"),
    ),
    "many edges": (
        lambda: scan().at(batch([ragged_dag(2, np.zeros(10, np.int64), np.ones(10, np.int64))])),
        Refusal("STM3507", "graph 0 has 10 edges, more than the 9 that the topology allows", "`dag(edges <= 10)`"),
    ),
    "no tree": (
        lambda: scan("tree(nodes <= 8)").at(as_dag([(0, 1), (0, 2)])),
        Refusal("STM3407", "2 edges leave node 0 of graph 0", "turn the edges around"),
    ),
    "covering a number": (lambda: Bucket.covering(3), Refusal("STM3508", "a list of batches, not one int", COVER)),
    "covering a batch": (lambda: Bucket.covering(batch([])), Refusal("STM3508", "a list of batches, not one Batch", COVER)),
    "covering a text": (lambda: Bucket.covering("ab"), Refusal("STM3508", "a list of batches, not one str", COVER)),
    "covering graphs": (lambda: Bucket.covering([batch([]), PATH]), Refusal("STM3508", "number 1 of what a bucket", COVER)),
    "condensed by a text": (lambda: as_dag([(0, 1)], condense="no"), Refusal("STM3505", "`condense='no'`", "`condense=True`")),
    "condensed by None": (lambda: as_dag([(0, 1)], condense=None), Refusal("STM3505", "`condense=None`", "leave it out")),
    "an index of 2^31": (lambda: as_dag([(0, 2**31)]), Refusal("STM3503", "node 2147483648, and nodes", "list their ids")),
    "an index of 2^70": (lambda: as_dag([(0, 2**70)]), Refusal("STM3503", "node 1180591620717411303424", "list their ids")),
    "an unsigned index": (
        lambda: as_dag(np.asarray([[0, 2**63]], np.uint64)),
        Refusal("STM3503", "node 9223372036854775808", "a signed type"),
    ),
    "texts for indices": (
        lambda: from_edge_index([["a"], ["b"]], nodes=2, listing="directed"),
        Refusal("STM3502", "this array holds <U1", "give whole numbers"),
    ),
    "NaN for a name": (lambda: as_dag([("a", float("nan"))]), Refusal("STM3502", "names a node by nan", "another id")),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    action, wanted = CALLS[name]
    refused_cheaply(action, wanted)


def test_cycles_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Per graph, however often it stands in a batch."""
    looked: list[int] = []
    peel = levels.peel

    def counted(tail: Any, head: Any, count: int) -> Any:
        looked.append(count)
        return peel(tail, head, count)

    monkeypatch.setattr(levels, "peel", counted)
    dag = ragged_dag(3, whole(0, 1), whole(1, 2))
    batch([dag])
    batch([dag, dag])
    assert looked.count(3) == 1


# --- files -----------------------------------------------------------------------------------------------------------

READERS: dict[str, Callable[[Any], Any]] = {
    "read_graph": read_graph,
    "read_tudataset": read_tudataset,
    "read_treebank": read_treebank,
    "read_listops": read_listops,
    "read_flow": read_flow,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", [None, 3, 2.5, ["g.dot"]], ids=["None", "a number", "a fraction", "a list"])
def test_what_is_no_path(reader: str, path: Any) -> None:
    refused(lambda: READERS[reader](path), Refusal("STM3401", f"cannot be named by {path!r}", "as a text or a `pathlib.Path`"))


@pytest.mark.parametrize("format", [3, b"dot", "DOTS"], ids=["a number", "bytes", "misspelt"])
def test_what_is_no_format(format: Any) -> None:
    refused(lambda: read_graph("g.dot", format), Refusal("STM3402", "is no graph format", "graph formats: edgelist"))


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_no_bytes(tmp_path: Path, format: str) -> None:
    (tmp_path / "g").write_bytes(b"")
    with pytest.raises(stmlang.SpecError) as caught:
        read_graph(str(tmp_path / "g"), format)
    assert {found.code for found in caught.value.diagnostics} <= {"STM3403", "STM3411"}


# --- archives --------------------------------------------------------------------------------------------------------


def archive(name: str, content: bytes, said: int | None = None) -> bytes:
    """A zip file of one member, whose header may lie about its size."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, content)
        if said is not None:
            made.getinfo(name).file_size = said
    return buffer.getvalue()


MEMBER = "MUTAG/MUTAG_A.txt"
ARCHIVES: dict[str, tuple[bytes, str]] = {
    "no bytes": (b"", "cannot be unpacked"),
    "binary": (bytes(range(256)) * 9, "cannot be unpacked"),
    "truncated": (archive(MEMBER, b"1, 2\n" * 99)[:-30], "cannot be unpacked"),
    "bomb": (archive(MEMBER, bytes(download.MOST_UNPACKED + 1)), "unpacks to more than a data set has"),
    "bomb that says it is small": (archive(MEMBER, bytes(1 << 24), said=10), "cannot be unpacked"),
    "bomb that says it is large": (archive(MEMBER, b"1, 2\n", said=2**40), "unpacks to more than a data set has"),
    "parent": (archive("MUTAG/../../evil.txt", b""), "no file of its own"),
    "root": (archive("/evil.txt", b""), "no file of its own"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(tmp_path: Path, name: str) -> None:
    """Nothing appears beside the folder that is filled, and in it no more than the header says."""
    content, words = ARCHIVES[name]
    (tmp_path / "packed.zip").write_bytes(content)
    (tmp_path / "inside").mkdir()
    with pytest.raises(TrainingError, match=words) as caught:
        download.unpack(tmp_path / "packed.zip", tmp_path / "inside" / "MUTAG", "MUTAG")
    assert "fetch the data set by hand" in caught.value.help
    assert {path.name for path in tmp_path.iterdir()} == {"packed.zip", "inside"}
    assert sum(path.stat().st_size for path in (tmp_path / "inside").rglob("*.txt")) <= 10


def test_refused_graphs_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with nothing_written(tmp_path), pytest.raises(stmlang.SpecError):
        scan().at(RING)
