"""Levels against networkx, orders against their definition, witnesses of cycles."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.build import ragged_dag, regular_dag
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import components
from stmlang.graph.levels import edge_levels, find_cycle, latest_levels, node_levels, topological_order
from tests.graph.graphs import banded, dags


def longest_paths(dag: DAG) -> list[int]:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(dag.node_count))
    closed = (dag.tail != OPEN) & (dag.head != OPEN)
    graph.add_edges_from(zip(dag.tail[closed].tolist(), dag.head[closed].tolist(), strict=True))
    longest = [0] * dag.node_count
    for node in nx.topological_sort(graph):
        longest[node] = max((longest[before] + 1 for before in graph.predecessors(node)), default=0)
    return longest


@settings(deadline=None)
@given(dags())
def test_levels_are_longest_paths(dag: DAG) -> None:
    levels = node_levels(dag)
    assert levels.tolist() == longest_paths(dag)
    order = topological_order(dag).tolist()
    assert order == sorted(range(dag.node_count), key=lambda node: (levels[node], node))
    of_edges = edge_levels(dag)
    assert np.all(of_edges[dag.entering] == 0)
    for node in range(dag.node_count):
        assert levels[node] == max((int(level) for level in of_edges[dag.head == node]), default=0)
    assert np.all(of_edges[dag.line_edges[:, 0]] < of_edges[dag.line_edges[:, 1]])


@settings(deadline=None)
@given(dags())
def test_latest_levels(dag: DAG) -> None:
    first, last = node_levels(dag), latest_levels(dag)
    assert np.all(first <= last)
    assert last.max(initial=0) == first.max(initial=0)
    closed = (dag.tail != OPEN) & (dag.head != OPEN)
    assert np.all(last[dag.tail[closed]] < last[dag.head[closed]])
    for node in range(dag.node_count):
        heads = dag.head[closed & (dag.tail == node)]
        assert last[node] == last[heads].min(initial=int(last.max()) + 1) - 1


def test_wide_and_narrow_frontiers_agree() -> None:
    """Frontiers that widen past the threshold and narrow again, many times."""
    grid = regular_dag([150, 170], ["rows", "cols"])
    assert node_levels(grid).reshape(150, 170).tolist() == np.add.outer(np.arange(150), np.arange(170)).tolist()
    tail = np.concatenate(
        [np.full(100, 102 * step) for step in range(5)] + [102 * step + 1 + np.arange(100) for step in range(5)]
    )
    head = np.concatenate(
        [102 * step + 1 + np.arange(100) for step in range(5)] + [np.full(100, 102 * step + 101) for step in range(5)]
    )
    links = 102 * np.arange(4)
    dag = ragged_dag(510, np.append(tail, links + 101), np.append(head, links + 102))
    assert node_levels(dag).tolist() == longest_paths(dag)


@settings(deadline=None)
@given(st.integers(1, 12), st.lists(st.tuples(st.integers(-1, 11), st.integers(-1, 11)), max_size=25))
def test_find_cycle(count: int, edges: list[tuple[int, int]]) -> None:
    ends = np.asarray([(min(a, count - 1), min(b, count - 1)) for a, b in edges], np.int64).reshape(-1, 2)
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((a, b) for a, b in ends.tolist() if a >= 0 and b >= 0)
    cycle = find_cycle(ends[:, 0], ends[:, 1], count)
    assert (cycle is None) == nx.is_directed_acyclic_graph(graph)
    if cycle is not None:
        following = (*cycle[1:], cycle[0])
        assert all(ends[edge, 1] == ends[after, 0] >= 0 for edge, after in zip(cycle, following, strict=True))
        assert len({int(ends[edge, 0]) for edge in cycle}) == len(cycle)


def test_cycles_by_hand() -> None:
    tail, head = np.asarray([0, 1, 2, 3, 1]), np.asarray([1, 2, 3, 1, 1])
    assert find_cycle(tail, head, 4) == (4,)
    assert find_cycle(tail[:4], head[:4], 4) == (1, 2, 3)
    assert find_cycle(tail[:3], head[:3], 4) is None
    with pytest.raises(ValueError, match="acyclic"):
        node_levels(ragged_dag(4, tail, head))


def test_a_million_edges() -> None:
    chain = regular_dag([1_000_000], ["time"])
    assert np.array_equal(node_levels(chain), np.arange(1_000_000))
    for reach in (3, 100, 10_000):
        dag = banded(400_000, 1_000_000, reach)
        levels = node_levels(dag)
        assert np.all(levels[dag.tail] < levels[dag.head])
        assert find_cycle(dag.tail, dag.head, dag.node_count) is None


@settings(max_examples=100, deadline=None)
@given(count=st.integers(0, 30), seed=st.integers(0, 2**32 - 1), density=st.floats(0, 1.5))
def test_components_are_those_of_networkx(count: int, seed: int, density: float) -> None:
    random = np.random.default_rng(seed)
    first, second = random.integers(0, max(count, 1), (2, int(density * count)))
    graph = nx.Graph(zip(first.tolist(), second.tolist(), strict=True))
    graph.add_nodes_from(range(count))
    wanted = {node: min(members) for members in nx.connected_components(graph) for node in members}
    assert components(first, second, count).tolist() == [wanted[node] for node in range(count)]


def test_components_of_a_long_path_take_few_rounds() -> None:
    order = np.random.default_rng(0).permutation(300_000)
    assert not components(order[:-1], order[1:], len(order)).any()
