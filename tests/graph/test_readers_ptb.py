"""Bracketed trees: one for a topology, treebanks with their published counts, and ListOps, whose trees give their values."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.levels import node_levels
from stmlang.graph.readers import Tree, read_graph, read_listops, read_treebank
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from tests.graph.files import arrows, data, read, refused

SENTENCE = "(S (NP (DT the)\n  (NN cat)) (VP (VB sat)))"


@pytest.mark.parametrize("text", [SENTENCE, f"( {SENTENCE} )\n", SENTENCE.replace(" ", "\t ")])
def test_sentence(tmp_path: Path, text: str) -> None:
    """A bracket around the whole that has no label is none of its nodes."""
    dag = read(tmp_path, "g.ptb", text, tree=True)
    assert dag.names == ("DT the", "NN cat", "NP", "VB sat", "VP", "S")
    assert arrows(dag) == ["DT the>NP", "NN cat>NP", "NP>S", "VB sat>VP", "VP>S"]
    assert dag.tail.tolist() == list(range(5))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(S)", ("S",)),
        ("(S word)", ("S word",)),
        ("(2 4\xa01/2)", ("2 4\xa01/2",)),
        ("(NP New York)", ("NP New York",)),
        ("((A)(B))", ("A", "B", "node 3")),
        ("(((A)))", ("A", "node 2")),
        ("(X (A a) (A a))", ("A a #1", "A a #2", "X")),
        ("(-LRB- -LRB-)", ("-LRB- -LRB-",)),
    ],
)
def test_labels_and_words(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    assert read(tmp_path, "g.mrg", text).names == names


BAD: dict[str, tuple[str, str, int | None]] = {
    "empty": ("", "STM3411", None),
    "blanks": (" \n\t", "STM3411", None),
    "no bracket": ("word", "STM3403", 1),
    "words before": ("\nx (S a)", "STM3403", 2),
    "empty bracket": ("(S\n())", "STM3403", 2),
    "empty brackets": ("(S\n(()))", "STM3403", 2),
    "never closed": ("(S\n(NP (DT the)", "STM3403", 2),
    "never opened": ("(S (NP the))\n)", "STM3403", 2),
    "second tree": ("(S a)\n(S b)", "STM3403", 2),
    "word after brackets": ("(S (A a)\nb)", "STM3403", 2),
    "word before brackets": ("(S\n(A b\n(B b)))", "STM3403", 2),
    "deep and open": ("(" * 100_000, "STM3403", 1),
    "deep and open with labels": ("(S " * 100_000, "STM3403", 1),
    "deep and closed": (")" * 100_000, "STM3403", 1),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(tmp_path: Path, name: str) -> None:
    text, code, line = BAD[name]
    refused(tmp_path, "g.ptb", text, code, line, tree=True)


def test_deep_trees(tmp_path: Path) -> None:
    """Nothing recurses."""
    dag = read(tmp_path, "g.ptb", "(S " * 100_000 + "x" + ")" * 100_000, tree=True)
    assert dag.node_count == 100_000
    assert int(node_levels(dag).max()) == 99_999


def write(folder: Path, text: str) -> str:
    path = folder / "trees"
    path.write_text(text)
    return str(path)


def test_treebank(tmp_path: Path) -> None:
    trees = read_treebank(write(tmp_path, f"{SENTENCE}\n\n( (A (B b) (C)) ) (D\nd e)"))
    assert [tree.labels for tree in trees] == [("DT", "NN", "NP", "VB", "VP", "S"), ("B", "C", "A"), ("D",)]
    assert [tree.words for tree in trees] == [("the", "cat", "", "sat", "", ""), ("b", "", ""), ("d e",)]
    assert [tree.parent.tolist() for tree in trees] == [[2, 2, 5, 4, 5], [2, 2], []]
    dag = trees[0].dag()
    assert (dag.tail.tolist(), dag.head.tolist(), dag.node_count) == ([0, 1, 2, 3, 4], [2, 2, 5, 4, 5], 6)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [("", "STM3411", None), ("(S a)\n(S b", "STM3403", 2), ("(S a)\nb", "STM3403", 2), ("(S a)\n)", "STM3403", 2)],
)
def test_refusals_of_treebanks(tmp_path: Path, text: str, code: str, line: int | None) -> None:
    assert place(lambda: read_treebank(write(tmp_path, text))) == (code, line)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "STM3411", None),
        ("1\t( a b )\n( a b )\n", "STM3403", 2),
        ("x\t( a b )\n", "STM3403", 1),
        ("1 ( a b )\n", "STM3403", 1),
        (f"{'9' * 30}\t( a b )\n", "STM3403", 1),
        ("1\t( a b )\n2\t( a b ) ( c )\n", "STM3403", 2),
        ("1\t( a b )\n2\t( a b\n", "STM3403", 2),
        ("1\t\n", "STM3403", 1),
        ("1\t( )\n", "STM3403", 1),
    ],
)
def test_refusals_of_listops(tmp_path: Path, text: str, code: str, line: int | None) -> None:
    assert place(lambda: read_listops(write(tmp_path, text))) == (code, line)


def place(action) -> tuple[str, int | None]:
    with pytest.raises(SpecError) as error:
        action()
    found = error.value.diagnostics[0]
    return found.code, None if found.span is None else found.span.file.position(found.span.start)[0]


def test_missing_treebank(tmp_path: Path) -> None:
    assert place(lambda: read_treebank(str(tmp_path / "none"))) == ("STM3401", None)
    assert place(lambda: read_treebank(str(tmp_path))) == ("STM3401", None)


def test_listops(tmp_path: Path) -> None:
    values, trees = read_listops(write(tmp_path, "9\t( ( ( [MAX 2 ) 9 ) ] )\n-4\t7\n"))
    assert values.tolist() == [9, -4]
    assert trees[0].labels == ("[MAX", "2", "", "9", "", "]", "")
    assert trees[0].parent.tolist() == [2, 2, 4, 4, 6, 6]
    assert (trees[1].labels, trees[1].parent.tolist()) == (("7",), [])


@settings(max_examples=100, deadline=None)
@given(text=st.text("()ab \n\t\x0b\xa0", max_size=30), listops=st.booleans())
def test_any_text_gives_trees_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, text: str, listops: bool) -> None:
    path = write(tmp_path_factory.mktemp("ptb"), f"1\t{text}" if listops else text)
    try:
        trees = read_listops(path)[1] if listops else read_treebank(path)
    except SpecError as refusal:
        codes = {diagnostic.code for diagnostic in refusal.diagnostics}
        trees = ()
    else:
        codes = set[str]()
    assert codes <= set(CODES)
    for tree in trees:
        assert len(tree.parent) == len(tree.labels) - 1 == len(tree.words) - 1
        assert (tree.parent > np.arange(len(tree.parent))).all()


def test_part_of_the_sentiment_treebank() -> None:
    trees = read_treebank(data("sst/dev.txt"))
    assert len(trees) == 1101
    assert set(chain.from_iterable(tree.labels for tree in trees)) == set("01234")
    for tree in trees:
        children = np.bincount(tree.parent, minlength=len(tree.labels))
        assert set(children.tolist()) <= {0, 2}
        assert all((children[node] == 0) == (word != "") for node, word in enumerate(tree.words))


@pytest.mark.slow
def test_sentiment_treebank() -> None:
    parts = [read_treebank(data(f"sst/{part}.txt")) for part in ("train", "dev", "test")]
    assert [len(trees) for trees in parts] == [8544, 1101, 2210]
    sizes = [[len(tree.labels) for tree in trees] for trees in parts]
    assert [round(float(np.mean(part)), 1) for part in sizes] == [37.3, 37.6, 37.4]
    assert max(map(max, sizes)) == 111
    # The published sentiments of the training sentences, from very negative to very positive.
    roots = [tree.labels[-1] for tree in parts[0]]
    assert [roots.count(label) for label in "01234"] == [1092, 2218, 1624, 2322, 1288]


def evaluate(tree: Tree) -> int:
    """The value of a ListOps tree, node by node: an operator with the arguments so far, or a number."""
    children: list[list[int]] = [[] for _ in tree.labels]
    for node, parent in enumerate(tree.parent.tolist()):
        children[parent].append(node)
    functions = {
        "[MAX": max,
        "[MIN": min,
        "[SM": lambda numbers: sum(numbers) % 10,
        "[FIRST": lambda numbers: numbers[0],
        "[LAST": lambda numbers: numbers[-1],
        "[MED": lambda numbers: int(median(numbers)),
    }
    values: list[tuple[str, list[int]]] = []
    for node, label in enumerate(tree.labels):
        if label:
            values.append((label, []) if label[0] in "[]" else ("", [int(label)]))
        else:
            (operator, numbers), (end, further) = (values[child] for child in children[node])
            values.append(("", [functions[operator](numbers)]) if end else (operator, numbers + further))
    return values[-1][1][0]


def test_values_of_listops() -> None:
    values, trees = read_listops(data("listops/test_d8.tsv"))
    assert len(trees) == 10_000
    assert [evaluate(tree) for tree in trees] == values.tolist()


@pytest.mark.slow
def test_values_of_deeper_listops() -> None:
    values, trees = read_listops(data("listops/test_d20s.tsv"))
    assert len(trees) == 10_000
    assert [evaluate(tree) for tree in trees] == values.tolist()


def test_one_tree_of_a_treebank_is_a_topology(tmp_path: Path) -> None:
    line = Path(data("sst/dev.txt")).read_text().split("\n")[0]
    path = tmp_path / "g.ptb"
    path.write_text(line)
    dag, tree = read_graph(str(path), tree=True), read_treebank(str(path))[0]
    assert dag.node_count == len(tree.labels) == line.count("(")
    assert dag.head.tolist() == tree.parent.tolist()
