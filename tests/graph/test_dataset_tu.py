"""TUDataset folders: what is read from each file, the published counts of twenty sets, and what is refused where."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph import tudataset
from stmlang.graph.readers import TUDataset, read_tudataset
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import Diagnostic, SpecError
from tests.helpers.data import data_folder
from tests.helpers.work import peak_bytes

# Three graphs: a triangle with a tail, an isolated node, and an edge beside an isolated last node.
FILES = {
    "A": "2, 1\n1, 2\n2, 3\n3, 2\n1, 3\n3, 1\n4, 3\n3, 4\n7, 6\n6, 7\n",
    "graph_indicator": "1\n1\n1\n1\n2\n3\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "5\n6\n5\n7\n5\n6\n6\n8\n",
    "edge_labels": "0\n0\n1\n1\n2\n2\n3\n3\n4\n4\n",
    "node_attributes": "".join(f" {number}.5, -{number}e-1\n" for number in range(8)),
    "edge_attributes": "".join(f"{number // 2}.25\n" for number in range(10)),
    "graph_attributes": "0.5\n1.5\n2.5\n",
}


def write(folder: Path, changed: dict[str, str | bytes | None] | None = None, name: str = "SET") -> Path:
    for what, content in {**FILES, **(changed or {})}.items():
        if content is not None:
            (folder / f"{name}_{what}.txt").write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_everything_is_read(tmp_path: Path) -> None:
    found = read_tudataset(write(tmp_path))
    assert found.name == "SET"
    assert len(found) == 3
    assert (found.node_start.tolist(), found.edge_start.tolist()) == ([0, 4, 5, 8], [0, 4, 4, 5])
    assert found.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3], [0, 1]]
    assert found.repeated == 0
    labels = (found.graph_labels, found.node_labels, found.edge_labels)
    attributes = (found.graph_attributes, found.node_attributes, found.edge_attributes)
    assert [None if array is None else array.tolist() for array in labels] == [
        [1, -1, 1],
        [[5], [6], [5], [7], [5], [6], [6], [8]],
        [[0], [2], [1], [3], [4]],
    ]
    assert [None if array is None else array.tolist() for array in attributes] == [
        [[0.5], [1.5], [2.5]],
        [[number + 0.5, -number / 10] for number in range(8)],
        [[0.25], [2.25], [1.25], [3.25], [4.25]],
    ]
    assert {array.dtype for array in (*labels, found.edges) if array is not None} == {np.dtype(np.int64)}
    assert {array.dtype for array in attributes if array is not None} == {np.dtype(np.float64)}


def test_packed_files_are_read_where_plain_ones_are_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "SET"
    for folder in (plain, packed):
        folder.mkdir()
    write(plain)
    for path in plain.iterdir():
        (packed / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    one, other = read_tudataset(plain), read_tudataset(packed)
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))
    assert len(tudataset("SET", tmp_path).dags) == 3


def test_graphs_one_by_one(tmp_path: Path) -> None:
    found = read_tudataset(write(tmp_path))
    first, second, third = found
    assert (first.node_count, second.node_count, third.node_count) == (4, 1, 3)
    assert second.edges.shape == (0, 2)
    assert third.edges.tolist() == [[0, 1]]
    assert third.node_labels is not None
    assert third.node_labels.tolist() == [[6], [6], [8]]
    assert third.edge_attributes is not None
    assert third.edge_attributes.tolist() == [[4.25]]
    assert found[-1].edges.tolist() == third.edges.tolist()
    with pytest.raises(IndexError):
        found[3]


def test_only_the_first_two_files_are_needed(tmp_path: Path) -> None:
    found = read_tudataset(write(tmp_path, {what: None for what in FILES if what not in ("A", "graph_indicator")}))
    assert len(found) == 3
    assert found.graph_labels is found.node_labels is found.edge_labels is None
    assert found.graph_attributes is found.node_attributes is found.edge_attributes is None
    assert found[0].node_labels is None


def test_repeated_edges_count_once_and_are_told(tmp_path: Path) -> None:
    twice = {what: FILES[what] * 2 for what in ("A", "edge_labels", "edge_attributes")}
    found, once = read_tudataset(write(tmp_path, twice)), read_tudataset(write(tmp_path))
    assert (found.repeated, once.repeated) == (10, 0)
    assert found.edges.tolist() == once.edges.tolist()


def test_no_edge_at_all(tmp_path: Path) -> None:
    found = read_tudataset(write(tmp_path, {"A": "", "edge_labels": "", "edge_attributes": None}))
    assert [graph.edges.shape for graph in found] == [(0, 2)] * 3
    assert found.node_start.tolist() == [0, 4, 5, 8]


def test_spelling_of_lines(tmp_path: Path) -> None:
    """Blanks around numbers, several labels for a node, line ends of any system, blank lines at the end."""
    changed = {"A": "2,1\r\n 1 ,\t2\r\n\r\n", "graph_indicator": "1\n1", "node_labels": "1, 2\n+3, 4\n \n"}
    others = dict.fromkeys(what for what in FILES if what not in changed)
    found = read_tudataset(write(tmp_path, {**others, **changed}))
    assert found.edges.tolist() == [[0, 1]]
    assert found.node_labels is not None
    assert found.node_labels.tolist() == [[1, 2], [3, 4]]


def test_one_of_several_sets(tmp_path: Path) -> None:
    write(write(tmp_path), name="OTHER", changed={"graph_labels": "4\n4\n4\n"})
    labels = read_tudataset(tmp_path, "OTHER").graph_labels
    assert labels is not None
    assert labels.tolist() == [4, 4, 4]
    assert refusal(tmp_path).code == "STM3401"
    assert refusal(tmp_path).message.endswith("several data sets: OTHER and SET")


def refusal(folder: Path, name: str | None = None) -> Diagnostic:
    with pytest.raises(SpecError) as error:
        read_tudataset(folder, name)
    (found,) = error.value.diagnostics
    str(error.value)
    assert found.code in CODES
    assert found.help
    return found


BAD: dict[str, tuple[str, str | bytes, str, int | None]] = {
    "no pair": ("A", FILES["A"] + "1\n", "STM3403", 11),
    "three ends": ("A", FILES["A"].replace("3, 2\n", "3, 2, 1\n"), "STM3403", 4),
    "a word": ("A", FILES["A"].replace("3, 2\n", "3, x\n"), "STM3403", 4),
    "a fraction": ("A", FILES["A"].replace("3, 2\n", "3, 2.0\n"), "STM3403", 4),
    "a blank line": ("A", "\n" + FILES["A"], "STM3403", 1),
    "a blank line inside": ("A", FILES["A"].replace("3, 2\n", "3, 2\n\n"), "STM3403", 5),
    "semicolons": ("A", FILES["A"].replace(",", ";"), "STM3403", 1),
    "no comma": ("A", FILES["A"].replace(",", ""), "STM3403", 1),
    "many digits": ("A", FILES["A"].replace("3, 2\n", f"3, {'9' * 30}\n"), "STM3403", 4),
    "node zero": ("A", FILES["A"].replace("3, 2\n", "3, 0\n"), "STM3408", 4),
    "node beyond": ("A", FILES["A"].replace("7, 6\n", "9, 6\n"), "STM3408", 9),
    "large node": ("A", FILES["A"].replace("7, 6\n", "7, 9223372036854775807\n"), "STM3408", 9),
    "negative node": ("A", FILES["A"].replace("7, 6\n", "-9223372036854775808, 6\n"), "STM3408", 9),
    "loop": ("A", FILES["A"].replace("4, 3\n3, 4\n", "3, 4\n4, 4\n"), "STM3405", 8),
    "across": ("A", FILES["A"].replace("4, 3\n3, 4\n", "5, 4\n4, 5\n"), "STM3416", 7),
    "one sense": ("A", FILES["A"].replace("4, 3\n3, 4\n", "4, 3\n4, 3\n"), "STM3416", 7),
    "cut at a line": ("A", FILES["A"][: -len("6, 7\n")], "STM3416", 9),
    "cut in a line": ("A", FILES["A"][: -len(" 7\n")], "STM3403", 10),
    "binary": ("A", b"\0\1\2", "STM3412", None),
    "no text": ("A", bytes(range(1, 256)), "STM3403", 1),
    "no node": ("graph_indicator", "", "STM3411", None),
    "two numbers": ("graph_indicator", "1, 1\n" * 8, "STM3403", 1),
    "graph zero": ("graph_indicator", FILES["graph_indicator"].replace("1", "0"), "STM3416", 1),
    "graph left out": ("graph_indicator", FILES["graph_indicator"].replace("3", "4"), "STM3416", 6),
    "graphs unsorted": ("graph_indicator", "1\n1\n1\n1\n2\n1\n3\n3\n", "STM3416", 6),
    "cut indicator": ("graph_indicator", FILES["graph_indicator"][:-2], "STM3416", 8),
    "indicator without its last graph": ("graph_indicator", "1\n1\n1\n1\n2\n", "STM3416", 3),
    "labels too few": ("graph_labels", "1\n1\n", "STM3416", 2),
    "labels too many": ("graph_labels", "1\n1\n1\n1\n", "STM3416", 4),
    "two labels of a graph": ("graph_labels", "1, 2\n1, 2\n1, 2\n", "STM3403", 1),
    "label of no class": ("graph_labels", "1\nx\n1\n", "STM3403", 2),
    "no labels": ("graph_labels", "", "STM3416", 1),
    "node labels too few": ("node_labels", "1\n" * 7, "STM3416", 7),
    "edge labels too few": ("edge_labels", "1\n" * 5, "STM3416", 5),
    "ragged labels": ("node_labels", "1\n" * 7 + "1, 2\n", "STM3403", 8),
    "labels that differ": ("edge_labels", "0\n0\n1\n1\n2\n2\n3\n9\n4\n4\n", "STM3416", 8),
    "attributes that differ": ("edge_attributes", "1\n" * 3 + "2\n" + "1\n" * 6, "STM3416", 4),
    "attribute that is no number": ("node_attributes", "1.0, 2.0\n" * 4 + "1.0, nan\n" * 4, "STM3403", 5),
    "infinite attribute": ("graph_attributes", "1\n2\n1e999\n", "STM3403", 3),
    "attribute of words": ("graph_attributes", "1\n0x2\n3\n", "STM3403", 2),
    "ragged attributes": ("node_attributes", "1.0, 2.0\n" * 5 + "1.0\n" * 3, "STM3403", 6),
}


SAID_OF = {"cut indicator": "node_labels", "indicator without its last graph": "graph_labels"}
"""The file that is found to have too many lines, where another has too few."""


@pytest.mark.parametrize("name", BAD)
def test_refusals_say_where(tmp_path: Path, name: str) -> None:
    what, content, code, line = BAD[name]
    # Files that are not in question would be refused for their own counts of lines.
    without = {"A": ("edge_labels", "edge_attributes"), "graph_indicator": ("node_attributes", "graph_attributes")}
    write(tmp_path, {**dict.fromkeys(without.get(what, ())), what: content})
    found = refusal(tmp_path)
    assert found.code == code, found.message
    if line is None:
        assert f"SET_{what}.txt" in found.message or f"SET_{what}.txt" in found.notes[-1]
    else:
        assert found.span is not None
        file = tmp_path / f"SET_{SAID_OF.get(name, what)}.txt"
        assert found.span.file.name == str(file)
        assert found.span.file.position(found.span.start)[0] == line


@pytest.mark.parametrize("what", ["A", "graph_indicator"])
def test_missing_files(tmp_path: Path, what: str) -> None:
    write(tmp_path, {what: None})
    found = refusal(tmp_path, "SET")
    assert found.code == "STM3401"
    assert f"SET_{what}.txt" in found.message
    assert refusal(tmp_path, "NONE").code == "STM3401"
    assert refusal(tmp_path / "none").code == "STM3401"
    assert refusal(tmp_path / "zero\0byte").code == "STM3401"


def test_a_folder_without_a_set(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == "STM3401"
    (tmp_path / "SET_A.txt").mkdir()
    (tmp_path / "SET_graph_indicator.txt").write_text("1\n")
    assert refusal(tmp_path).code == "STM3401"


def test_large_numbers_cost_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"graph_indicator": "1\n999999999999999999\n", "node_labels": None})
    assert peak_bytes(lambda: refusal(tmp_path)) < 4_000_000


@settings(max_examples=100, deadline=None)
@given(
    what=st.sampled_from(sorted(FILES)),
    cuts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.text("0123,.-+ e\n\rx\t\x0b", max_size=4)), max_size=3),
)
def test_mutated_sets_raise_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, what: str, cuts: list[tuple[int, int, str]]
) -> None:
    text = FILES[what]
    for start, length, put in cuts:
        text = text[:start] + put + text[start + length :]
    folder = write(tmp_path_factory.mktemp("tu"), {what: text})
    codes = set[str]()
    try:
        found = read_tudataset(folder)
    except SpecError as refusal:
        codes = {diagnostic.code for diagnostic in refusal.diagnostics}
    else:
        for graph in found:
            assert ((graph.edges >= 0) & (graph.edges < graph.node_count)).all()
    assert codes <= set(CODES)


# graphs, mean nodes, mean edges, kinds of node labels and of edge labels, attributes of a node, graphs of each class or
# how many classes
REAL: dict[str, tuple[int, float, float, int, int, int, dict[int, int] | int]] = {
    "MUTAG": (188, 17.93, 19.79, 7, 4, 0, {1: 125, -1: 63}),
    "PTC_FM": (349, 14.11, 14.48, 18, 4, 0, {1: 143, -1: 206}),
    "PTC_MR": (344, 14.29, 14.69, 18, 4, 0, {1: 152, -1: 192}),
    "PTC_FR": (351, 14.56, 15.00, 19, 4, 0, {1: 121, -1: 230}),
    "PTC_MM": (336, 13.97, 14.32, 20, 4, 0, {1: 129, -1: 207}),
    "NCI1": (4110, 29.87, 32.30, 37, 0, 0, {0: 2053, 1: 2057}),
    "NCI109": (4127, 29.68, 32.13, 38, 0, 0, {0: 2048, 1: 2079}),
    "PROTEINS": (1113, 39.06, 72.82, 3, 0, 1, {1: 663, 2: 450}),
    "ENZYMES": (600, 32.63, 62.14, 3, 0, 18, dict.fromkeys(range(1, 7), 100)),
    "AIDS": (2000, 15.69, 16.20, 38, 3, 4, {0: 400, 1: 1600}),
    "Mutagenicity": (4337, 30.32, 30.77, 14, 3, 0, {0: 2401, 1: 1936}),
    "BZR": (405, 35.75, 38.36, 10, 0, 3, {-1: 319, 1: 86}),
    "COX2": (467, 41.22, 43.45, 8, 0, 3, {-1: 365, 1: 102}),
    "DHFR": (756, 42.43, 44.54, 9, 0, 3, {1: 461, -1: 295}),
    "MSRC_9": (221, 40.58, 97.94, 10, 0, 0, 8),
    "KKI": (83, 26.96, 48.42, 190, 0, 0, {-1: 37, 1: 46}),
    "Letter-low": (2250, 4.68, 3.13, 0, 0, 2, dict.fromkeys(range(15), 150)),
    "SYNTHETICnew": (300, 100.00, 196.25, 0, 0, 1, {-1: 150, 1: 150}),
    "IMDB-BINARY": (1000, 19.77, 96.53, 0, 0, 0, {0: 500, 1: 500}),
    "IMDB-MULTI": (1500, 13.00, 65.94, 0, 0, 0, dict.fromkeys(range(1, 4), 500)),
}


def kinds(labels: np.ndarray | None) -> int:
    return 0 if labels is None else len(np.unique(labels))


@pytest.mark.parametrize("name", REAL)
def test_published_counts(name: str) -> None:
    graphs, nodes, edges, node_kinds, edge_kinds, attributes, classes = REAL[name]
    found: TUDataset = read_tudataset(data_folder("data/tu") / name)
    assert len(found) == graphs
    assert (int(found.node_start[-1]) / graphs, len(found.edges) / graphs) == pytest.approx((nodes, edges), abs=0.0051)
    assert (kinds(found.node_labels), kinds(found.edge_labels)) == (node_kinds, edge_kinds)
    assert (0 if found.node_attributes is None else found.node_attributes.shape[1]) == attributes
    assert found.graph_labels is not None
    values, counts = np.unique(found.graph_labels, return_counts=True)
    assert classes == (len(values) if isinstance(classes, int) else dict(zip(values.tolist(), counts.tolist(), strict=True)))
    # Both IMDB sets list every edge four times.
    assert found.repeated == (2 * len(found.edges) if name.startswith("IMDB") else 0)
    assert all(((graph.edges >= 0) & (graph.edges < graph.node_count)).all() for graph in found)
