"""Graphs divided into shares: in order, the heaviest as light as can be, features with their graphs."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stmlang.graph import Bucket, batch, shares
from stmlang.source.diagnostic import SpecError
from tests.graph.graphs import banded

GRAPHS = [banded(nodes, 2 * nodes, 2, nodes) for nodes in (5, 3, 14, 4, 4)]


@given(st.lists(st.integers(3, 30), max_size=6), st.integers(1, 4))
def test_the_heaviest_share_is_the_lightest_possible(sizes: list[int], count: int) -> None:
    graphs = [banded(nodes, 2 * nodes, 2) for nodes in sizes]
    divided = shares(graphs, count)
    assert [dag for each in divided.batches for dag in each.dags] == graphs
    assert len({(each.bucket, each.room) for each in divided.batches}) == 1
    weights = [3 * nodes + 1 for nodes in sizes]

    def heaviest(bounds: Any) -> int:
        return max(sum(weights[first:end]) for first, end in pairwise(bounds))

    cuts = combinations_with_replacement(range(len(sizes) + 1), count - 1)
    assert heaviest(divided.start.tolist()) == min(heaviest((0, *cut, len(sizes))) for cut in cuts)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_features_go_with_their_graphs_and_come_back(count: int) -> None:
    divided = shares(GRAPHS, count)
    nodes = [np.full((dag.node_count, 2), number + 1.0) for number, dag in enumerate(GRAPHS)]
    edges = [np.full((dag.edge_count, 3), number + 1.0) for number, dag in enumerate(GRAPHS)]
    assert divided.count == len(GRAPHS)
    for laid, split, features, size in (
        (divided.nodes(nodes), divided.split_nodes, nodes, divided.bucket.nodes),
        (divided.edges(edges), divided.split_edges, edges, divided.bucket.edges),
    ):
        assert laid.shape == (count, size, features[0].shape[1])
        assert laid.sum() == sum(array.sum() for array in features)
        for part, array in zip(split(laid), features, strict=True):
            np.testing.assert_array_equal(part, array)
    labels = np.arange(len(GRAPHS))
    laid = divided.graphs(labels)
    assert laid.shape == (count, divided.bucket.graphs)
    np.testing.assert_array_equal(laid[divided.arrays.graph_mask], labels)
    assert divided.arrays.tail.shape == (count, divided.bucket.edges)
    assert f"{len(GRAPHS)} graphs in {count} batches" in repr(divided)


def test_all_shares_of_a_data_set_have_one_shape() -> None:
    parts = [shares(graphs, 2) for graphs in (GRAPHS, GRAPHS[2:], [])]
    room = Bucket.covering([each for part in parts for each in part.batches])
    for graphs in (GRAPHS, GRAPHS[2:], []):
        assert shares(graphs, 2, bucket=room).bucket == room
    assert shares(GRAPHS, 2, bucket=Bucket(64, 100, 8)).bucket.nodes == 64
    one = shares(GRAPHS, 1)
    assert one.bucket == Bucket.covering([batch(GRAPHS)])


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("STM3508.*0 shares", lambda: shares(GRAPHS, 0)),
        ("STM3508.*1.5 shares", lambda: shares(GRAPHS, 1.5)),  # pyright: ignore[reportArgumentType]
        ("STM3508", lambda: shares(GRAPHS, 2, bucket="small")),  # pyright: ignore[reportArgumentType]
        ("STM3507.*graph 2", lambda: shares(GRAPHS, 2, max_nodes=10)),
        ("STM3509.*graph 3", lambda: shares(GRAPHS, 2).nodes([np.ones((n, 1)) for n in (5, 3, 14, 5, 4)])),
        ("STM3509", lambda: shares(GRAPHS, 2).graphs(np.ones(4))),
        ("STM3509.*2 shares", lambda: shares(GRAPHS, 2).split_nodes(np.ones((3, 64, 2)))),
        ("STM3509", lambda: shares(GRAPHS, 2).split_edges([1])),
    ],
)
def test_refusals(code: str, call: Any) -> None:
    with pytest.raises(SpecError, match=code):
        call()
