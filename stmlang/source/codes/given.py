"""STM35xx: graphs given at run time."""

from __future__ import annotations

GIVEN: dict[str, tuple[str, str]] = {
    "STM3501": (
        "not a graph",
        "A graph comes as a list of pairs, an integer array of shape (edges, 2), a networkx graph, a SciPy sparse matrix, a "
        "dictionary with `edge_index`, or one graph of PyTorch Geometric, DGL or jraph. A batch is made of several `DAG`s.",
    ),
    "STM3502": (
        "malformed edges",
        "An edge is a pair of node ids: whole numbers, strings, or anything else that can be a key of a dictionary, but no "
        "floating point number, no truth value and no None. An array has one row for each edge, `edge_index` one column.",
    ),
    "STM3503": (
        "node that is not there",
        "Nodes are numbered from 0 to their count less one, or listed by their ids, each once. An edge joins two of them.",
    ),
    "STM3504": (
        "directed or undirected",
        "`listing` says what the edges of a graph are: `directed`, from the first node to the second; `once`, undirected and "
        "each listed in one sense; `twice`, undirected and each listed in both, equally often. Edges that contradict it are "
        "refused. An order orients undirected graphs only.",
    ),
    "STM3505": (
        "cycle in a graph given at run time",
        "The edges lead from a node back to itself, so no order of evaluation exists. The message prints a shortest cycle "
        "through one of its nodes. `condense=True` makes one node of all that lie on cycles together.",
    ),
    "STM3506": (
        "unknown order",
        "Undirected graphs are oriented by the order of their nodes that `index`, `degree`, `bfs`, `canonical` or `random` "
        "names, the last one drawn from `seed`, a whole number of at least 0.",
    ),
    "STM3507": (
        "more than the topology allows",
        "`dag(nodes <= N, edges <= E)` bounds every graph that a call brings.",
    ),
    "STM3508": (
        "bucket that does not fit",
        "A bucket is a shape that batches are filled up to. It holds all nodes, edges and graphs of a batch, and at least two "
        "nodes and an edge between them to fill it up with.",
    ),
    "STM3509": (
        "features that do not fit",
        "The features of a batch come as one array for each graph, with a row for each node or edge and rows of the same shape "
        "everywhere; those of a batch as a whole have a row for each node or edge of its bucket. Nodes of which a data set "
        "says nothing have their `degrees` for features, or `ones`.",
    ),
    "STM3510": (
        "graph that cannot stand in a batch",
        "The graphs of a batch have edges of one kind, each between two nodes. Chains and grids, whose edges come from outside "
        "and lead outside, and products of several graphs are batched by `jax.vmap` instead.",
    ),
}
