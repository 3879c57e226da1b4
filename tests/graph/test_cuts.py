"""Convex blocks, quotients and cuts."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.build import ragged_dag, regular_dag
from stmlang.graph.cuts import cut, interval_blocks, is_convex, quotient
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.levels import topological_order
from tests.graph.graphs import banded, dags


@settings(deadline=None)
@given(dag=dags(), size=st.integers(1, 5))
def test_intervals_are_convex(dag: DAG, size: int) -> None:
    blocks = interval_blocks(dag, size)
    counts = np.bincount(blocks)
    assert np.all(counts[:-1] == size)
    assert is_convex(dag, blocks)
    parts = quotient(dag, blocks)
    closed = (parts.dag.tail != OPEN) & (parts.dag.head != OPEN)
    assert np.all(parts.dag.tail[closed] < parts.dag.head[closed])
    for edge in range(dag.edge_count):
        ends = [OPEN if end[edge] == OPEN else int(blocks[end[edge]]) for end in (dag.tail, dag.head)]
        bundle = int(parts.bundle_of_edge[edge])
        if ends[0] == ends[1] != OPEN:
            assert bundle == -1
        else:
            assert [int(parts.dag.tail[bundle]), int(parts.dag.head[bundle])] == ends
            assert edge in parts.bundles.of(np.asarray([bundle])).tolist()
    pairs = list(zip(parts.dag.tail.tolist(), parts.dag.head.tolist(), strict=True))
    assert pairs == sorted(set(pairs))


@settings(deadline=None)
@given(dag=dags(), seed=st.integers(0, 999), count=st.integers(1, 3))
def test_convexity_is_an_acyclic_quotient(dag: DAG, seed: int, count: int) -> None:
    blocks = np.random.default_rng(seed).integers(0, count, dag.node_count)
    graph = nx.DiGraph()
    for tail, head in zip(dag.tail.tolist(), dag.head.tolist(), strict=True):
        if OPEN not in (tail, head) and blocks[tail] != blocks[head]:
            graph.add_edge(int(blocks[tail]), int(blocks[head]))
    assert is_convex(dag, blocks) == nx.is_directed_acyclic_graph(graph)


def test_quotient_by_hand() -> None:
    dag = ragged_dag(4, np.asarray([OPEN, 0, 0, 1, 2, 3, 0]), np.asarray([0, 1, 2, 3, 3, OPEN, 2]))
    parts = quotient(dag, np.asarray([0, 0, 1, 1]))
    assert list(zip(parts.dag.tail.tolist(), parts.dag.head.tolist(), strict=True)) == [(OPEN, 0), (0, 1), (1, OPEN)]
    assert parts.bundle_of_edge.tolist() == [0, -1, 1, 1, -1, 2, 1]
    assert parts.bundles.size.tolist() == [1, 3, 1]
    with pytest.raises(ValueError, match="0 -> 1 -> 0"):
        quotient(dag, np.asarray([0, 1, 1, 0]))
    with pytest.raises(ValueError, match="at least one node"):
        interval_blocks(dag, 0)


@settings(deadline=None)
@given(dag=dags(), share=st.floats(0, 1))
def test_cut_and_rejoin(dag: DAG, share: float) -> None:
    """Every edge is in exactly one part, or leaves the first and enters the second where the wiring says so."""
    chosen = np.zeros(dag.node_count, bool)
    chosen[topological_order(dag)[: round(share * dag.node_count)]] = True
    first, second, wiring = cut(dag, chosen)
    assert sorted(np.concatenate(wiring.nodes).tolist()) == list(range(dag.node_count))
    left = wiring.edges[0][first.leaving[wiring.leaving]]
    entered = wiring.edges[1][second.entering[wiring.entering]]
    assert left.tolist() == entered.tolist()
    once = np.bincount(np.concatenate(wiring.edges).astype(np.int64), minlength=dag.edge_count)
    assert np.all(once == 1 + np.isin(np.arange(dag.edge_count), left))
    for part, nodes, edges in zip((first, second), wiring.nodes, wiring.edges, strict=True):
        assert part.port.tolist() == dag.port[edges].tolist()
        for mine, whole in ((part.tail, dag.tail), (part.head, dag.head)):
            for edge, end in zip(edges.tolist(), mine.tolist(), strict=True):
                assert whole[edge] == nodes[end] if end != OPEN else whole[edge] == OPEN or edge in left
    opened = [
        set(wiring.edges[0][first.entering].tolist()),
        set(wiring.edges[1][second.entering].tolist()) - set(left.tolist()),
    ]
    assert sorted(opened[0] | opened[1]) == dag.entering.tolist()
    closed = [set(wiring.edges[0][first.leaving].tolist()) - set(left.tolist()), set(wiring.edges[1][second.leaving].tolist())]
    assert sorted(closed[0] | closed[1]) == dag.leaving.tolist()


def test_cut_of_a_grid() -> None:
    grid = regular_dag([4, 3], ["rows", "cols"])
    first, second, wiring = cut(grid, np.arange(12) < 6)
    assert (first.node_shape, second.node_shape) == ((6,), (6,))
    assert grid.port[wiring.edges[0][first.leaving[wiring.leaving]]].tolist() == [0, 0, 0]
    assert (len(first.entering), len(second.leaving)) == (3 + 2, 3 + 2)
    with pytest.raises(ValueError, match="from node 5"):
        cut(grid, np.arange(12) != 5)


def test_a_million_edges() -> None:
    dag = banded(400_000, 1_000_000, 100)
    blocks = interval_blocks(dag, 1000)
    parts = quotient(dag, blocks)
    assert parts.dag.node_count == 400
    first, second, wiring = cut(dag, blocks < 200)
    assert first.node_count == second.node_count == 200_000
    assert len(wiring.leaving) == len(second.entering)
