"""Orientations of undirected graphs, and the text that describes a graph."""

from __future__ import annotations

from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.levels import acyclic, find_cycle
from stmlang.graph.orient import ORDERS, ROUNDS, Order, node_rank, orient
from tests.graph.graphs import banded

SQUARE = np.asarray([[0, 3], [1, 0], [3, 2], [2, 1], [3, 1], [1, 0]])


@given(
    st.integers(2, 9).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda ends: ends[0] != ends[1])),
        )
    ),
    st.sampled_from(ORDERS),
    st.integers(0, 2**64 - 1),
)
def test_orientations_keep_the_edges_and_are_acyclic(graph: tuple[int, list[tuple[int, int]]], order: Order, seed: int) -> None:
    count, edges = graph
    dag = orient(np.asarray(edges, np.int64).reshape(-1, 2), count, order, seed)
    assert dag.node_count == count
    assert [{tail, head} for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True)] == [
        set(ends) for ends in edges
    ]
    assert find_cycle(dag.tail, dag.head, count) is None


def test_orders_by_hand() -> None:
    assert node_rank(SQUARE, 5, "index", 0).tolist() == [0, 1, 2, 3, 4]
    assert node_rank(SQUARE, 5, "degree", 0).tolist() == [1, 0, 3, 2, 4]
    far = np.asarray([[4, 2], [2, 0], [1, 3]])
    assert node_rank(far, 5, "bfs", 0).tolist() == [0, 3, 1, 4, 2]
    assert node_rank(SQUARE, 5, "random", 7).tolist() == node_rank(SQUARE, 5, "random", 7).tolist()
    assert len({tuple(node_rank(SQUARE, 9, "random", seed).tolist()) for seed in range(20)}) > 10
    assert orient(SQUARE, 5, "degree").tail.tolist() == [0, 1, 3, 1, 1, 1]


def test_the_canonical_order_by_hand() -> None:
    """The most edges first, then by colour: of a path the middle, then its neighbours, which only numbers tell apart."""
    star = np.asarray([[3, 0], [3, 1], [2, 3]])
    assert node_rank(star, 5, "canonical", 0).tolist() == [1, 2, 3, 0, 4]
    path = np.asarray([[0, 1], [1, 2], [2, 3], [3, 4]])
    assert node_rank(path, 5, "canonical", 0).tolist() == [3, 1, 0, 2, 4]
    twin = np.asarray([[0, 1], [0, 1], [1, 2]])
    assert node_rank(twin, 3, "canonical", 0).tolist() == [1, 0, 2]
    ring = np.asarray([[0, 1], [1, 2], [2, 0]])
    assert node_rank(ring, 3, "canonical", 0).tolist() == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:The hashes produced")
@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.randoms())
def test_the_canonical_order_does_not_depend_on_the_numbering(count: int, seed: int, random: Random) -> None:
    """Nodes that colour refinement tells apart have the same places under any numbering; others share theirs."""
    graph = nx.gnp_random_graph(count, 2.2 / count, seed)
    number = list(range(count))
    random.shuffle(number)
    edges = list(graph.edges)
    random.shuffle(edges)
    turned = [(number[b], number[a]) if random.random() < 0.5 else (number[a], number[b]) for a, b in edges]
    rank = node_rank(np.asarray(graph.edges, np.int64).reshape(-1, 2), count, "canonical", 0)
    other = node_rank(np.asarray(turned, np.int64).reshape(-1, 2), count, "canonical", 0)
    places: dict[str, tuple[set[int], set[int]]] = {}
    for node, hashes in nx.weisfeiler_lehman_subgraph_hashes(graph, iterations=count).items():
        here, there = places.setdefault(hashes[-1], (set(), set()))
        here.add(int(rank[node]))
        there.add(int(other[number[node]]))
    assert all(here == there for here, there in places.values())
    degrees = np.asarray([graph.degree[node] for node in np.argsort(rank).tolist()])
    assert np.all(np.diff(degrees) <= 0)


def test_refinement_goes_so_far() -> None:
    """A path with a fork at one end: nodes far from both ends are alike for as many rounds as there are."""
    count = 400
    path = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    fork = np.concatenate([path, [[1, count]]])
    rank = node_rank(fork, count + 1, "canonical", 0)
    middle = np.arange(ROUNDS + 2, count - ROUNDS - 2)
    assert np.all(np.diff(rank[middle]) == 1)
    near = rank[2:ROUNDS]
    assert np.any(np.diff(near) != 1)
    assert len(np.unique(rank)) == count + 1


def test_breadth_first_is_by_distance() -> None:
    graph = nx.gnm_random_graph(60, 70, seed=3)
    rank = node_rank(np.asarray(list(graph.edges())), 60, "bfs", 0)
    keys = {}
    for component in nx.connected_components(graph):
        for node, distance in nx.single_source_shortest_path_length(graph, min(component)).items():
            keys[node] = (min(component), distance, node)
    assert np.argsort(rank).tolist() == sorted(range(60), key=keys.__getitem__)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="edge 1 joins node 2 to itself"):
        orient(np.asarray([[0, 1], [2, 2]]), 3)
    with pytest.raises(ValueError, match=r"nodes 0 \.\.\. 1"):
        orient(np.asarray([[0, 2]]), 2)


def test_a_million_edges() -> None:
    dag = banded(400_000, 1_000_000, 50)
    ends = np.stack([dag.head, dag.tail], axis=1)
    for order in ORDERS:
        dag = orient(ends, 400_000, order)
        assert dag.edge_count == 1_000_000
        assert acyclic(dag)
