"""Graphs that a program holds, as DAGs."""

from stmlang.graph.convert.api import as_dag, convert, from_edge_index, from_edges, from_networkx, from_pyg, from_sparse
from stmlang.graph.convert.finish import Converted
from stmlang.graph.convert.given import Listing

__all__ = [
    "Converted",
    "Listing",
    "as_dag",
    "convert",
    "from_edge_index",
    "from_edges",
    "from_networkx",
    "from_pyg",
    "from_sparse",
]
