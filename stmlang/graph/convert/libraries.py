"""Graphs of other libraries, none of which is imported: networkx, SciPy's matrices, dictionaries like PyTorch Geometric's."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from itertools import chain
from typing import Any, cast

import numpy as np
from jaxtyping import Int64

from stmlang.graph.convert.arrays import array_of, integer_ends, numbered
from stmlang.graph.convert.given import Given, Listing, numbers_or
from stmlang.graph.limits import refuse_above_largest
from stmlang.graph.refusal import kind_of, refusal, shown, whole

WITH_NODES = 'give the number of nodes: `"num_nodes": n`'


def is_networkx(graph: object) -> bool:
    """Whether this is a graph of networkx, which then has been imported."""
    library: Any = sys.modules.get("networkx")
    return library is not None and isinstance(graph, library.Graph)


def is_sparse(graph: object) -> bool:
    """Whether this is a sparse matrix of SciPy, or what acts as one."""
    return hasattr(graph, "tocoo") and hasattr(graph, "shape")


def is_mapping(graph: object) -> bool:
    """Whether this is a dictionary."""
    return isinstance(graph, Mapping)


def of_networkx(graph: Any, listing: Listing | None) -> Given:
    """Nodes in the order of `graph.nodes`, edges in that of `graph.edges`; their attributes are left alone.

    Raises SpecError: STM3501 for another type, STM3504 where `listing` contradicts the kind of graph.
    """
    if not is_networkx(graph):
        raise refusal(
            "STM3501", f"{kind_of(graph)} is no graph of networkx", "give a Graph, DiGraph, MultiGraph or MultiDiGraph"
        )
    directed: bool = graph.is_directed()
    if not directed and listing not in (None, "once"):
        message = f"a networkx {kind_of(graph)} is undirected and lists every edge once, not `{listing}`"
        raise refusal("STM3504", message, "leave `listing` out, or give a DiGraph")
    ids: tuple[Hashable, ...] = tuple(graph.nodes)
    refuse_above_largest("nodes", len(ids))
    refuse_above_largest("edges", graph.number_of_edges())
    number = {name: place for place, name in enumerate(ids)}
    ends = np.fromiter(map(number.__getitem__, chain.from_iterable(graph.edges())), np.int64).reshape(-1, 2)
    return Given(ends, numbers_or(ids), listing or ("directed" if directed else "once"))


def of_sparse(matrix: Any, listing: Listing) -> Given:
    """An adjacency matrix: the entry in row `i` and column `j` is an edge from node `i` to node `j`.

    Every entry that is stored is an edge, zeros and repeated ones included, in the order of `matrix.tocoo()`. Raises SpecError:
    STM3501 for another type, STM3502 unless the matrix is square.
    """
    if not is_sparse(matrix):
        raise refusal(
            "STM3501", f"{kind_of(matrix)} is no sparse matrix of SciPy", "give a matrix, `scipy.sparse.csr_array(a)`"
        )
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        message = f"an adjacency matrix has a row and a column for each node, and this one the shape {shape}"
        raise refusal("STM3502", message, "give a square matrix")
    entries = matrix.tocoo()
    ends = integer_ends(np.stack([np.asarray(entries.row), np.asarray(entries.col)], axis=1))
    return Given(ends, numbered(ends, int(shape[0]), "in another form"), listing)


def of_edge_index(edge_index: object, nodes: object, listing: Listing) -> Given:
    """An array of shape (2, edges): tails, then heads. Raises SpecError (STM3502, STM3503)."""
    array = array_of(edge_index, "the edges of `edge_index`")
    if array.ndim != 2 or array.shape[0] != 2:
        turned = array.ndim == 2 and array.shape[1] == 2
        help = "turn it: `edge_index.T`" if turned else "give two rows, one of tails and one of heads"
        raise refusal("STM3502", f"`edge_index` has the shape (2, edges), not {array.shape}", help)
    count = whole(nodes)
    if count is None:
        message = (
            f"the number of nodes is {shown(nodes)}"
            if nodes is not None
            else "`edge_index` does not say how many nodes there are"
        )
        raise refusal("STM3503", message, WITH_NODES, "nodes without edges would be lost at the end")
    ends: Int64[np.ndarray, "edges 2"] = integer_ends(array.T)
    return Given(ends, numbered(ends, count, "in an edge list"), listing)


def of_pyg(data: object, listing: Listing | None) -> Given:
    """A dictionary with `edge_index` of shape (2, edges), and with `num_nodes` or node features `x`; rows of `edge_attr` belong
    to edges. What else it holds is left alone.

    Raises SpecError: STM3501 for another type, STM3502 and STM3503 where its arrays do not fit, STM3504 without a `listing`.
    """
    parts = cast("Mapping[str, Any]", data) if is_mapping(data) else None
    if parts is None or "edge_index" not in parts:
        what = kind_of(data) if parts is None else "a dictionary without `edge_index`"
        raise refusal("STM3501", f"no graph can be made of {what}", 'give `{"edge_index": ..., "num_nodes": ...}`')
    if listing is None:
        message = "nothing in this dictionary says whether its edges are directed"
        help = 'say `listing="directed"`, or `listing="twice"` where each undirected edge is listed in both senses'
        raise refusal("STM3504", message, help)
    rows = {key: _rows(key, parts[key]) for key in ("x", "edge_attr") if parts.get(key) is not None}
    nodes: object = parts.get("num_nodes")
    if nodes is None:
        nodes = rows.get("x")
    given = of_edge_index(parts["edge_index"], nodes, listing)
    for key, what, count in (("x", "nodes", len(given.ids)), ("edge_attr", "columns of `edge_index`", len(given.ends))):
        if rows.get(key, count) != count:
            message = f"`{key}` has {rows[key]:,} rows, and there are {count:,} {what}"
            raise refusal("STM3502", message, f"give one row for each of the {what}")
    return given


def _rows(key: str, given: object) -> int:
    array = array_of(given, f"the features `{key}`")
    if array.ndim == 0:
        raise refusal("STM3502", f"the features `{key}` have no rows: {shown(given)}", "give an array, (rows, width)")
    return len(array)
