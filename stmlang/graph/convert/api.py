"""DAGs of graphs that a program holds: one function that tells them apart by their types, and one for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from stmlang.graph.convert.finish import Converted, finish
from stmlang.graph.convert.given import GivenGraph, Listing, checked_listing
from stmlang.graph.convert.learning import is_dgl, is_jraph, is_pyg, of_dgl, of_edge_index, of_jraph, of_pyg
from stmlang.graph.convert.libraries import is_networkx, is_sparse, of_networkx, of_sparse
from stmlang.graph.convert.pairs import of_pairs
from stmlang.graph.dag import DAG
from stmlang.graph.orient import Order
from stmlang.graph.refusal import kind_of, refusal

if TYPE_CHECKING:
    from stmlang.graph.readers.tudataset import UndirectedGraph


class Orientation(TypedDict, total=False):
    """How a graph becomes acyclic: the order of the nodes that orients undirected edges, `index` unless said (`orient` explains
    them), the seed of a random one, and whether strongly connected components become one node each."""

    order: Order | None
    seed: int
    condense: bool


def as_dag(graph: Any, *, nodes: Any = None, listing: Listing | None = None, **orientation: Unpack[Orientation]) -> DAG:
    """The DAG that `convert` makes, where nobody asks what became of its edges."""
    return convert(graph, nodes=nodes, listing=listing, **orientation).dag


def convert(graph: Any, *, nodes: Any = None, listing: Listing | None = None, **orientation: Unpack[Orientation]) -> Converted:
    """The DAG of a graph of any kind that is known here, and where its edges come from.

    | given | read as by | edges are |
    |---|---|---|
    | pairs `[(a, b), ...]`, or an array of shape (edges, 2) | `from_edges` | directed, unless `listing` says otherwise |
    | networkx's Graph, MultiGraph | `from_networkx` | undirected |
    | networkx's DiGraph, MultiDiGraph | `from_networkx` | directed, unless `listing` says otherwise |
    | SciPy's sparse matrices | `from_sparse` | directed, unless `listing` says otherwise |
    | `{"edge_index": ..., "num_nodes": ...}` | `from_pyg` | what `listing` says |
    | PyTorch Geometric's Data | `from_pyg` | undirected if each has its reverse, unless `listing` says otherwise |
    | DGL's graphs, jraph's GraphsTuple of one graph | | as those of Data |
    | a graph of `read_tudataset` | | undirected |

    `listing` is `directed`, `once` (undirected, each edge listed in one sense) or `twice` (in both). `nodes` belongs to edge
    lists. Raises SpecError: STM3501 for any other type, STM3503 for `nodes` where the graph has its own, else what those raise.
    """
    if isinstance(graph, DAG | Converted):
        help = "use it as it is" if isinstance(graph, DAG) else "take its `.dag`"
        raise refusal("STM3501", f"this is a {kind_of(graph)} already", help)
    known_listing = None if listing is None else checked_listing(listing)
    read_as_its_kind = _holder(graph, known_listing)
    if read_as_its_kind is None:
        return finish(of_pairs(graph, nodes, known_listing or "directed"), **orientation)
    if nodes is not None:
        help = "leave `nodes` out, and add nodes without edges to the graph"
        raise refusal("STM3503", f"{kind_of(graph)} says itself which nodes there are", help)
    return finish(read_as_its_kind(), **orientation)


def _holder(graph: Any, listing: Listing | None) -> Callable[[], GivenGraph] | None:
    """How a graph of a library is read; None for what may be a list of edges."""
    from stmlang.graph.readers.tudataset import UndirectedGraph

    if is_networkx(graph):
        return lambda: of_networkx(graph, listing)
    if is_sparse(graph):
        return lambda: of_sparse(graph, listing or "directed")
    if isinstance(graph, UndirectedGraph):
        return lambda: of_undirected(graph, listing)
    if isinstance(graph, str | bytes | list | np.ndarray):
        return None
    if is_pyg(graph):
        return lambda: of_pyg(graph, listing)
    if is_dgl(graph):
        return lambda: of_dgl(graph, listing)
    return (lambda: of_jraph(graph, listing)) if is_jraph(graph) else None


def of_undirected(graph: UndirectedGraph, listing: Listing | None) -> GivenGraph:
    """Each edge once, as `read_tudataset` lists them. Raises SpecError (STM3504) where `listing` says otherwise."""
    if listing not in (None, "once"):
        message = f"an {kind_of(graph)} lists every edge once, not `{listing}`"
        raise refusal("STM3504", message, "leave `listing` out")
    return GivenGraph(graph.edges, range(graph.node_count), "once")


def from_edges(
    edges: Any, *, nodes: Any = None, listing: Listing = "directed", **orientation: Unpack[Orientation]
) -> Converted:
    """From pairs of nodes, or an array of shape (edges, 2), also where it is (2, 2): a row is an edge.

    Where all ids are whole numbers they are the numbers of the nodes: of so many as `nodes` says, else up to the largest.
    Other ids, such as texts, are numbered in the order in which the edges first name them. A list `nodes` of all ids, numbers
    or not, numbers them in its order and brings in nodes without edges.

    Raises SpecError: STM3501 for what is no list, STM3502 for what is no pair or no id, STM3503 for nodes that are not there,
    STM3303 and STM3305 for graphs too large, and those of every kind: STM3504 where edges are not listed as said or an order is
    given for directed ones, STM3505 for cycles and edges from a node to itself, STM3506 for an unknown order.
    """
    return finish(of_pairs(edges, nodes, checked_listing(listing)), **orientation)


def from_edge_index(edge_index: Any, *, nodes: int, listing: Listing, **orientation: Unpack[Orientation]) -> Converted:
    """From an array of shape (2, edges), a row of tails and one of heads, also where it is (2, 2). Raises as `from_edges`."""
    return finish(of_edge_index(edge_index, nodes, checked_listing(listing)), **orientation)


def from_networkx(graph: Any, *, listing: Listing | None = None, **orientation: Unpack[Orientation]) -> Converted:
    """From networkx's Graph, DiGraph, MultiGraph or MultiDiGraph: nodes in the order of `graph.nodes`, edges in that of
    `graph.edges`, attributes left alone. A directed one may be `listing="twice"`, as `to_directed` makes them.

    Raises SpecError: STM3501 for another type, STM3504 where an undirected graph is said to be directed, else as `from_edges`.
    """
    return finish(of_networkx(graph, None if listing is None else checked_listing(listing)), **orientation)


def from_sparse(matrix: Any, *, listing: Listing = "directed", **orientation: Unpack[Orientation]) -> Converted:
    """From a sparse adjacency matrix of SciPy: what is stored in row `i` and column `j` is an edge from node `i` to node `j`.

    Every entry that is stored is an edge, zeros and repeated ones included, in the order of `matrix.tocoo()`. Raises SpecError:
    STM3501 for another type, STM3502 unless the matrix is square, else as `from_edges`.
    """
    return finish(of_sparse(matrix, checked_listing(listing)), **orientation)


def from_pyg(data: Any, *, listing: Listing | None = None, **orientation: Unpack[Orientation]) -> Converted:
    """From PyTorch Geometric's `Data`, or a dictionary as its `to_dict()`: `edge_index` of shape (2, edges) and `num_nodes`, or
    `x` with a row for each node. Undirected graphs list each edge there in both senses: `listing="twice"`. That is what is
    taken where nothing is said and every edge of a `Data` has its reverse; else its edges are directed.

    Raises SpecError: STM3501 for another type, for nodes of several kinds and for a batch of graphs, STM3502 where `x` or
    `edge_attr` does not fit, STM3503 where nothing says how many nodes there are, STM3504 for a dictionary without a `listing`,
    else as `from_edges`.
    """
    return finish(of_pyg(data, None if listing is None else checked_listing(listing)), **orientation)
