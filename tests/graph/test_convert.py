"""Graphs that a program holds, as DAGs: every kind of them, against networkx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from stmlang.graph import (
    DAG,
    Converted,
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
from stmlang.graph.orient import ORDERS
from tests.api.refusals import Refusal, refused
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


def test_the_fields_of_the_dag() -> None:
    made, expected = as_dag([(0, 1)]), ragged_dag(2, np.asarray([0]), np.asarray([1]))
    assert (made.node_shape, made.ports, made.regular, made.names) == ((2,), ("edge",), None, None)
    for one, other in ((made.tail, expected.tail), (made.head, expected.head), (made.port, expected.port)):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


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
    count, drawn = graph
    senses: dict[frozenset[int], tuple[int, int]] = {}
    edges = [senses.setdefault(frozenset(edge), edge) for edge in drawn]  # parallel ones are listed in the same sense
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
