"""Graphs: isolated nodes and node counts, disjoint unions, and what order must not matter. What is tested here are unions
that are known when a scan is compiled; `test_batch_cases.py` is about graphs that are given at run time.

C23 (pyg-team/pytorch_geometric#190). The number of nodes was guessed from the largest id that an edge names, so that isolated
last nodes were lost and all that followed shifted. Here nothing is guessed, and ids go through a table that is public.

C25 (dmlc/dgl#134). The union of graphs without cycles was said to have one, and some of its nodes were never visited. Here a
union is what its members are, and a cycle is found in the member that has it.

C27 (networkx/networkx#4194). A topological sort ordered what is of equal rank as edges had been inserted, where its user had
taken it for levels. Here levels are generations by the longest path, results do not depend on the order in which edges came,
and how edges are oriented is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import networkx as nx
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.build import ragged_dag
from stmlang.graph.dag import DAG
from stmlang.graph.levels import find_cycle, node_levels
from stmlang.graph.orient import Order, orient
from stmlang.graph.readers import read_graph
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import BOTH, GIVEN_FACTORS, NONE
from tests.helpers.scans import arrows
from tests.public.chains import PLAIN, Names, Tree, every_way, scan_on, settings, sweep

Graph = tuple[int, tuple[tuple[int, int], ...]]
"""The number of nodes, and edges."""

LONER: Graph = (3, ((0, 1),))
DIAMOND: Graph = (4, ((0, 1), (0, 2), (1, 3), (2, 3)))


def text(graph: Graph, body: str = PLAIN + BOTH) -> str:
    return scan_on(arrows(graph[0], list(graph[1])), body)


def union(graphs: tuple[Graph, ...]) -> Graph:
    """Graphs side by side, numbered one after the other."""
    starts = np.cumsum([0, *(count for count, _ in graphs)]).tolist()
    edges = [(start + a, start + b) for start, (_, edges) in zip(starts, graphs, strict=False) for a, b in edges]
    return starts[-1], tuple(edges)


def side_by_side(trees: list[Tree]) -> Tree:
    """Arguments of a union. Node, edge and line edge numbers all are those of the parts one after the other."""
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *trees)


def random_graph(rng: np.random.Generator, most: int) -> Graph:
    """A DAG of 1 to `most` nodes, numbered in no particular order, mostly in several components."""
    count = int(rng.integers(1, most + 1))
    place = rng.permutation(count)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, count, (int(rng.integers(0, count + 1)), 2)).tolist()}
    return count, tuple((int(place[a]), int(place[b])) for a, b in sorted(pairs) if a != b)


def as_dag(graph: Graph) -> DAG:
    ends = np.asarray(graph[1], np.int64).reshape(-1, 2)
    return ragged_dag(graph[0], ends[:, 0], ends[:, 1])


# --- C23: isolated nodes and the number of nodes


@sweep("recurrent", "nodes")
def test_C23_isolated_nodes_shift_nothing(only: Names) -> None:
    """A union gives what its parts give, with isolated nodes in the middle and at the end, by every strategy."""
    graphs = (LONER, DIAMOND, LONER)
    singles = [stmlang.compile(text(graph), dtype="float64") for graph in graphs]
    trees = [as_tree(random_arguments(op, number)) for number, op in enumerate(singles)]
    wanted = np.concatenate([op.reference(*tree) for op, tree in zip(singles, trees, strict=True)])
    guessed = sum(max(max(edge) for edge in edges) + 1 for _, edges in graphs)
    assert guessed < len(wanted)  # the largest number in an edge does not tell
    for name, op in every_way(text(union(graphs)), "float64", 2, only).items():
        assert error(op(*side_by_side(trees)), wanted) < 1e-12, name


FILES: dict[str, str] = {
    "edgelist": "100 3\n{c}\n",
    "dot": 'digraph {{ "100" -> "3"; "{c}" }}',
    "graphml": '<graphml><graph edgedefault="directed"><node id="100"/><node id="3"/><node id="{c}"/>'
    '<edge source="100" target="3"/></graph></graphml>',
    "gml": 'graph [ directed 1 node [ id 100 ] node [ id 3 ] node [ id 7 label "{c}" ] edge [ source 100 target 3 ] ]',
    "pajek": '*Vertices 3\n1 "100"\n2 "3"\n3 "{c}"\n*Arcs\n1 2\n',
}


@pytest.mark.parametrize("last", ["7", "oxygen"])
@pytest.mark.parametrize("format", FILES)
def test_C23_names_are_mapped_and_isolated_nodes_counted(format: str, last: str, tmp_path: Path) -> None:
    """Numbers in a file are names: nodes are numbered in the order of the file, and `names` is the table."""
    path = tmp_path / "graph"
    path.write_text(FILES[format].format(c=last))
    dag = read_graph(str(path), format)
    assert dag.names == ("100", "3", last)
    assert (dag.tail.tolist(), dag.head.tolist(), dag.node_count) == ([0], [1], 3)


@pytest.mark.parametrize("order", ["index", "degree", "bfs", "random"])
def test_C23_the_number_of_nodes_is_not_guessed(order: Order) -> None:
    """Arrays of edges come with it: isolated last nodes count, and an edge beyond them is an error."""
    edges = np.asarray([[0, 1], [1, 2]])
    assert orient(edges, 5, order).node_count == 5
    with pytest.raises(ValueError, match=r"nodes 0 \.\.\. 1"):
        orient(edges, 2, order)
    with pytest.raises(TypeError, match="node_count"):
        orient(edges, order=order)  # type: ignore[call-arg]


# --- C25: disjoint unions


def batch(count: int) -> tuple[Graph, ...]:
    rng = np.random.default_rng(0)
    return tuple(random_graph(rng, 40) for _ in range(count))


def test_C25_a_union_has_no_cycle_and_the_levels_of_its_members(tmp_path: Path) -> None:
    """256 graphs in one, as edges in memory and as a file."""
    graphs = batch(256)
    assert {count for count, _ in graphs} >= {1, 40}
    whole = as_dag(union(graphs))
    assert find_cycle(whole.tail, whole.head, whole.node_count) is None
    levels = [node_levels(as_dag(graph)) for graph in graphs]
    np.testing.assert_array_equal(node_levels(whole), np.concatenate(levels))
    assert node_levels(whole).max() == max(part.max() for part in levels)
    path = tmp_path / "union.edgelist"
    lines = [f"n{node}" for node in range(whole.node_count)]
    lines += [f"n{a} n{b}" for a, b in zip(whole.tail.tolist(), whole.head.tolist(), strict=True)]
    path.write_text("\n".join(lines))
    assert read_graph(str(path)).edge_count == whole.edge_count


def test_C25_a_cycle_in_one_member_is_found_there() -> None:
    """Only the nodes that lie on it are named, numbered as in the union."""
    graphs = (*batch(100), (3, ((0, 1), (1, 2), (2, 0))), *batch(20))
    before = sum(count for count, _ in graphs[:100])
    whole = as_dag(union(graphs))
    cycle = find_cycle(whole.tail, whole.head, whole.node_count)
    assert cycle is not None
    assert sorted(whole.tail[list(cycle)].tolist()) == [before, before + 1, before + 2]


@pytest.mark.parametrize(
    ("count", "strategy"),
    [
        (48, "recurrent"),
        pytest.param(256, "recurrent", marks=pytest.mark.slow),
        *(
            pytest.param(32, name, marks=pytest.mark.slow)
            for name in ("nodes", "parallel", "chunkwise", "dense", "dense_nodes")
        ),
    ],
)
def test_C25_a_union_gives_what_its_members_give(count: int, strategy: str) -> None:
    """And permuted members give permuted results."""
    graphs, body = batch(count), GIVEN_FACTORS + NONE if "nodes" in strategy else PLAIN
    singles = [stmlang.compile(text(graph, body), dtype="float64") for graph in graphs]
    trees = [as_tree(random_arguments(op, number)) for number, op in enumerate(singles)]
    wanted = [op.reference(*tree) for op, tree in zip(singles, trees, strict=True)]
    for order in (np.arange(count), np.random.default_rng(1).permutation(count)):
        spec = text(union(tuple(graphs[number] for number in order)), body)
        config = settings(stmlang.compile(spec, dtype="float64"), strategy, 16)
        op = stmlang.compile(spec, dtype="float64", strategy=strategy, config=config)
        found = op(*side_by_side([trees[number] for number in order]))
        assert error(found, np.concatenate([wanted[number] for number in order])) < 1e-12


# --- C27: what order must not matter

TANGLE: Graph = (
    9,
    ((0, 1), (0, 2), (1, 3), (2, 3), (1, 4), (4, 5), (3, 5), (0, 5), (6, 5), (6, 7)),
)


def relabelled(seed: int) -> tuple[Graph, np.ndarray, np.ndarray]:
    """The same graph with other node numbers and edges in another order; the new number of each old node, and the old number
    of each new edge."""
    rng = np.random.default_rng(seed)
    node, edge = rng.permutation(TANGLE[0]), rng.permutation(len(TANGLE[1]))
    edges = tuple((int(node[a]), int(node[b])) for a, b in (TANGLE[1][old] for old in edge))
    return (TANGLE[0], edges), node, edge


def carried_over(tree: Tree, old: DAG, new: DAG, node: np.ndarray, edge: np.ndarray) -> Tree:
    """Arguments of the old graph as arguments of the new one."""
    q, k, v, gates, initial = tree
    to_old = np.argsort(node)
    number = {(int(a), int(b)): place for place, (a, b) in enumerate(old.line_edges)}
    pair = np.asarray([number[int(edge[a]), int(edge[b])] for a, b in new.line_edges], np.int64)
    place = {"source": edge, "mark": edge, "transition": pair, "direct": to_old}
    return q[to_old], k[to_old], v[to_old], {name: gate[place[name]] for name, gate in gates.items()}, initial


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@sweep("recurrent", "dense_nodes")
def test_C27_labels_and_edge_order_do_not_matter(seed: int, only: Names) -> None:
    """The results are the same up to the permutation, by every strategy."""
    old = stmlang.compile(text(TANGLE), dtype="float64")
    tree = as_tree(random_arguments(old, 0))
    wanted = old.reference(*tree)
    graph, node, edge = relabelled(seed)
    for name, op in every_way(text(graph), "float64", 2, only).items():
        found = op(*carried_over(tree, old.dag, op.dag, node, edge))
        assert error(np.asarray(found)[node], wanted) < 1e-12, name


def test_C27_levels_are_generations_whatever_the_labels() -> None:
    """A topological sort of some library follows the order in which edges came; levels do not."""
    wanted, sorts = node_levels(as_dag(TANGLE)), set[tuple[int, ...]]()
    for seed in range(20):
        (count, edges), node, _ = relabelled(seed)
        levels = node_levels(as_dag((count, edges)))
        np.testing.assert_array_equal(levels[node], wanted)
        graph = nx.DiGraph()
        graph.add_edges_from(edges)
        graph.add_nodes_from(range(count))
        for level, generation in enumerate(nx.topological_generations(graph)):
            assert sorted(np.flatnonzero(levels == level).tolist()) == sorted(generation)
        sorts.add(tuple(int(np.argsort(node)[at]) for at in nx.topological_sort(graph)))
    assert len(sorts) > 1


RING = np.asarray([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [2, 6], [6, 7]])
"""An undirected molecule."""


@pytest.mark.parametrize("order", ["index", "degree", "bfs", "random"])
def test_C27_orientation_is_explicit(order: Order) -> None:
    """The same edges point the same way however they were listed; with a seed, the same seed, and another way with others."""

    def arcs(edges: np.ndarray, seed: int) -> set[tuple[int, int]]:
        dag = orient(edges, 8, order, seed)
        return set(zip(dag.tail.tolist(), dag.head.tolist(), strict=True))

    rng = np.random.default_rng(0)
    for seed in range(5):
        shuffled = np.where(rng.random((8, 1)) < 0.5, RING, RING[:, ::-1])[rng.permutation(8)]
        assert arcs(shuffled, seed) == arcs(RING, seed)
    ways = {frozenset(arcs(RING, seed)) for seed in range(10)}
    assert len(ways) > 5 if order == "random" else len(ways) == 1


def test_C27_an_oriented_molecule_gives_the_same_numbers_again() -> None:
    """A ring oriented at random, twice from one seed and once from another: the first two to the last bit."""
    results: dict[int, Any] = {}
    for seed in (3, 3, 4):
        dag = orient(RING, 8, "random", seed)
        graph = (8, tuple(zip(dag.tail.tolist(), dag.head.tolist(), strict=True)))
        op = stmlang.compile(scan_on(arrows(8, list(graph[1])), "    source = 1\n    transition = 0.5\n"), dtype="float64")
        q, k, v, gates = op.example(0)
        found = np.asarray(op(q, k, v, gates))
        if seed in results:
            np.testing.assert_array_equal(found, results[seed])
        results[seed] = found
    assert not np.array_equal(results[3], results[4])
