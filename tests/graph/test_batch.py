"""Batches: graphs side by side that never touch, few shapes, features there and back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph.batch import Batch, Bucket, batch
from stmlang.graph.build import complete_tree, product_dag, ragged_dag, regular_dag
from stmlang.graph.capacity import ALIGNMENT
from stmlang.graph.convert import as_dag, convert, from_edge_index
from stmlang.graph.dag import DAG
from stmlang.graph.levels import find_cycle, node_levels
from stmlang.graph.readers import UndirectedGraph
from tests.api.refusals import Refusal, refused, refused_cheaply
from tests.graph.graphs import banded, ragged_dags
from tests.helpers.data import data_folder


def closed(dag: DAG) -> DAG:
    """The graph without its open edges."""
    inner = (dag.tail >= 0) & (dag.head >= 0)
    return ragged_dag(dag.node_count, dag.tail[inner], dag.head[inner])


def graph_lists(most: int = 5) -> st.SearchStrategy[list[DAG]]:
    return st.lists(st.builds(closed, ragged_dags()), max_size=most)


def empty(nodes: int) -> DAG:
    return ragged_dag(nodes, np.zeros(0, np.int64), np.zeros(0, np.int64))


PAIR = ragged_dag(2, np.asarray([0]), np.asarray([1]))


def path(nodes: int) -> DAG:
    return ragged_dag(nodes, np.arange(nodes - 1), np.arange(1, nodes))


def ends(dag: DAG) -> list[list[int]]:
    return [dag.tail.tolist(), dag.head.tolist()]


def parts(made: Batch) -> list[DAG]:
    """The graphs of a batch, taken apart again."""
    spans = zip(made.node_start[:-1], made.node_start[1:], made.edge_start[:-1], made.edge_start[1:], strict=True)
    return [ragged_dag(end - start, made.tail[a:b] - start, made.head[a:b] - start) for start, end, a, b in spans]


@settings(max_examples=200, deadline=None)
@given(graph_lists(), st.floats(1.01, 16))
def test_a_batch_is_its_graphs_and_padding_apart(dags: list[DAG], ratio: float) -> None:
    made = batch(dags, ratio=ratio)
    nodes, edges = sum(dag.node_count for dag in dags), sum(dag.edge_count for dag in dags)
    assert made.dags == tuple(dags)
    assert made.count == len(dags)
    assert made.bucket == Bucket.of(dags, ratio=ratio)
    assert [ends(part) for part in parts(made)] == [ends(dag) for dag in dags]
    assert made.dag.node_shape == (made.bucket.nodes,)
    assert made.dag.edge_count == made.bucket.edges
    assert find_cycle(made.dag.tail, made.dag.head, made.bucket.nodes) is None
    padding = np.concatenate([made.tail[edges:], made.head[edges:]])
    assert np.all((padding >= nodes) & (padding < made.bucket.nodes))
    assert made.graph.tolist() == [
        *(number for number, dag in enumerate(dags) for _ in range(dag.node_count)),
        *[made.bucket.graphs] * (made.bucket.nodes - nodes),
    ]
    for mask, count in ((made.node_mask, nodes), (made.edge_mask, edges), (made.graph_mask, len(dags))):
        assert mask.dtype == bool
        assert mask.tolist() == [place < count for place in range(len(mask))]
    assert {array.dtype for array in (made.tail, made.head, made.graph)} == {np.dtype(np.int32)}
    assert {made.node_start.dtype, made.edge_start.dtype} == {np.dtype(np.int64)}


@settings(max_examples=100, deadline=None)
@given(graph_lists())
def test_line_edges_and_levels_are_those_of_the_graphs(dags: list[DAG]) -> None:
    """Padding has no line edges: what the first pad node sends out ends in the last."""
    made = batch(dags)
    pairs = [dag.line_edges + start for dag, start in zip(dags, made.edge_start, strict=False)]
    assert np.array_equal(made.dag.line_edges, np.concatenate([np.zeros((0, 2), np.int64), *pairs]))
    levels = [node_levels(dag) for dag in dags]
    assert np.array_equal(node_levels(made.dag)[made.node_mask], np.concatenate([np.zeros(0, np.int64), *levels]))


def test_few_graphs_and_none() -> None:
    assert batch([]).bucket == Bucket(ALIGNMENT, ALIGNMENT, 1)
    assert batch([]).count == 0
    assert not batch([]).node_mask.any()
    made = batch([empty(0), empty(1), PAIR, empty(0), empty(3)])
    assert made.node_start.tolist() == [0, 0, 1, 3, 3, 6]
    assert made.edge_start.tolist() == [0, 0, 0, 1, 1, 1]
    assert (made.tail[0], made.head[0]) == (1, 2)
    assert made.bucket.graphs == 8
    assert batch(iter([PAIR])).count == 1
    product = product_dag([complete_tree(2, 2)], ["edge"])
    assert ends(parts(batch([product]))[0]) == ends(product)


def test_sizes_of_buckets() -> None:
    def size(count: int, ratio: float = 1.5) -> int:
        return Bucket.of([empty(count)], ratio=ratio).nodes

    assert sorted({size(count) for count in range(1000)}) == [16, 32, 48, 80, 128, 192, 288, 432, 656, 992, 1488]
    assert [size(count) for count in (13, 14, 15, 30, 31, 654, 655)] == [16, 16, 32, 32, 48, 656, 992]
    assert sorted({size(count, 2) for count in range(255)}) == [16, 32, 64, 128, 256]
    assert size(20_000, 1.01) >= 20_002

    def edges(nodes: int, count: int) -> int:
        zeros = np.zeros(count, np.int64)
        return Bucket.of([ragged_dag(nodes, zeros, zeros + 1)]).edges

    assert [edges(654, count) for count in (0, 9, 655, 656, 737, 738, 983, 984, 1311, 1312)] == [
        *(16, 16, 656, 752, 752, 832, 992, 1152, 1312, 1488)
    ]
    assert edges(430, 640) == 656  # 640 / 430 is a bit less than 3/2, and so is the room
    assert [Bucket.of([PAIR] * count).graphs for count in (0, 1, 2, 3, 64, 65)] == [1, 1, 2, 4, 64, 128]


@given(st.lists(graph_lists(), max_size=4))
def test_one_bucket_for_several_batches(lists: list[list[DAG]]) -> None:
    batches = [batch(dags) for dags in lists]
    bucket = Bucket.covering(batches)
    sizes = Bucket.covering(Bucket.of(dags) for dags in lists)
    assert sizes == replace(bucket, room=None)
    assert (bucket.room is None) == (not lists)
    assert Bucket.covering([*batches, sizes]) == sizes
    remade = [batch(dags, bucket=bucket) for dags in lists]
    assert {made.bucket for made in remade} <= {bucket}
    assert {made.room for made in remade} <= {bucket.room}
    for made, before in zip(remade, batches, strict=True):
        assert [ends(part) for part in parts(made)] == [ends(part) for part in parts(before)]
        assert find_cycle(made.dag.tail, made.dag.head, bucket.nodes) is None


def test_buckets_that_just_fit() -> None:
    dags = [PAIR, PAIR, empty(2)]
    assert batch(dags, bucket=Bucket(8, 3, 3)).graph.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    made = batch(dags, bucket=Bucket(nodes=np.int64(8), edges=4, graphs=3))
    assert ends(made.dag) == [[0, 2, 6, 6], [1, 3, 7, 7]]
    assert batch([], bucket=Bucket(2, 1, 0)).dag.edge_count == 1
    assert hash(made.bucket) == hash(Bucket(8, 4, 3))
    assert type(made.bucket.nodes) is int


def tudataset(name: str) -> list[DAG]:
    """The graphs of a data set, each edge from its lesser node."""
    folder = data_folder(f"data/tu/{name}")
    graph = np.loadtxt(folder / f"{name}_graph_indicator.txt", np.int64) - 1
    tail, head = np.loadtxt(folder / f"{name}_A.txt", np.int64, delimiter=",").T - 1
    tail, head = tail[tail < head], head[tail < head]
    order = np.argsort(graph[tail], kind="stable")
    sizes = np.bincount(graph)
    start = np.cumsum(sizes) - sizes
    cuts = np.cumsum(np.bincount(graph[tail], minlength=len(sizes)))[:-1]
    ends = zip(np.split(tail[order], cuts), np.split(head[order], cuts), strict=True)
    return [ragged_dag(int(size), a - first, b - first) for size, first, (a, b) in zip(sizes, start, ends, strict=True)]


@pytest.mark.parametrize(
    ("name", "distinct", "padding"), [("MUTAG", 1, 0.36), ("PTC_FM", 5, 0.24), ("NCI1", 4, 0.22), ("PROTEINS", 8, 0.33)]
)
def test_a_data_set_makes_a_handful_of_buckets(name: str, distinct: int, padding: float) -> None:
    """Twenty epochs of shuffled batches of 64, and what part of nodes and edges is padding, on average."""
    dags = tudataset(name)
    shuffle = np.random.default_rng(0)
    buckets, shares = Counter[Bucket](), list[float]()
    for _ in range(20):
        order = shuffle.permutation(len(dags)).tolist()
        for first in range(0, len(order), 64):
            chosen = [dags[number] for number in order[first : first + 64]]
            bucket = Bucket.of(chosen)
            buckets[bucket] += 1
            real = sum(dag.node_count + dag.edge_count for dag in chosen)
            shares.append((bucket.nodes + bucket.edges) / real - 1)
    assert len(buckets) == distinct
    assert np.mean(shares) < padding


@st.composite
def with_features(draw: st.DrawFn) -> tuple[list[DAG], tuple[int, ...], np.dtype[Any]]:
    width = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    return draw(graph_lists()), width, np.dtype(draw(st.sampled_from(["f4", "f8", "i4", "?", "c8"])))


@settings(deadline=None)
@given(with_features())
def test_features_there_and_back(case: tuple[list[DAG], tuple[int, ...], np.dtype[Any]]) -> None:
    dags, width, dtype = case
    made = batch(dags)
    random = np.random.default_rng(0)
    for count, size, there, back in (
        ([dag.node_count for dag in dags], made.bucket.nodes, made.nodes, made.split_nodes),
        ([dag.edge_count for dag in dags], made.bucket.edges, made.edges, made.split_edges),
    ):
        arrays = [random.integers(1, 9, (rows, *width)).astype(dtype) for rows in count]
        whole = there(arrays)
        assert whole.shape == ((size, *width) if dags else (size, 0))
        assert not dags or whole.dtype == dtype
        assert not whole[sum(count) :].any()
        returned = back(whole)
        assert len(returned) == len(dags)
        assert all(np.array_equal(a, b) for a, b in zip(returned, arrays, strict=True))


def test_features_of_several_types() -> None:
    made = batch([PAIR, empty(1)])
    assert made.nodes([np.ones((2, 3), np.float32), jnp.ones((1, 3), jnp.int32)]).dtype == np.float64
    assert made.nodes([[[1, 2], [3, 4]], [[5, 6]]])[:4].tolist() == [[1, 2], [3, 4], [5, 6], [0, 0]]
    assert made.edges([jnp.ones((1, 2), jnp.bfloat16), jnp.ones((0, 2), jnp.bfloat16)]).dtype == jnp.bfloat16
    assert made.nodes([np.ones(2), np.ones(1)]).shape == (16,)
    labels = batch([PAIR] * 3).graphs([7, 8, 9])
    assert labels.tolist() == [7, 8, 9, 0]
    assert batch([]).graphs(np.zeros((0, 5))).shape == (1, 5)


def test_splitting_is_for_any_array() -> None:
    made = batch([PAIR, empty(0), empty(1)])
    summed = jax.jit(lambda x: [part.sum() for part in made.split_nodes(x)])(jnp.arange(16.0))
    assert [float(part) for part in summed] == [1.0, 0.0, 2.0]
    assert made.split_edges(np.arange(16))[0].tolist() == [0]


TWO = [PAIR, ragged_dag(3, np.asarray([0, 1]), np.asarray([1, 2]))]
BAD: dict[str, tuple[Any, Refusal]] = {
    "one graph": (lambda: batch(PAIR), Refusal("STM3501", "not of one DAG", "`batch([dag])`")),
    "a number": (lambda: batch(3), Refusal("STM3501", "not of one int", "`batch([dag])`")),
    "pairs": (lambda: batch([PAIR, [(0, 1)]]), Refusal("STM3501", "number 1 of the graphs", "`as_dag(graph)`")),
    "a graph of a data set": (
        lambda: batch([UndirectedGraph(2, np.asarray([[0, 1]]), None, None, None, None)]),  # type: ignore[list-item]
        Refusal("STM3501", "number 0 of the graphs of a batch is of type UndirectedGraph", "`as_dag(graph)`"),
    ),
    "a graph of networkx": (lambda: batch([nx.path_graph(3)]), Refusal("STM3501", "of type Graph", "`as_dag(graph)`")),
    "None": (lambda: Bucket.of([None]), Refusal("STM3501", "type NoneType", "`as_dag(graph)`")),
    "what enters": (
        lambda: batch([PAIR, ragged_dag(1, np.asarray([-1]), np.asarray([0]))]),
        Refusal("STM3510", "graph 1 has an edge that enters from outside", "`jax.vmap`"),
    ),
    "what leaves": (
        lambda: batch([empty(4), ragged_dag(1, np.asarray([0]), np.asarray([-1]))]),
        Refusal("STM3510", "graph 1 has an edge that leads outside", "`jax.vmap`"),
    ),
    "chain": (lambda: batch([regular_dag([3], ["time"])]), Refusal("STM3510", "enters from outside", "`jax.vmap`")),
    "grid": (lambda: batch([regular_dag([3, 2], ["a", "b"])]), Refusal("STM3510", "2 ports, a and b", "`jax.vmap`")),
    "product": (
        lambda: batch([product_dag([PAIR, PAIR], ["edge1", "edge2"])]),
        Refusal("STM3510", "edge1 and edge2", "`jax.vmap`"),
    ),
    "end past its graph": (
        lambda: batch([empty(9), ragged_dag(2, np.asarray([0]), np.asarray([2])), PAIR]),
        Refusal("STM3503", "graph 1 has an edge from node 0 to node 2, and nodes 0 ... 1", "number the nodes"),
    ),
    "negative end": (lambda: batch([ragged_dag(2, np.asarray([-2]), np.asarray([1]))]), Refusal("STM3503", "-2", "number")),
    "nodes beyond the bound": (
        lambda: batch(TWO, max_nodes=2),
        Refusal("STM3507", "graph 1 has 3 nodes, more than the 2 that", "dag(nodes <= 3)"),
    ),
    "edges beyond the bound": (
        lambda: batch(TWO, max_nodes=3, max_edges=1),
        Refusal("STM3507", "graph 1 has 2 edges, more than the 1 that", "dag(edges <= 2)"),
    ),
    "no bound": (lambda: batch(TWO, max_nodes="3"), Refusal("STM3507", "'3' cannot bound the nodes", "a whole number")),
    "few nodes": (
        lambda: batch(TWO, bucket=Bucket(4, 9, 9)),
        Refusal("STM3508", "the batch has 5 nodes and the bucket room for 4", "Bucket.covering"),
    ),
    "few edges": (
        lambda: batch(TWO, bucket=Bucket(9, 2, 9)),
        Refusal("STM3508", "the batch has 3 edges and the bucket room for 2", "Bucket.covering"),
    ),
    "few graphs": (
        lambda: batch(TWO, bucket=Bucket(9, 9, 1)),
        Refusal("STM3508", "the batch has 2 graphs and the bucket room for 1", "Bucket.covering"),
    ),
    "no spare nodes": (
        lambda: batch(TWO, bucket=Bucket(6, 4, 2)),
        Refusal("STM3508", "the batch has 5 nodes and the bucket room for 6", "from one pad node to another"),
    ),
    "many levels": (
        lambda: batch([path(30)], bucket=Bucket.covering([batch([path(20)]), batch([empty(30)])])),
        Refusal("STM3508", "the batch has 30 levels and the programs of the bucket room for 24", "cover this batch too"),
    ),
    "a large graph": (
        lambda: batch([empty(40)], bucket=Bucket.covering([batch([empty(32)] * 2)])),
        Refusal("STM3508", "40 nodes in one graph and the programs of the bucket room for 32", "cover this batch too"),
    ),
    "the room of another bucket": (
        lambda: Bucket(20, 16, 1, batch([PAIR]).room),
        Refusal(
            "STM3508", "programs for 20 nodes and 16 edges cannot have the room Capacity(nodes=16", "Bucket.covering(batches)"
        ),
    ),
    "a number for a room": (
        lambda: Bucket(20, 16, 1, 7),
        Refusal("STM3508", "cannot have the room 7", "Bucket.covering(batches)"),
    ),
    "negative room": (lambda: Bucket(-1, 0, 0), Refusal("STM3508", "room for -1 nodes", "a whole number from 0")),
    "half a graph": (lambda: Bucket(1, 1, 0.5), Refusal("STM3508", "room for 0.5 graphs", "a whole number from 0")),
    "large room": (lambda: Bucket(1, 2**31, 1), Refusal("STM3508", "room for 2147483648 edges", "to 2,147,483,647")),
    "many digits": (lambda: Bucket(10**5000, 1, 1), Refusal("STM3508", "room for int nodes", "a whole number from 0")),
    "another bucket": (lambda: batch(TWO, bucket=(9, 9, 9)), Refusal("STM3508", "filled up to (9, 9, 9)", "`Bucket.covering")),
    "a truth value": (lambda: Bucket(True, 1, 1), Refusal("STM3508", "room for True nodes", "a whole number from 0")),
    "falling sizes": (lambda: batch(TWO, ratio=0.5), Refusal("STM3508", "by 0.5", "a ratio from 1.01 to 16")),
    "level sizes": (lambda: Bucket.of(TWO, ratio=1.0), Refusal("STM3508", "by 1.0", "a ratio from 1.01 to 16")),
    "no ratio": (lambda: batch(TWO, ratio=float("nan")), Refusal("STM3508", "by nan", "a ratio from 1.01 to 16")),
    "text for a ratio": (lambda: batch(TWO, ratio="2"), Refusal("STM3508", "by '2'", "a ratio from 1.01 to 16")),
    "too few arrays": (
        lambda: batch(TWO).nodes([np.ones((2, 1))]),
        Refusal("STM3509", "the batch has 2 graphs, and there are 1 arrays of node features", "one array for each graph"),
    ),
    "no list": (lambda: batch(TWO).nodes(7), Refusal("STM3509", "not as int", "batch.nodes([...])")),
    "too few rows": (
        lambda: batch(TWO).nodes([np.ones((2, 1)), np.ones((2, 1))]),
        Refusal("STM3509", "graph 1 has 3 nodes, and its node features have 2 rows", "one row for each node"),
    ),
    "edges in both senses": (
        lambda: batch(TWO).edges([np.ones((2, 1)), np.ones((4, 1))]),
        Refusal("STM3509", "graph 0 has 1 edges, and its edge features have 2 rows", "one row for each edge"),
    ),
    "other widths": (
        lambda: batch(TWO).nodes([np.ones((2, 1)), np.ones((3, 2))]),
        Refusal("STM3509", "the shape (1,) in graph 0, (2,) in 1", "features of the same shape"),
    ),
    "texts": (
        lambda: batch(TWO).nodes([["C", "N"], ["C", "N", "O"]]),
        Refusal("STM3509", "the node features of graph 0 must be an array of numbers", "give numbers"),
    ),
    "rows of several lengths": (
        lambda: batch([PAIR]).nodes([[[1.0], [1.0, 2.0]]]),
        Refusal("STM3509", "the node features of graph 0 are no array: list", "rows of one length"),
    ),
    "a number for each graph": (
        lambda: batch(TWO).nodes([1.0, 2.0]),
        Refusal("STM3509", "at least one axis", "(rows, width)"),
    ),
    "mask": (
        lambda: batch([PAIR]).nodes([np.ma.masked_array(np.ones(2))]),
        Refusal("STM3509", "array with a mask", "x.filled(0)"),
    ),
    "labels": (lambda: batch(TWO).graphs([1]), Refusal("STM3509", "2 graphs, and there are 1 values", "one for each graph")),
    "an array without padding": (
        lambda: batch(TWO).split_nodes(np.ones((5, 1))),
        Refusal("STM3509", "the batch has 16 nodes, padding included, and this array the shape (5, 1)", "of the bucket"),
    ),
    "no array": (lambda: batch(TWO).split_edges(3), Refusal("STM3509", "not int", "give the array")),
    "no axis": (lambda: batch(TWO).split_edges(np.float32(3)), Refusal("STM3509", "the shape ()", "of the bucket")),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str) -> None:
    action, wanted = BAD[name]
    refused(action, wanted)


def test_the_advice_for_what_is_no_dag_leads_to_a_batch() -> None:
    """What conversions return goes in as it is; what a data set or networkx has, by `as_dag`."""
    converted = from_edge_index(np.asarray([[0, 1], [1, 2]]), nodes=3, listing="directed")
    assert Bucket.of([converted]) == Bucket.of([converted.dag])
    assert batch([converted, converted.dag]).dags == (converted.dag, converted.dag)
    graph = UndirectedGraph(3, np.asarray([[0, 1], [0, 2]]), None, None, None, None)
    for one in (graph, nx.Graph([(0, 1), (0, 2)]), [(0, 1), (0, 2)]):
        assert ends(batch([as_dag(one)]).dags[0]) == [[0, 0], [1, 2]]
    assert ends(as_dag(graph, order="degree")) == [[0, 0], [1, 2]]
    for made, advice in ((converted, "take its `.dag`"), (converted.dag, "use it as it is")):
        refused(lambda made=made: convert(made), Refusal("STM3501", f"this is a {type(made).__name__} already", advice))
    refused(lambda: as_dag(graph, listing="twice"), Refusal("STM3504", "lists every edge once, not `twice`", "leave"))
    refused(lambda: as_dag(graph, nodes=3), Refusal("STM3503", "UndirectedGraph says itself", "leave `nodes` out"))


def test_large_batches_are_refused_before_they_are_made() -> None:
    huge = empty(2**30)
    refused_cheaply(lambda: batch([huge, huge]), Refusal("STM3303", "2,147,483,648 nodes", "make it smaller"))
    refused_cheaply(lambda: Bucket.of([empty(2**62)] * 8), Refusal("STM3303", "more than 10^18 nodes", "make it smaller"))


def test_a_million_edges() -> None:
    dags = [banded(400, 1_000, 50, seed) for seed in range(1_000)]
    made = batch(dags)
    assert made.edge_mask.sum() == 1_000_000
    assert np.array_equal(made.split_edges(made.tail)[999], dags[999].tail + made.node_start[999])
