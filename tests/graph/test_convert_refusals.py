"""What is refused of the graphs that a program holds: each kind of mistake by one error, anything by no other kind of error."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from stmlang.graph import Converted, Listing, as_dag, convert, from_edge_index, from_networkx, from_pyg, from_sparse
from stmlang.graph.levels import find_cycle
from stmlang.graph.orient import ORDERS
from stmlang.source.codes import CODES
from stmlang.source.diagnostic import SpecError
from tests.api.refusals import LONGEST, Refusal, refused, refused_cheaply

A, B = [[0, 1]], [("a", "b")]
ARRAY = np.asarray(A)
INDEX = {"edge_index": np.asarray([[0, 1], [1, 2]]), "num_nodes": 3}
RING = nx.DiGraph([(f"n{node}", f"n{(node + 1) % 30}") for node in range(30)])
CONDENSE = "`condense=True`"
TWICE: dict[str, Listing] = {"listing": "twice"}
ONCE: dict[str, Listing] = {"listing": "once"}
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
    "the first of several": (lambda: convert([(0, 1), None, "ab", 3.0]), Refusal("STM3502", "edge 1 is no pair: None", "give")),
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
        Refusal("STM3504", "edge 2, c -> b, is listed 1 x, its reverse 0 x", "as often in one sense as in the other"),
    ),
    "three senses of four": (
        lambda: convert([(0, 1), (1, 0), (1, 0)], **TWICE),
        Refusal("STM3504", "edge 0, 0 -> 1, is listed 1 x, its reverse 2 x", "as often in one sense as in the other"),
    ),
    "one sense of all": (
        lambda: convert([(0, 1), (2, 1), (2, 1)], **TWICE),
        Refusal("STM3504", "edge 0, 0 -> 1, is listed 1 x, its reverse 0 x", 'say `listing="once"`, or "directed"'),
    ),
    "both senses of all": (
        lambda: from_edge_index(np.asarray([[0, 1, 1, 2], [1, 0, 2, 1]]), nodes=3, **ONCE),
        Refusal("STM3504", "edge 1, 1 -> 0, is edge 0 in the other sense", 'say `listing="twice"`'),
    ),
    "both senses of one": (
        lambda: convert([("a", "b"), ("c", "b"), ("a", "b"), ("c", "c"), ("b", "c"), ("b", "a")], **ONCE),
        Refusal("STM3504", "edge 4, b -> c, is edge 1 in the other sense", "leave one of the two out"),
    ),
    "both senses beside a parallel edge": (
        lambda: convert([(0, 1), (0, 1), (1, 0)], **ONCE),
        Refusal("STM3504", "edge 2, 1 -> 0, is edge 0 in the other sense", "leave one of the two out"),
    ),
    "both senses in a dictionary": (
        lambda: convert({**INDEX, "edge_index": np.asarray([[0, 2, 1], [1, 1, 2]])}, **ONCE),
        Refusal("STM3504", "edge 2, 1 -> 2, is edge 1 in the other sense", "leave one of the two out"),
    ),
    "both senses in a matrix": (
        lambda: convert(scipy.sparse.coo_array(np.asarray([[0, 1], [1, 0]])), **ONCE),
        Refusal("STM3504", "edge 1, 1 -> 0, is edge 0 in the other sense", 'say `listing="twice"`'),
    ),
    "a matrix that is not symmetric": (
        lambda: convert(scipy.sparse.csr_array(np.triu(np.ones((3, 3)), 1)), **TWICE),
        Refusal("STM3504", "edge 0, 0 -> 1, is listed 1 x, its reverse 0 x", 'say `listing="once"`'),
    ),
    "both senses of a DiGraph": (
        lambda: convert(nx.path_graph(3).to_directed(), **ONCE),
        Refusal("STM3504", "edge 1, 1 -> 0, is edge 0 in the other sense", 'say `listing="twice"`'),
    ),
    "both senses, condensed": (
        lambda: convert([(0, 1), (1, 0)], condense=True, **ONCE),
        Refusal("STM3504", "edge 1, 1 -> 0, is edge 0 in the other sense", 'say `listing="twice"`'),
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
    far = as_dag([(0, 10**12), (10**30, 7)], nodes=[0, 7, 10**12, 10**30])
    assert (far.tail.tolist(), far.head.tolist()) == ([0, 3], [2, 1])
    assert as_dag([(0, 2_000_000)]).node_count == 2_000_001
