"""Graphs that a program holds, as DAGs: every kind of them, against networkx, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stmlang.graph import (
    DAG,
    Converted,
    Listing,
    Order,
    as_dag,
    convert,
    from_edge_index,
    from_edges,
    from_networkx,
    from_pyg,
    from_sparse,
)
from stmlang.graph.build import ragged_dag
from stmlang.graph.condense import strong_components
from stmlang.graph.levels import find_cycle
from stmlang.graph.limits import LARGEST
from stmlang.graph.orient import ORDERS
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from tests.doors.refusals import LONGEST, Refusal, refused, refused_cheaply
from tests.helpers.data import data_folder

Pairs = list[tuple[int, int]]


def arrows(dag: DAG) -> Pairs:
    return list(zip(dag.tail.tolist(), dag.head.tolist(), strict=True))


def named_arrows(made: Converted) -> list[tuple[Hashable, Hashable]]:
    """Edges of a graph that was not condensed, by the user's ids."""
    return [(made.ids[tail], made.ids[head]) for tail, head in arrows(made.dag)]


@st.composite
def pairs(draw: st.DrawFn, loops: bool = True) -> tuple[int, Pairs]:
    """A number of nodes, of which the last ones may have no edge, and edges between them, some of them repeated."""
    count = draw(st.integers(0, 9))
    ends = st.integers(0, max(count - 1, 0))
    drawn = draw(st.lists(st.tuples(ends, ends), max_size=20 if count else 0))
    return count, [pair for pair in drawn if loops or pair[0] != pair[1]]


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[int, Pairs]:
    count, drawn = draw(pairs(loops=False))
    place = draw(st.permutations(range(count)))
    return count, [(place[min(pair)], place[max(pair)]) for pair in drawn]


def networkx_of(kind: Any, count: int, edges: Pairs) -> Any:
    graph = kind()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    return graph


def plain(made: Converted, count: int, edges: Pairs) -> None:
    """Whether directed edges came through as they are."""
    assert made.dag.node_shape == (count,)
    assert made.dag.ports == ("edge",)
    assert arrows(made.dag) == edges
    assert made.edge.tolist() == list(range(len(edges)))
    assert made.node.tolist() == list(range(count))


# --- directed graphs


@settings(max_examples=100, deadline=None)
@given(acyclic())
def test_every_kind_of_directed_graph(graph: tuple[int, Pairs]) -> None:
    count, edges = graph
    array = np.asarray(edges, np.int64).reshape(-1, 2)
    for made in (
        from_edges(edges, nodes=count),
        from_edges(array, nodes=count),
        from_edges(array.astype(np.uint8), nodes=np.int32(count)),
        from_edges(edges, nodes=range(count)),
        from_edges([list(pair) for pair in array], nodes=count),
        from_edge_index(array.T, nodes=count, listing="directed"),
        from_pyg({"edge_index": array.T, "num_nodes": count, "y": None}, listing="directed"),
        from_pyg({"edge_index": array.T, "x": np.zeros((count, 3)), "edge_attr": np.zeros(len(edges))}, listing="directed"),
        from_sparse(scipy.sparse.coo_array((np.zeros(len(edges)), (array[:, 0], array[:, 1])), shape=(count, count)))
        if count
        else from_edges([]),
    ):
        plain(made, count, edges)
        assert made.dag.names is None
        assert tuple(made.ids) == tuple(range(count))
    for kind in (nx.DiGraph, nx.MultiDiGraph):
        graph = networkx_of(kind, count, edges)
        plain(from_networkx(graph), count, [edge[:2] for edge in graph.edges])


@settings(max_examples=100, deadline=None)
@given(acyclic(), st.permutations(range(9)))
def test_ids_of_any_kind(graph: tuple[int, Pairs], place: list[int]) -> None:
    count, edges = graph
    for name in (lambda node: f"n{place[node]}", lambda node: (place[node], "x"), lambda node: 10 * place[node] - 40):
        ids = [name(node) for node in range(count)]
        by_name = [(name(tail), name(head)) for tail, head in edges]
        listed = from_edges(by_name, nodes=ids)
        plain(listed, count, edges)
        assert tuple(listed.ids) == tuple(ids)
        if isinstance(name(0), int):
            continue  # without a list, they are the numbers of the nodes
        met = from_edges(iter(by_name))
        assert list(met.ids) == list(dict.fromkeys(end for edge in by_name for end in edge))
        assert named_arrows(met) == by_name
        if count and isinstance(ids[0], str):
            texts = np.asarray(by_name, str).reshape(-1, 2)
            assert named_arrows(from_edges(texts)) == by_name
            plain(from_edges(texts.astype(object), nodes=np.asarray(ids)), count, edges)


def test_which_ids_are_numbers() -> None:
    assert as_dag([(0, 4)]).node_count == 5
    assert as_dag([(0, 4)], nodes=7).node_count == 7
    assert convert([(0, "a")]).ids == (0, "a")
    assert convert([(0, 1)], nodes=[0, 1, 2]).ids == range(3)
    assert convert([(7, 3)], nodes=[3, 7]).dag.tail.tolist() == [1]
    assert convert(np.asarray([[7, 3]]), nodes=np.asarray([3, 7, 5])).dag.node_count == 3
    assert convert([("7", 7)]).dag.names == ("7 #1", "7 #2")
    assert convert([("a", "b")], nodes=["z", "b", "a"]).dag.names == ("z", "b", "a")
    assert from_networkx(nx.DiGraph([("b", "a")])).dag.names == ("b", "a")
    assert from_networkx(nx.DiGraph([(0.5, 1.5)])).ids == (0.5, 1.5)
    assert from_networkx(networkx_of(nx.DiGraph, 3, [])).ids == range(3)


def test_nothing_and_next_to_nothing() -> None:
    empty = np.zeros((2, 0), np.int64)
    for made in (
        convert([]),
        convert(np.asarray([])),
        convert(np.zeros((0, 2))),
        convert(nx.Graph()),
        convert(nx.MultiDiGraph()),
        convert({"edge_index": empty, "num_nodes": 0}, listing="twice"),
        convert([], nodes=0, condense=True),
        convert([], nodes=[], listing="once", order="canonical"),
    ):
        plain(made, 0, [])
    for order in ORDERS:
        plain(convert([], nodes=3, listing="once", order=order), 3, [])
        plain(convert(networkx_of(nx.Graph, 1, []), order=order, condense=True), 1, [])
    plain(convert(scipy.sparse.csr_matrix((3, 3))), 3, [])
    plain(convert([], nodes=["a", "b"]), 2, [])


def test_what_a_two_by_two_array_is() -> None:
    square = np.asarray([[0, 1], [2, 3]])
    assert arrows(from_edges(square).dag) == arrows(as_dag(square)) == [(0, 1), (2, 3)]
    assert arrows(from_edge_index(square, nodes=4, listing="directed").dag) == [(0, 2), (1, 3)]
    assert arrows(as_dag({"edge_index": square, "num_nodes": 4}, listing="directed")) == [(0, 2), (1, 3)]


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok"])
def test_sparse_matrices(form: str) -> None:
    """Every entry that is stored is an edge, in the order of `tocoo`."""
    matrix = scipy.sparse.coo_array(([2.0, 1.0, 1.0], ([0, 3, 0], [1, 1, 3])), shape=(5, 5)).asformat(form)
    made = convert(matrix)
    entries = matrix.tocoo()
    plain(made, 5, list(zip(entries.row.tolist(), entries.col.tolist(), strict=True)))
    repeated = scipy.sparse.coo_array(([1.0, 0.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert arrows(as_dag(repeated)) == [(0, 1), (0, 1)]


def test_a_graph_is_not_changed_and_does_not_change() -> None:
    array = np.asarray([[0, 1], [1, 2]])
    made = convert(array)
    array[:] = 0
    assert arrows(made.dag) == [(0, 1), (1, 2)]


# --- undirected graphs


def undirected(edges: Pairs) -> Counter[frozenset[int]]:
    return Counter(map(frozenset, edges))


@settings(max_examples=200, deadline=None)
@given(pairs(loops=False), st.sampled_from(ORDERS), st.integers(0, 2**70), st.randoms())
def test_every_kind_of_undirected_graph(graph: tuple[int, Pairs], order: Order, seed: int, random: Any) -> None:
    """Each edge comes out once, along the order, which no way of listing edges changes; and `edge` says which it was."""
    count, edges = graph
    once = convert(edges, nodes=count, listing="once", order=order, seed=seed)
    assert once.edge.tolist() == list(range(len(edges)))
    assert [set(edge) for edge in arrows(once.dag)] == [set(edge) for edge in edges]
    assert find_cycle(once.dag.tail, once.dag.head, count) is None
    both = edges + [edge[::-1] for edge in edges]
    random.shuffle(both)
    twice = convert(both, nodes=count, listing="twice", order=order, seed=seed)
    assert Counter(arrows(twice.dag)) == Counter(arrows(once.dag))
    assert [both[edge] for edge in twice.edge.tolist()] == arrows(twice.dag)
    assert np.all(np.diff(twice.edge) > 0)
    index = np.asarray(both, np.int64).reshape(-1, 2).T
    pyg = convert({"edge_index": index, "num_nodes": count}, listing="twice", order=order, seed=seed)
    assert arrows(pyg.dag) == arrows(twice.dag)
    for kind in (nx.Graph, nx.MultiGraph):
        simple = networkx_of(kind, count, edges)
        made = convert(simple, order=order, seed=seed)
        assert undirected(arrows(made.dag)) == undirected([edge[:2] for edge in simple.edges])
        assert [set(edge) for edge in arrows(made.dag)] == [set(edge[:2]) for edge in simple.edges]
        back = convert(simple.to_directed(), listing="twice", order=order, seed=seed)
        assert Counter(arrows(back.dag)) == Counter(arrows(made.dag))
    assert arrows(as_dag(edges, nodes=count, listing="once", order=order, seed=seed)) == arrows(once.dag)


def test_undirected_graphs_by_hand() -> None:
    path = nx.Graph([("c", "b"), ("b", "a")])
    assert named_arrows(convert(path)) == [("c", "b"), ("b", "a")]
    assert named_arrows(convert(path, order="degree")) == [("b", "c"), ("b", "a")]
    assert named_arrows(convert(path, order="canonical")) == [("b", "c"), ("b", "a")]
    assert named_arrows(convert([("c", "b"), ("b", "a")], nodes=["a", "b", "c"], listing="once")) == [("b", "c"), ("a", "b")]
    multiple = nx.MultiGraph([(0, 1), (1, 0), (0, 1)])
    assert arrows(as_dag(multiple)) == [(0, 1)] * 3
    ways = nx.DiGraph([(1, 0), (2, 1)])
    assert named_arrows(convert(ways)) == [(1, 0), (2, 1)]
    assert named_arrows(convert(ways, listing="once", order="degree")) == [(1, 0), (1, 2)]
    symmetric = scipy.sparse.csr_array(np.ones((3, 3)) - np.eye(3))
    assert arrows(as_dag(symmetric, listing="twice")) == [(0, 1), (0, 2), (1, 2)]


# --- cycles


@settings(max_examples=200, deadline=None)
@given(pairs())
def test_cycles_are_refused_or_condensed_as_networkx_finds_them(graph: tuple[int, Pairs]) -> None:
    count, edges = graph
    reference = networkx_of(nx.MultiDiGraph, count, edges)
    parts = sorted((sorted(part) for part in nx.strongly_connected_components(reference)), key=min)
    made = convert(edges, nodes=count, condense=True)
    assert [np.flatnonzero(made.node == part).tolist() for part in range(made.dag.node_count)] == parts
    place = {node: number for number, part in enumerate(parts) for node in part}
    kept = [edge for edge, (tail, head) in enumerate(edges) if place[tail] != place[head]]
    assert made.edge.tolist() == kept
    assert arrows(made.dag) == [(place[edges[edge][0]], place[edges[edge][1]]) for edge in kept]
    assert find_cycle(made.dag.tail, made.dag.head, made.dag.node_count) is None
    if nx.is_directed_acyclic_graph(reference):
        plain(convert(edges, nodes=count), count, edges)
        plain(made, count, edges)
    else:
        refused(lambda: convert(edges, nodes=count), Refusal("STM3505", "the graph has a cycle: ", "`condense=True`"))


def test_names_and_loops_of_condensed_graphs() -> None:
    made = convert([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "d")], condense=True)
    assert made.dag.names == ("a", "b and 1 more", "d")
    assert made.node.tolist() == [0, 1, 1, 2]
    assert made.edge.tolist() == [0, 3]
    loops = convert([(0, 1), (1, 1), (2, 1)], listing="once", order="degree", condense=True)
    assert arrows(loops.dag) == [(1, 0), (1, 2)]
    assert loops.edge.tolist() == [0, 2]
    both = convert([(0, 1), (1, 1), (1, 0)], listing="twice", condense=True)
    assert both.edge.tolist() == [0]


def test_deep_cycles() -> None:
    """Nothing recurses."""
    count = 100_000
    ring = np.arange(count)
    assert strong_components(ring, (ring + 1) % count, count).tolist() == [0] * count
    assert np.array_equal(strong_components(ring[:-1], ring[1:], count), ring)
    ladder = np.concatenate([ring[:-1], ring[1:]]), np.concatenate([ring[1:], ring[:-1]])
    assert strong_components(*ladder, count).max() == 0


@pytest.mark.parametrize("name", ["SmaGri", "SciMet", "Zewail"])
def test_citations_with_cycles(name: str) -> None:
    """Cited works that cite back: refused, and condensed as networkx does it."""
    text = (data_folder("data/dags/citation_pajek") / f"{name}.net").read_text(encoding="latin-1").lower()
    rows = text.split("*arcs", 1)[1].splitlines()[1:]
    lines = [list(map(int, row.split())) for row in rows if row.strip() and not row.startswith("*")]
    arcs = "*arcslist" in text
    edges = [(line[0], head) for line in lines for head in (line[1:] if arcs else line[1:2])]
    graph = nx.MultiDiGraph(edges)
    refused(lambda: convert(graph), Refusal("STM3505", "a cycle: ", "`condense=True`"))
    made = convert(graph, condense=True)
    assert made.dag.node_count == nx.number_strongly_connected_components(graph) < len(graph)
    assert find_cycle(made.dag.tail, made.dag.head, made.dag.node_count) is None


# --- size


def test_a_million_edges() -> None:
    random = np.random.default_rng(0)
    ends = np.sort(random.integers(0, 300_000, (1_000_000, 2)), axis=1)
    ends = ends[ends[:, 0] != ends[:, 1]]
    plain_dag = as_dag(ends)
    assert np.array_equal(plain_dag.head, ends[:, 1])
    both = np.concatenate([ends, ends[:, ::-1]])
    assert np.array_equal(as_dag({"edge_index": both.T, "num_nodes": 300_000}, listing="twice").tail, ends[:, 0])
    assert np.array_equal(as_dag(list(map(tuple, ends.tolist()))).tail, ends[:, 0])
    names = [(f"n{tail}", f"n{head}") for tail, head in ends.tolist()]
    assert convert(names).dag.edge_count == len(ends)
    matrix = scipy.sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(300_000, 300_000))
    assert np.array_equal(as_dag(matrix).tail, ends[:, 0])
    cyclic = random.integers(0, 300_000, (1_000_000, 2))
    assert convert(cyclic, condense=True).dag.node_count < 300_000


def test_more_than_can_be_numbered_is_refused_before_it_is_made() -> None:
    for action, wanted in (
        (lambda: convert([], nodes=2**31), Refusal("STM3303", "2,147,483,648 nodes", "make it smaller")),
        (lambda: convert([(0, 10**12)]), Refusal("STM3503", "edge 0 names node 1000000000000", "list their ids")),
        (lambda: convert([(1, 0), (0, 10**30)]), Refusal("STM3503", "edge 1 names node 1000000", "list their ids")),
        (lambda: convert(np.asarray([[0, 2**64 - 1]], np.uint64)), Refusal("STM3503", "18446744073709551615", "list")),
        (lambda: convert(scipy.sparse.coo_array((2**31, 2**31))), Refusal("STM3303", "2,147,483,648 nodes", "smaller")),
        (
            lambda: from_edge_index(np.zeros((2, 0), int), nodes=10**40, listing="once"),
            Refusal("STM3303", "more than 10^18 nodes", "make it smaller"),
        ),
    ):
        refused_cheaply(action, wanted)
    sparse_ids = convert([(0, 10**12), (10**30, 7)], nodes=[0, 7, 10**12, 10**30])
    assert arrows(sparse_ids.dag) == [(0, 2), (3, 1)]
    assert as_dag([(0, LARGEST // 1000)]).node_count == LARGEST // 1000 + 1


# --- what is refused

A, B = [[0, 1]], [("a", "b")]
ARRAY = np.asarray(A)
INDEX = {"edge_index": np.asarray([[0, 1], [1, 2]]), "num_nodes": 3}
RING = nx.DiGraph([(f"n{node}", f"n{(node + 1) % 30}") for node in range(30)])
CONDENSE = "`condense=True`"
TWICE: dict[str, Listing] = {"listing": "twice"}
BAD: dict[str, tuple[Any, Refusal]] = {
    # what is no graph
    "None": (lambda: convert(None), Refusal("STM3501", "no graph can be made of NoneType", "[(tail, head), ...]")),
    "a number": (lambda: convert(3), Refusal("STM3501", "of int", "[(tail, head), ...]")),
    "a path": (lambda: convert("graph.dot"), Refusal("STM3501", "of str", "[(tail, head), ...]")),
    "a set": (lambda: convert({(0, 1)}), Refusal("STM3501", "of set", "`sorted(edges)`")),
    "a DAG": (lambda: convert(as_dag(A)), Refusal("STM3501", "this is a DAG already", "use it as it is")),
    "another dictionary": (lambda: convert({0: [1]}), Refusal("STM3501", "without `edge_index`", '"num_nodes": ...')),
    "pairs as networkx": (lambda: from_networkx(A), Refusal("STM3501", "list is no graph of networkx", "DiGraph")),
    "array as matrix": (lambda: from_sparse(ARRAY), Refusal("STM3501", "ndarray is no sparse matrix", "csr_array")),
    "pairs as a dictionary": (lambda: from_pyg(A, listing="once"), Refusal("STM3501", "of list", '"edge_index": ...')),
    # shapes
    "two rows": (
        lambda: convert(np.zeros((2, 5), int)),
        Refusal("STM3502", "has the shape (edges, 2), not (2, 5)", "`edges.T`, or call `from_edge_index`"),
    ),
    "three columns": (lambda: convert(np.zeros((5, 3), int)), Refusal("STM3502", "(edges, 2), not (5, 3)", "one row of two")),
    "flat": (lambda: convert(np.arange(4)), Refusal("STM3502", "(edges, 2), not (4,)", "one row of two")),
    "a matrix": (lambda: convert(np.eye(3)), Refusal("STM3502", "(edges, 2), not (3, 3)", "one row of two")),
    "columns as `edge_index`": (
        lambda: convert({"edge_index": np.zeros((5, 2), int), "num_nodes": 3}, listing="directed"),
        Refusal("STM3502", "`edge_index` has the shape (2, edges), not (5, 2)", "`edge_index.T`"),
    ),
    "flat `edge_index`": (
        lambda: from_edge_index(np.arange(4), nodes=4, listing="directed"),
        Refusal("STM3502", "not (4,)", "one of tails and one of heads"),
    ),
    "ragged": (lambda: convert([(0, 1), (1,)]), Refusal("STM3502", "edge 1 is no pair, it has 1 entries: (1,)", "give pairs")),
    "weights": (lambda: convert([(0, 1, 0.5)]), Refusal("STM3502", "edge 0 is no pair, it has 3 entries", "features of edges")),
    "ragged `edge_index`": (
        lambda: convert({"edge_index": [[0, 1], [1]], "num_nodes": 2}, listing="directed"),
        Refusal("STM3502", "the edges of `edge_index` cannot be read as an array", "rows of one length"),
    ),
    "numbers for pairs": (lambda: convert([0, 1]), Refusal("STM3502", "edge 0 is no pair: 0", "[(tail, head), ...]")),
    "texts for pairs": (lambda: convert(["ab"]), Refusal("STM3502", "edge 0 is no pair: 'ab'", "[(tail, head), ...]")),
    "sets for pairs": (lambda: convert([(0, 1), {1, 2}]), Refusal("STM3502", "edge 1 is no pair: {1, 2}", "[(tail, head)")),
    "no axis": (lambda: convert([np.asarray(3)]), Refusal("STM3502", "no pair", "[(tail, head), ...]")),
    "a long matrix": (
        lambda: convert(scipy.sparse.csr_array((3, 4))),
        Refusal("STM3502", "this one the shape (3, 4)", "give a square matrix"),
    ),
    "few features": (
        lambda: convert({**INDEX, "edge_attr": np.zeros((3, 1))}, listing="directed"),
        Refusal("STM3502", "`edge_attr` has 3 rows, and there are 2 columns of `edge_index`", "one row for each"),
    ),
    "few nodes": (
        lambda: convert({**INDEX, "x": np.zeros((2, 1))}, listing="directed"),
        Refusal("STM3502", "`x` has 2 rows, and there are 3 nodes", "one row for each"),
    ),
    "features without rows": (
        lambda: convert({**INDEX, "x": 3.0}, listing="directed"),
        Refusal("STM3502", "the features `x` have no rows: 3.0", "(rows, width)"),
    ),
    # ids
    "floats": (lambda: convert(np.ones((1, 2))), Refusal("STM3502", "this array holds float64", "`edges.astype(int)`")),
    "NaN": (
        lambda: convert([(0, float("nan"))]),
        Refusal("STM3502", "edge 0 names a node by nan, of type float", "another id"),
    ),
    "a float": (lambda: convert([(0, 1), (1, 2.0)]), Refusal("STM3502", "edge 1 names a node by 2.0", "another id")),
    "numpy's float": (lambda: convert([("a", np.float32(2))]), Refusal("STM3502", "of type float32", "another id")),
    "truth values": (lambda: convert([(True, False)]), Refusal("STM3502", "edge 0 names a node by True", "another id")),
    "an array of them": (lambda: convert(np.eye(2, dtype=bool)), Refusal("STM3502", "holds bool", "`edges.astype(int)`")),
    "nobody": (lambda: convert([("a", None)]), Refusal("STM3502", "edge 0 names a node by None", "another id")),
    "lists": (lambda: convert([("a", "b"), ("b", [])]), Refusal("STM3502", "edge 1 names a node by []", "key of a dictionary")),
    "arrays": (lambda: convert([(np.arange(2), 1)]), Refusal("STM3502", "of type ndarray", "another id")),
    "lists in tuples": (lambda: convert([(("a", []), "b")]), Refusal("STM3502", "edge 0 names", "key of a dictionary")),
    "lists beside `nodes`": (lambda: convert([("a", [])], nodes=["a"]), Refusal("STM3502", "by []", "key of a dictionary")),
    "dates": (lambda: convert(np.zeros((1, 2), "M8[D]")), Refusal("STM3502", "holds datetime64", "`edges.astype(int)`")),
    "a mask": (lambda: convert(np.ma.masked_array(A)), Refusal("STM3502", "array with a mask", "leave out what is masked")),
    "records": (lambda: convert(np.zeros(2, "i4,i4")), Refusal("STM3502", "array of records", "array of node numbers")),
    # nodes
    "negative": (
        lambda: convert([(0, 1), (-1, 0)]),
        Refusal("STM3503", "edge 1 names node -1, and nodes are 0 ... 1", "from 0"),
    ),
    "past the end": (
        lambda: convert(ARRAY, nodes=1),
        Refusal("STM3503", "edge 0 names node 1, and nodes are 0 ... 0", "there have to be 2 nodes or more"),
    ),
    "of none": (
        lambda: convert(A, nodes=0),
        Refusal("STM3503", "edge 0 names node 0, and there are no nodes", "2 nodes or more"),
    ),
    "past `num_nodes`": (
        lambda: convert({**INDEX, "num_nodes": 2}, listing="directed"),
        Refusal("STM3503", "edge 1 names node 2, and nodes are 0 ... 1", "3 nodes or more"),
    ),
    "fewer than none": (lambda: convert([], nodes=-1), Refusal("STM3503", "cannot have -1 nodes", "at least 0")),
    "half a node": (lambda: convert(A, nodes=2.5), Refusal("STM3503", "`nodes` is of type float", "a list of all ids")),
    "no axis of nodes": (lambda: convert(B, nodes=np.asarray(2)), Refusal("STM3503", "of type ndarray", "a list of all ids")),
    "many digits": (lambda: convert([], nodes=-(10**5000)), Refusal("STM3503", "cannot have int nodes", "at least 0")),
    "true": (lambda: convert(A, nodes=True), Refusal("STM3503", "`nodes` is of type bool", "a list of all ids")),
    "a count for texts": (lambda: convert(B, nodes=2), Refusal("STM3503", "`nodes` is of type int", "a list of all ids")),
    "a text for texts": (lambda: convert(B, nodes="ab"), Refusal("STM3503", "`nodes` is of type str", "a list of all ids")),
    "a set for texts": (lambda: convert(B, nodes={"a", "b"}), Refusal("STM3503", "of type set", "a list of all ids")),
    "missing": (
        lambda: convert(B, nodes=["a"]),
        Refusal("STM3503", "edge 0 names node `b`, which `nodes` does not list", "leave the edge out"),
    ),
    "listed twice": (
        lambda: convert(B, nodes=["a", "b", "c", "a"]),
        Refusal("STM3503", "`nodes` lists `a` twice, again at 3", "list every node once"),
    ),
    "listed as a float": (
        lambda: convert(B, nodes=["a", 1.5]),
        Refusal("STM3502", "entry 1 of `nodes` names a node by 1.5", "another id"),
    ),
    "listed as a list": (lambda: convert(B, nodes=["a", []]), Refusal("STM3502", "entry 1 of `nodes`", "another id")),
    "nodes of networkx": (
        lambda: convert(nx.Graph(), nodes=3),
        Refusal("STM3503", "Graph says itself which nodes there are", "leave `nodes` out"),
    ),
    "nodes of a dictionary": (
        lambda: convert(INDEX, nodes=3, listing="directed"),
        Refusal("STM3503", "dict says itself which nodes there are", "leave `nodes` out"),
    ),
    "no number of nodes": (
        lambda: convert({"edge_index": INDEX["edge_index"]}, listing="directed"),
        Refusal("STM3503", "does not say how many nodes there are", '"num_nodes": n'),
    ),
    "no whole number of nodes": (
        lambda: from_edge_index(INDEX["edge_index"], nodes="3", listing="directed"),  # type: ignore[arg-type]
        Refusal("STM3503", "the number of nodes is '3'", "give the number"),
    ),
    # directed or undirected
    "a dictionary that does not say": (
        lambda: convert(INDEX),
        Refusal("STM3504", "whether its edges are directed", 'listing="twice"'),
    ),
    "an order of directed edges": (
        lambda: convert(A, order="bfs"),
        Refusal("STM3504", "the edges are directed, so `order='bfs'` has nothing to orient", 'listing="once"'),
    ),
    "an order of a DiGraph": (
        lambda: convert(nx.DiGraph(), order="degree"),
        Refusal("STM3504", "the edges are directed", "leave `order` out"),
    ),
    "a directed Graph": (
        lambda: convert(nx.Graph(), listing="directed"),
        Refusal("STM3504", "Graph is undirected and lists every edge once, not `directed`", "DiGraph"),
    ),
    "a Graph in both senses": (lambda: convert(nx.MultiGraph(), **TWICE), Refusal("STM3504", "not `twice`", "leave `listing`")),
    "misspelt": (
        lambda: convert(A, listing="direct"),  # type: ignore[arg-type]
        Refusal("STM3504", "edges cannot be listed as 'direct'", 'did you mean `listing="directed"`?'),
    ),
    "undirected": (
        lambda: from_sparse(scipy.sparse.eye_array(2), listing=False),  # type: ignore[arg-type]
        Refusal("STM3504", "listed as False", 'say "directed", "once" or "twice"'),
    ),
    "one sense of two": (
        lambda: convert([("a", "b"), ("b", "a"), ("c", "b")], **TWICE),
        Refusal("STM3504", "edge 2, c -> b, is listed 1 x, its reverse 0 x", 'listing="once"'),
    ),
    "three senses of four": (
        lambda: convert([(0, 1), (1, 0), (1, 0)], **TWICE),
        Refusal("STM3504", "edge 0, 0 -> 1, is listed 1 x, its reverse 2 x", 'listing="once"'),
    ),
    # orders
    "misspelt order": (
        lambda: convert(A, listing="once", order="degre"),  # type: ignore[arg-type]
        Refusal("STM3506", "there is no order 'degre'", 'did you mean `order="degree"`?'),
    ),
    "no order": (
        lambda: convert(A, listing="once", order=3),  # type: ignore[arg-type]
        Refusal("STM3506", "there is no order 3", '"canonical" or "random"'),
    ),
    "negative seed": (lambda: convert(A, listing="once", seed=-1), Refusal("STM3506", "the seed -1", "at least 0")),
    "no seed": (lambda: convert(A, listing="once", seed=None), Refusal("STM3506", "the seed None", "at least 0")),  # type: ignore[arg-type]
    # cycles
    "a loop": (lambda: convert([("a", "b"), ("b", "b")]), Refusal("STM3505", "a cycle: b -> b", CONDENSE)),
    "an undirected loop": (lambda: convert(nx.Graph([(1, 1)])), Refusal("STM3505", "a cycle: 1 -> 1", CONDENSE)),
    "a loop in both senses": (
        lambda: convert([(0, 1), (1, 0), (2, 2)], **TWICE),
        Refusal("STM3505", "a cycle: 2 -> 2", CONDENSE),
    ),
    "there and back": (
        lambda: convert([("x", "y"), ("y", "x")]),
        Refusal("STM3505", "a cycle: x -> y -> x", '`listing="twice"`'),
    ),
    "a cycle of three": (
        lambda: convert(nx.DiGraph([((0, 0), (0, 1)), ((0, 1), (1, 1)), ((1, 1), (0, 0))])),
        Refusal("STM3505", "(0, 0) -> (0, 1) -> (1, 1) -> (0, 0)", CONDENSE),
    ),
    "a ring": (
        lambda: convert(RING),
        Refusal("STM3505", "n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> ... (18 more) ... -> n24 -> n25", CONDENSE),
    ),
    "long names": (lambda: convert([("x" * 9_999, "x" * 9_999)]), Refusal("STM3505", "x… -> x", CONDENSE)),
}


@pytest.mark.parametrize("name", BAD)
def test_refusals(name: str) -> None:
    action, wanted = BAD[name]
    refused(action, wanted)


def outcome(graph: Any, said: dict[str, Any]) -> tuple[Converted | None, SpecError]:
    try:
        return convert(graph, **said), SpecError([])
    except SpecError as error:
        return None, error


SMALL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63, -(2**70), 1j, ..., int, np.int8(1), np.bool_(True), np.str_("a"), b"a", Decimal("NaN")]),
    st.just(5000).map(lambda digits: 10**digits),  # more digits than Python writes
    st.floats(),
    st.text("ab", max_size=2),
    arrays(
        st.sampled_from(["i4", "u8", "f4", "?", "U2", "O", "c8"]), array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    ),
)
JUNK = st.recursive(
    SMALL,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.lists(st.tuples(inner, inner), max_size=3),
        st.dictionaries(st.sampled_from(["edge_index", "num_nodes", "x", "edge_attr", 3]), inner, max_size=4),
    ),
    max_leaves=8,
)


@settings(max_examples=500, deadline=None)
@given(
    JUNK,
    st.fixed_dictionaries(
        {},
        optional={
            "nodes": JUNK,
            "listing": st.one_of(st.sampled_from(["directed", "once", "twice"]), JUNK),
            "order": st.one_of(st.sampled_from(ORDERS), JUNK),
            "seed": JUNK,
            "condense": st.booleans(),
        },
    ),
)
def test_anything_is_a_graph_or_refused(graph: Any, said: dict[str, Any]) -> None:
    made, refusal = outcome(graph, said)
    if made is None:
        assert len(str(refusal)) < LONGEST
        assert {found.code for found in refusal.diagnostics} <= set(CODES)
        assert all(found.help for found in refusal.diagnostics)
    else:
        assert find_cycle(made.dag.tail, made.dag.head, made.dag.node_count) is None
        assert len(made.node) == len(made.ids)
        assert len(made.edge) == made.dag.edge_count


def test_ragged_dag_is_what_comes_out() -> None:
    made = as_dag(A)
    expected = ragged_dag(2, np.asarray([0]), np.asarray([1]))
    assert (made.node_shape, made.ports, made.regular, made.names) == ((2,), ("edge",), None, None)
    assert made.port.tolist() == expected.port.tolist()
