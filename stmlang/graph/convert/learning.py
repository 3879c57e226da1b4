"""Graphs of libraries that learn on them, none of which is imported: PyTorch Geometric's, DGL's and jraph's.

They are told by what they have, not by their types. Each lists directed edges as tails and heads, an undirected edge in both
senses, and each of its objects says so by its edges alone: where every edge has its reverse, a graph is undirected.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stmlang.graph.convert.arrays import array_of, integer_ends, numbered
from stmlang.graph.convert.given import GivenGraph, Listing
from stmlang.graph.convert.senses import listing_of
from stmlang.graph.refusal import kind_of, refusal, shown, whole

if TYPE_CHECKING:
    from jaxtyping import Int64

WITH_NODES = 'give the number of nodes: `"num_nodes": n`'
ONE_BY_ONE = "convert its graphs one by one, and put them in a batch: `batch([as_dag(graph) for graph in {}])`"


def attribute(holder: object, name: str) -> Any:
    """What an object or a dictionary has under a name; None where it has nothing, in whatever way it says so."""
    try:
        if isinstance(holder, Mapping):
            entries = cast("Mapping[str, Any]", holder)
            return entries.get(name)
        return getattr(holder, name, None)
    except Exception:  # dictionaries with attributes raise KeyError, PyTorch Geometric's data several others
        return None


def is_mapping(graph: object) -> bool:
    """Whether this is a dictionary."""
    return isinstance(graph, Mapping)


def is_pyg(graph: object) -> bool:
    """Whether this acts as `Data` or `HeteroData` of PyTorch Geometric, or is a dictionary."""
    return (
        is_mapping(graph)
        or hasattr(type(graph), "edge_index")
        or attribute(graph, "edge_index") is not None
        or _is_mixed(graph)
    )


def is_dgl(graph: object) -> bool:
    """Whether this acts as a graph of DGL."""
    return attribute(graph, "ndata") is not None and all(callable(attribute(graph, name)) for name in ("edges", "num_nodes"))


def is_jraph(graph: object) -> bool:
    """Whether this acts as a `GraphsTuple` of jraph."""
    return all(attribute(graph, name) is not None for name in ("senders", "receivers", "n_node"))


def _is_mixed(graph: object) -> bool:
    """Whether there are nodes of several kinds."""
    return attribute(graph, "node_types") is not None and attribute(graph, "edge_types") is not None


def of_edge_index(edge_index: object, nodes: object, listing: Listing | None) -> GivenGraph:
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
    return _graph_of_ends(integer_ends(array.T), count, listing)


def _graph_of_ends(ends: Int64[np.ndarray, "edges 2"], count: int, listing: Listing | None) -> GivenGraph:
    return GivenGraph(ends, numbered(ends, count, "in an edge list"), listing or listing_of(ends, count))


def of_pyg(data: object, listing: Listing | None) -> GivenGraph:
    """`edge_index` of shape (2, edges), and a number of nodes, or node features `x`; rows of `edge_attr` belong to edges. What
    else it holds is left alone.

    Raises SpecError: STM3501 for another type and for several graphs, STM3502 and STM3503 where arrays do not fit, STM3504 for
    a dictionary without a `listing`.
    """
    if _is_mixed(data):
        message = f"{kind_of(data)} has nodes and edges of several kinds, and a DAG here has one"
        raise refusal("STM3501", message, "make one kind of all: `data.to_homogeneous()`")
    if attribute(data, "edge_index") is None:
        named = kind_of(data) if not is_mapping(data) else "a dictionary"
        what = f"{named} without `edge_index`" if is_pyg(data) else kind_of(data)
        raise refusal("STM3501", f"no graph can be made of {what}", 'give `{"edge_index": ..., "num_nodes": ...}`')
    if not is_mapping(data) and attribute(data, "ptr") is not None and attribute(data, "batch") is not None:
        raise refusal("STM3501", f"{kind_of(data)} holds several graphs", ONE_BY_ONE.format("data.to_data_list()"))
    if listing is None and is_mapping(data):
        message = "nothing in this dictionary says whether its edges are directed"
        help = 'say `listing="directed"`, or `listing="twice"` where each undirected edge is listed in both senses'
        raise refusal("STM3504", message, help)
    rows = {key: _rows(key, attribute(data, key)) for key in ("x", "edge_attr") if attribute(data, key) is not None}
    graph = of_edge_index(attribute(data, "edge_index"), _nodes(data, rows.get("x")), listing)
    for key, what, count in (("x", "nodes", len(graph.ids)), ("edge_attr", "columns of `edge_index`", len(graph.ends))):
        if rows.get(key, count) != count:
            message = f"`{key}` has {rows[key]:,} rows, and there are {count:,} {what}"
            raise refusal("STM3502", message, f"give one row for each of the {what}")
    return graph


def _nodes(data: object, rows: int | None) -> object:
    """The number of nodes that data says it has. What `Data` guesses from its edges, with a warning, is none."""
    if is_mapping(data):
        stated = attribute(data, "num_nodes")
        return rows if stated is None else stated
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counted = attribute(data, "num_nodes")
    if counted is None or caught:
        counted = rows
    if counted is None:
        message = f"{kind_of(data)} does not say how many nodes there are"
        raise refusal("STM3503", message, "set it: `data.num_nodes = n`", "nodes without edges would be lost at the end")
    return counted


def _rows(key: str, features: object) -> int:
    shape = attribute(features, "shape")
    if shape is None:
        shape = array_of(features, f"the features `{key}`").shape
    if len(shape) == 0:
        raise refusal("STM3502", f"the features `{key}` have no rows: {shown(features)}", "give an array, (rows, width)")
    return int(shape[0])


def of_dgl(graph: Any, listing: Listing | None) -> GivenGraph:
    """Edges by their numbers. Raises SpecError (STM3501) for nodes of several kinds and for a batch."""
    if attribute(graph, "is_homogeneous") is False:
        message = f"{kind_of(graph)} has nodes or edges of several kinds, and a DAG here has one"
        raise refusal("STM3501", message, "make one kind of all: `dgl.to_homogeneous(graph)`")
    if (whole(attribute(graph, "batch_size")) or 1) > 1:
        raise refusal("STM3501", f"{kind_of(graph)} holds several graphs", ONE_BY_ONE.format("dgl.unbatch(graph)"))
    return _graph_of_ends(_ends(*graph.edges()), int(graph.num_nodes()), listing)


def of_jraph(graph: Any, listing: Listing | None) -> GivenGraph:
    """From senders to receivers. Raises SpecError (STM3501) for several graphs."""
    counts = array_of(graph.n_node, "the numbers `n_node`").reshape(-1)
    if len(counts) != 1:
        message = f"{kind_of(graph)} holds {len(counts):,} graphs"
        raise refusal("STM3501", message, ONE_BY_ONE.format("jraph.unbatch(graph)"))
    return _graph_of_ends(_ends(graph.senders, graph.receivers), int(counts[0]), listing)


def _ends(tails: object, heads: object) -> Int64[np.ndarray, "edges 2"]:
    """Rows of edges from their tails and their heads. Raises SpecError (STM3502)."""
    columns = array_of(tails, "the tails of edges"), array_of(heads, "the heads of edges")
    if columns[0].ndim != 1 or columns[0].shape != columns[1].shape:
        message = f"tails and heads of edges are one number for each edge, not {columns[0].shape} and {columns[1].shape}"
        raise refusal("STM3502", message, "give two arrays of one length")
    return integer_ends(np.stack(columns, axis=1))
