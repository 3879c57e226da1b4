"""Where a scan is cut into pieces for the devices along an axis of a mesh, how graphs are divided among them, and what can be
neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from stmlang.runtime.signature import call_error
from stmlang.scan.expression import Neighbour, inside
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Axis, Regular, kind_of

Tree = TypeVar("Tree")
WHOLE = -1
"""In place of an axis: that of an array which every device has whole."""
GRAPHS = "graphs"
"""What is divided of a scan whose graphs come at run time."""


@dataclass(frozen=True)
class Along:
    """The devices along the axis `name` of a mesh."""

    mesh: Mesh
    name: str

    @property
    def devices(self) -> int:
        return cast(int, self.mesh.shape[self.name])

    @property
    def lies(self) -> NamedSharding:
        """How an array lies whose first axis is that of devices."""
        return NamedSharding(self.mesh, PartitionSpec(self.name))

    def placed(self, tree: Tree) -> Tree:
        """Arrays whose first axis is that of devices, laid so where the mesh wants to be told."""
        explicit = self.mesh.axis_types[self.mesh.axis_names.index(self.name)] is AxisType.Explicit
        return cast(Tree, jax.reshard(tree, self.lies)) if explicit else tree


@dataclass(frozen=True)
class Cut:
    """Where a scan is cut: axis number `axis`, of `size` nodes, into pieces along the axis `name` of a mesh."""

    mesh: Mesh
    name: str
    axis: int
    size: int

    @property
    def devices(self) -> int:
        return cast(int, self.mesh.shape[self.name])

    @property
    def longest(self) -> int:
        """The nodes of the longest piece."""
        return -(-self.size // self.devices)

    @property
    def longer(self) -> int:
        """How many pieces, the first ones, have a node more than the others; 0 where all are alike."""
        return self.size % self.devices

    @cached_property
    def places(self) -> np.ndarray:
        """For each place of the pieces side by side, the node that stands there; at one that is left over, any."""
        shorter = self.size // self.devices
        starts = [min(k, self.longer) + k * shorter for k in range(self.devices)]
        rows = np.asarray(starts)[:, None] + np.arange(self.longest)
        return np.minimum(rows, self.size - 1).reshape(-1).astype(np.int32)

    @cached_property
    def back(self) -> np.ndarray:
        """For each node its place."""
        shorter = self.size // self.devices
        counts = [shorter + (k < self.longer) for k in range(self.devices)]
        places = [k * self.longest + np.arange(count) for k, count in enumerate(counts)]
        return np.concatenate(places).astype(np.int32)

    def laid(self, array: Array, axis: int, table: np.ndarray) -> Array:
        return array if axis == WHOLE or not self.longer else jnp.take(array, table, axis=axis)

    def spec(self, axis: int) -> PartitionSpec:
        return PartitionSpec() if axis == WHOLE else PartitionSpec(*(None,) * axis, self.name)


def of_length(scan: Scan, axis: int, size: int) -> Scan:
    """The scan with so many nodes along an axis."""
    assert isinstance(scan.topology, Regular)
    axes = [Axis(each.name, size) if number == axis else each for number, each in enumerate(scan.topology.axes)]
    return replace(scan, topology=replace(scan.topology, axes=tuple(axes)))


def _named(mesh: Any, shard: Any) -> tuple[Any, Along]:
    """The axis of a scan that `shard` names, and the devices. Raises SpecError (STM5601) for what is no such option."""
    if not isinstance(mesh, Mesh):
        message = f"`mesh` must be a `jax.sharding.Mesh`, not {type(mesh).__name__}"
        raise call_error("STM5601", message, help='such as `jax.make_mesh((8,), ("x",))`')
    if not isinstance(shard, Mapping) or len(cast(Mapping[Any, Any], shard)) != 1:
        message = f"`shard` maps one axis of the topology to one of the mesh, and is {shard!r:.80}"
        raise call_error("STM5601", message, help='such as `shard={"time": "x"}`')
    ((axis, name),) = cast(Mapping[Any, Any], shard).items()
    if name not in mesh.axis_names:
        message = f"the mesh has no axis {name!r:.80}; it has {list(mesh.axis_names)}"
        raise call_error("STM5601", message, help=f'name one of them: `shard={{"{axis}": "{mesh.axis_names[0]}"}}`')
    return axis, Along(mesh, name)


def division_of(scan: Scan, mesh: Any, shard: Any) -> Along:
    """The devices among which `mesh` and `shard` divide the graphs of a scan that come at run time. Raises SpecError: STM5601
    for what is no such option, STM5603 for another axis than `graphs`."""
    axis, along = _named(mesh, shard)
    if axis != GRAPHS:
        message = f"the graphs of scan `{scan.name}` come at run time, and none of them is cut along {axis!r:.80}"
        raise call_error("STM5603", message, help=f'divide them among the devices: `shard={{"{GRAPHS}": "{along.name}"}}`')
    return along


def cut_of(scan: Scan, mesh: Any, shard: Any) -> Cut:
    """Where `mesh` and `shard` have a scan cut. Raises SpecError (STM5601 to STM5603) where it cannot be."""
    axis, along = _named(mesh, shard)
    name, devices = along.name, along.devices
    if not isinstance(scan.topology, Regular):
        message = f"scan `{scan.name}` runs on a {kind_of(scan.topology)}, which is not cut"
        help = "map a batch over it with `jax.vmap`, along the mesh: each device evaluates its examples"
        raise call_error("STM5603", message, help=help)
    names = [each.name for each in scan.topology.axes]
    if axis not in names:
        message = f"the topology of scan `{scan.name}` has no axis {axis!r:.80}; it has {names}"
        raise call_error("STM5602", message, help=f'name one of them: `shard={{"{names[0]}": "{name}"}}`')
    values = (clause.value for gate in scan.gates for clause in gate.clauses)
    if any(isinstance(expr, Neighbour) for expr in inside(*values)):
        message = f"gates of scan `{scan.name}` ask whether there is a neighbour: a piece does not know where the border is"
        raise call_error("STM5603", message, help="leave `mesh` and `shard` out, or the `neighbour`")
    size = scan.topology.axes[names.index(axis)].size
    if size is None or size < devices:
        message = f"axis `{axis}` of scan `{scan.name}` has {'no size yet' if size is None else size}, for {devices} devices"
        raise call_error("STM5602", message, help=f"give it a size of at least {devices}, or a smaller mesh")
    return Cut(mesh, name, names.index(axis), size)
