"""Features of nodes and edges, multiplied with everything that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from stmlang.nn.errors import require_array, require_floats
from stmlang.nn.leaves import Leaves, products
from stmlang.nn.tables import EdgeTables
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.signature import call_error


class Features(NamedTuple):
    """What a layer is called with: features of nodes and of edges, and those that each end adds to its edges, which may be the
    features of nodes themselves."""

    nodes: Float[Array, "*nodes dim"]
    edges: Float[Array, "edges edge_dim"] | None
    ends: Float[Array, "nodes edge_dim"] | None


def multiplied(
    leaves: Leaves,
    dim: int,
    edge_dim: int,
    op: CompiledScan,
    features: Features,
    inputs: Mapping[str, Array],
    given: Mapping[str, Array],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The products of some more weights with the features of nodes, and the leaves' values, for the compiled scan `op`: each
    array of features is read once. Raises SpecError (STM52xx) where an array is missing, too many or does not fit."""
    once = features.ends is features.nodes
    x = require_floats("x", features.nodes)
    require_array("x", x, (*op.node_shape, dim), op)
    edges, ends = _edge_arrays(leaves, edge_dim, op, features)
    known = leaves.given(given, op)
    of_nodes, of_edges = leaves.weights(dim, edge_dim)
    weights: dict[Any, Array] = {**inputs, **of_nodes}
    if ends is not None and once:
        weights |= {("ends", place): weight for place, weight in of_edges.items()}
    by_weight = products(x.astype(op.dtype), weights)
    by_place = {place: by_weight[place] for place in of_nodes}
    if edges is not None:
        by_place |= products(edges, of_edges)
    if ends is not None:
        at_ends = {place: by_weight["ends", place] for place in of_edges} if once else products(ends, of_edges)
        tables = EdgeTables.of(op)
        assert tables is not None
        by_place |= {place: by_place[place] + tables.between(at_ends[place]) for place in of_edges}
    return {name: by_weight[name] for name in inputs}, leaves(by_place, known, op)


def _edge_arrays(leaves: Leaves, edge_dim: int, op: CompiledScan, features: Features) -> tuple[Array | None, Array | None]:
    """Features of edges and of their ends, in the data type of the scan."""
    if leaves.reads_edges:
        shape = (op.edge_count, edge_dim)
        if features.edges is None:
            raise call_error("STM5202", f"`edge_features` is missing; its shape is {shape}")
        edges = require_array("edge_features", features.edges, shape, op).astype(op.dtype)
        if features.ends is None:
            return edges, None
        shape = (*op.node_shape, edge_dim)
        return edges, require_array("end_features", features.ends, shape, op).astype(op.dtype)
    for name, array in (("edge_features", features.edges), ("end_features", features.ends)):
        if array is not None:
            message = f"scan `{op.scan.name}` reads no edge features, and `{name}` were given"
            raise call_error("STM5202", message, help="leave them out, or read them in the spec: `linear(x, e[out])`")
    return None, None
