"""Graphs of networkx and matrices of SciPy, neither of which is imported."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from itertools import chain
from typing import Any

import numpy as np

from stmlang.graph.convert.arrays import integer_ends, numbered
from stmlang.graph.convert.given import GivenGraph, Listing, numbers_or
from stmlang.graph.limits import refuse_above_largest
from stmlang.graph.refusal import kind_of, refusal


def is_networkx(graph: object) -> bool:
    """Whether this is a graph of networkx, which then has been imported."""
    library: Any = sys.modules.get("networkx")
    return library is not None and isinstance(graph, library.Graph)


def is_sparse(graph: object) -> bool:
    """Whether this is a sparse matrix of SciPy, or what acts as one."""
    return hasattr(type(graph), "tocoo") and hasattr(graph, "shape")


def of_networkx(graph: Any, listing: Listing | None) -> GivenGraph:
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
    return GivenGraph(ends, numbers_or(ids), listing or ("directed" if directed else "once"))


def of_sparse(matrix: Any, listing: Listing) -> GivenGraph:
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
    return GivenGraph(ends, numbered(ends, int(shape[0]), "in another form"), listing)
