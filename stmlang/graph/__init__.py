"""Graphs on the host: one of them, made of what people have, and several side by side."""

from stmlang.graph import multitree, readers
from stmlang.graph.batch import Batch, Bucket, batch
from stmlang.graph.convert import (
    Converted,
    Listing,
    as_dag,
    convert,
    from_edge_index,
    from_edges,
    from_networkx,
    from_pyg,
    from_sparse,
)
from stmlang.graph.dag import DAG
from stmlang.graph.dataset import GraphSet, tudataset
from stmlang.graph.orient import Order
from stmlang.graph.shares import Shares, shares

__all__ = [
    "DAG",
    "Batch",
    "Bucket",
    "Converted",
    "GraphSet",
    "Listing",
    "Order",
    "Shares",
    "as_dag",
    "batch",
    "convert",
    "from_edge_index",
    "from_edges",
    "from_networkx",
    "from_pyg",
    "from_sparse",
    "multitree",
    "readers",
    "shares",
    "tudataset",
]
