"""The parameters behind a scan's gates, and their values at given features."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.graph.shapes import index_size, several
from stmlang.lower.mesh_axes import reshaped
from stmlang.lower.tables import take
from stmlang.nn.errors import require_array, require_names
from stmlang.nn.start import behind, normal, spread
from stmlang.nn.tables import EdgeTables, site_of
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.modules import equal, hash_of
from stmlang.scan.expression import PORT_INDICES
from stmlang.scan.scan import Leaf, Scan
from stmlang.scan.topology import is_regular

Place = tuple[str, int]
"""A leaf, and the number of one of its features."""
Key = TypeVar("Key")
FEW = 4
"""Sites of which the weights are more than the features."""


class Leaves(eqx.Module):
    """Everything a spec learns, by leaf name.

    `weight[name]`: `(head, [direction], [step], *indices, features)` and `bias[name]`: the same without features for each
    `linear`; `constant[name]`, like a bias, for each `param`. Port indices have an axis on regular
    topologies only; elsewhere one set of parameters serves all edges. Features are those of the node, then of each edge named.
    """

    weight: dict[str, Float[Array, "head ... features"]]
    bias: dict[str, Float[Array, "head ..."]]
    constant: dict[str, Float[Array, "head ..."]]
    leaves: tuple[Leaf, ...] = eqx.field(static=True, repr=False)
    forward: tuple[bool, ...] = eqx.field(static=True, repr=False)

    __hash__ = hash_of
    __eq__ = equal

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

    def weights(self, dim: int, edge_dim: int) -> tuple[dict[Place, Array], dict[Place, Array]]:
        """What features of nodes, and what those of edges are multiplied with."""
        of_nodes, of_edges = dict[Place, Array](), dict[Place, Array]()
        for leaf in (leaf for leaf in self.leaves if leaf.kind == "linear"):
            start = 0
            for number, feature in enumerate(leaf.features):
                width = dim if feature.index is None else edge_dim
                columns = self.weight[leaf.name][..., start : start + width]
                (of_nodes if feature.index is None else of_edges)[leaf.name, number] = columns
                start += width
        return of_nodes, of_edges

    def given(self, given: Mapping[str, Array], op: CompiledScan) -> dict[str, Array]:
        """The values of leaves that the spec declares as `given`, for the compiled scan `op`. Raises SpecError (STM5201 to
        STM5205) where they are not what it takes."""
        shapes = op.signature.gates
        names = [leaf.name for leaf in self.leaves if leaf.kind == "given"]
        arrays = require_names("given", given, names)
        return {name: require_array(f'given["{name}"]', arrays[name], shapes[name]) for name in names}

    def __call__(self, products: Mapping[Place, Array], given: Mapping[str, Array], op: CompiledScan) -> dict[str, Array]:
        """The leaves' values, by name and of the shapes that the compiled scan `op` takes as its gates. `products` are those of
        `weights` with the features of all nodes and of all edges."""
        shapes, tables = op.signature.gates, EdgeTables.of(op)
        values: dict[str, Array] = {}
        for leaf in self.leaves:
            match leaf.kind:
                case "linear":
                    value = self._linear(leaf, products, tables)
                    value = value + behind(self.bias[leaf.name], value.ndim)
                    values[leaf.name] = reshaped(value, shapes[leaf.name])
                case "param":
                    values[leaf.name] = self.constant[leaf.name]
                case "given":
                    values[leaf.name] = given[leaf.name]
        return values

    def _linear(self, leaf: Leaf, products: Mapping[Place, Array], tables: EdgeTables | None) -> Array:
        """`W f` at every site of a leaf, `(*sites, head, [direction], *indices)`."""
        if tables is None or site_of(leaf) == "node":
            return _summed([products[leaf.name, number] for number in range(len(leaf.features))])
        if not leaf.directional or len(self.forward) == 1:
            return _at_sites(leaf, products, tables, forward=self.forward[0] if leaf.directional else True)
        each = [
            _at_sites(
                leaf,
                {place: array[:, :, k] for place, array in products.items() if place[0] == leaf.name},
                tables,
                forward=sense,
            )
            for k, sense in enumerate(self.forward)
        ]
        return jnp.stack(each, axis=2)


def _at_sites(leaf: Leaf, products: Mapping[Place, Array], tables: EdgeTables, *, forward: bool) -> Array:
    """`W f` for one direction of a ragged topology, `(sites, head, *indices)`: products gathered to the sites."""
    blocks: list[Array] = []
    for number, feature in enumerate(leaf.features):
        site = site_of(leaf)
        table = (
            tables.node(site, forward=forward) if feature.index is None else tables.edge(site, feature.index, forward=forward)
        )
        product = products[leaf.name, number]
        blocks.append(product if table is None else take(product, table, 0))
    return _summed(blocks)


def _summed(summands: list[Array]) -> Array:
    return sum(summands[1:], summands[0])


def products(features: Float[Array, "*sites features"], weights: Mapping[Key, Array]) -> dict[Key, Array]:
    """`W f` over the last axes for each of several weights, `(*sites, ...)`: one product of matrices for all, since its cost is
    reading the features; but of few sites, such as those of a step, it is reading the weights, and each is multiplied as it
    lies. Multiplied in the features' data type, summed in that of the parameters."""
    if not weights:
        return {}
    if prod(features.shape[:-1]) <= FEW:
        return {key: applied(weight, features, 1, weight.dtype) for key, weight in weights.items()}
    width, shapes = features.shape[-1], [weight.shape[:-1] for weight in weights.values()]
    together = jnp.concatenate([weight.reshape(-1, width) for weight in weights.values()])
    product = applied(together, features, 1, together.dtype)
    # Slices would do, but the derivative of each is as wide as all together.
    pieces = jax.lax.split(product, [prod(shape) for shape in shapes], axis=product.ndim - 1)
    return {
        key: reshaped(piece, (*features.shape[:-1], *shape)) for key, piece, shape in zip(weights, pieces, shapes, strict=True)
    }


def applied(weight: Float[Array, "*out *in"], features: Float[Array, "*sites *in"], axes: int, dtype: DTypeLike) -> Array:
    """`W f` over so many last axes, `(*sites, *out)`, multiplied in the data type of the features and summed in `dtype`. With
    few sites the weights come first in the product: XLA's CPU kernels take several times as long for a matrix of one row as for
    one of one column."""
    last = tuple(range(-axes, 0))
    narrow = weight.astype(features.dtype)
    sites = features.ndim - axes
    if prod(features.shape[:sites]) > FEW:
        return jnp.tensordot(features, narrow, axes=(last, last), preferred_element_type=dtype)
    product = jnp.tensordot(narrow, features, axes=(last, last), preferred_element_type=dtype)
    return jnp.moveaxis(product, range(product.ndim - sites, product.ndim), range(sites))


def parameter_shape(scan: Scan, leaf: Leaf) -> tuple[int, ...]:
    """`(head, [direction], [step], *indices)` without the port indices of ragged topologies."""
    direction = (len(scan.directions),) if leaf.directional and len(scan.directions) > 1 else ()
    dense = is_regular(scan.topology)
    sizes = tuple(index_size(scan, index) for index in leaf.indices if dense or index not in PORT_INDICES)
    return (scan.heads, *direction, *(several(scan.steps) if leaf.stepped else ()), *sizes)
