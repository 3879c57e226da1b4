"""Graphs on the host: one of them, made of what people have, and several side by side.

`readers`, `multitree` and data sets are imported when they are first used: what checks or plans a spec reads no file of graphs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from stmlang.graph.orient import Order
from stmlang.graph.shares import Shares, shares

if TYPE_CHECKING:
    from stmlang.graph import multitree, readers
    from stmlang.graph.dataset import GraphSet, tudataset

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


def __getattr__(name: str) -> Any:
    if name in ("multitree", "readers"):
        return import_module(f"stmlang.graph.{name}")
    if name in ("GraphSet", "tudataset"):
        return getattr(import_module("stmlang.graph.dataset"), name)
    raise AttributeError(f"module 'stmlang.graph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
