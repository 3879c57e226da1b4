"""The parameters behind a scan's gates, and their values at given features."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.graph.shapes import index_size
from stmlang.lower.tables import take
from stmlang.nn.errors import require_array, require_names
from stmlang.nn.start import normal, spread
from stmlang.nn.tables import EdgeTables, site_of
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.expression import PORT_INDICES
from stmlang.scan.scan import Leaf, Scan
from stmlang.scan.topology import is_regular


class Leaves(eqx.Module):
    """Everything a spec learns, by leaf name.

    `weight[name]`: `(head, [direction], *indices, features)` and `bias[name]`: `(head, [direction], *indices)` for each
    `linear`; `constant[name]`: `(head, [direction], *indices)` for each `param`. Port indices have an axis on regular
    topologies only; elsewhere one set of parameters serves all edges. Features are those of the node, then of each edge named.
    """

    weight: dict[str, Float[Array, "head ... features"]]
    bias: dict[str, Float[Array, "head ..."]]
    constant: dict[str, Float[Array, "head ..."]]
    leaves: tuple[Leaf, ...] = eqx.field(static=True)
    forward: tuple[bool, ...] = eqx.field(static=True)

    def __init__(self, scan: Scan, dim: int, edge_dim: int, *, dtype: jnp.dtype, key: PRNGKeyArray) -> None:
        """`dim` node features and `edge_dim` features of each edge; parameters of data type `dtype`."""
        self.leaves = scan.leaves
        self.forward = tuple(all(sense > 0 for sense in direction.senses) for direction in scan.directions)
        self.weight, self.bias, self.constant = {}, {}, {}
        for number, leaf in enumerate(scan.leaves):
            shape = parameter_shape(scan, leaf)
            start = spread(leaf.bias, shape, dtype=dtype)
            match leaf.kind:
                case "linear":
                    features = sum(dim if feature.name == "x" else edge_dim for feature in leaf.features)
                    own = jax.random.fold_in(key, number)
                    self.weight[leaf.name] = normal(own, (*shape, features), gain=leaf.weight, dtype=dtype)
                    self.bias[leaf.name] = start
                case "param":
                    own = jax.random.fold_in(key, number)
                    scatter = normal(own, (*shape, 1), gain=leaf.weight, dtype=dtype)
                    self.constant[leaf.name] = start + scatter[..., 0]
                case "given":
                    pass

    @property
    def reads_edges(self) -> bool:
        """Whether any leaf reads edge features."""
        return any(feature.name == "e" for leaf in self.leaves for feature in leaf.features)

    def __call__(
        self,
        x: Float[Array, "*nodes dim"],
        edges: Float[Array, "edges edge_dim"] | None,
        given: Mapping[str, Array],
        op: CompiledScan,
    ) -> dict[str, Array]:
        """The leaves' values, by name and of the shapes that the compiled scan `op` takes as its gates. Products are summed,
        and the values kept, in float32 or better, whatever the features' data type."""
        shapes, tables = op.signature.gates, EdgeTables.of(op)
        wanted = [leaf.name for leaf in self.leaves if leaf.kind == "given"]
        found = require_names("given", given, wanted)
        arrays = {name: require_array(f'given["{name}"]', found[name], shapes[name]) for name in wanted}
        values: dict[str, Array] = {}
        for leaf in self.leaves:
            match leaf.kind:
                case "linear":
                    value = self._linear(leaf, x, edges, tables) + self.bias[leaf.name]
                    values[leaf.name] = value.reshape(shapes[leaf.name])
                case "param":
                    values[leaf.name] = self.constant[leaf.name]
                case "given":
                    values[leaf.name] = arrays[leaf.name]
        return values

    def _linear(self, leaf: Leaf, x: Array, edges: Array | None, tables: EdgeTables | None) -> Array:
        """`W f` at every site of a leaf, `(*sites, head, [direction], *indices)`."""
        weight = self.weight[leaf.name]
        if tables is None or site_of(leaf) == "node":
            return _product(x, weight)
        nodes = x.reshape(-1, x.shape[-1])
        if not leaf.directional:
            return _on_edges(leaf, nodes, edges, weight, tables, forward=True)
        if len(self.forward) == 1:
            return _on_edges(leaf, nodes, edges, weight, tables, forward=self.forward[0])
        each = [_on_edges(leaf, nodes, edges, weight[:, k], tables, forward=sense) for k, sense in enumerate(self.forward)]
        return jnp.stack(each, axis=2)


def _on_edges(leaf: Leaf, nodes: Array, edges: Array | None, weight: Array, tables: EdgeTables, *, forward: bool) -> Array:
    """`W f` for one direction of a ragged topology, `(sites, head, *indices)`: multiplied, then gathered to the sites."""
    parts: list[Array] = []
    start = 0
    for feature in leaf.features:
        if feature.index is None:
            source, table = nodes, tables.node(site_of(leaf), forward=forward)
        else:
            assert edges is not None
            source, table = edges, tables.edge(site_of(leaf), feature.index, forward=forward)
        width = source.shape[-1]
        part = _product(source, weight[..., start : start + width])
        parts.append(part if table is None else take(part, table, 0))
        start += width
    return sum(parts[1:], parts[0])


def _product(features: Array, weight: Array) -> Array:
    """`W f` over the last axes, multiplied in the features' data type, summed in that of the parameters."""
    return jnp.tensordot(features, weight.astype(features.dtype), axes=((-1,), (-1,)), preferred_element_type=weight.dtype)


def parameter_shape(scan: Scan, leaf: Leaf) -> tuple[int, ...]:
    """`(head, [direction], *indices)` without the port indices of ragged topologies."""
    direction = (len(scan.directions),) if leaf.directional and len(scan.directions) > 1 else ()
    dense = is_regular(scan.topology)
    sizes = tuple(index_size(scan, index) for index in leaf.indices if dense or index not in PORT_INDICES)
    return (scan.heads, *direction, *sizes)
