"""Where a scan is cut into pieces for the devices along axes of a mesh, how graphs are divided among them, and what can be
neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int

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
    """Where a scan is cut along one axis: number `axis`, of `size` nodes, into pieces for so many devices, which lie along the
    axis `name` of a mesh."""

    name: str
    axis: int
    size: int
    devices: int

    @property
    def longest(self) -> int:
        """The nodes of the longest piece."""
        return -(-self.size // self.devices)

    @property
    def longer(self) -> int:
        """How many pieces, the first ones, have a node more than the others; 0 where all are alike."""
        return self.size % self.devices

    @property
    def lengths(self) -> tuple[int, ...]:
        """The nodes that pieces have, the longest first."""
        return (self.longest, self.longest - 1) if self.longer else (self.longest,)

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


Axes = tuple[int, ...]
"""For each cut the axis of an array by which it lies along the devices there, or `WHOLE`."""


@dataclass(frozen=True)
class Tiling:
    """All cuts of a scan, in the order of the axes of the mesh. Each device has a tile, of which there are as many kinds as
    combinations of lengths."""

    mesh: Mesh
    cuts: tuple[Cut, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cut.name for cut in self.cuts)

    @property
    def lengths(self) -> list[tuple[int, ...]]:
        """The sizes that tiles have along the axes that are cut, the largest first."""
        return list(product(*(cut.lengths for cut in self.cuts)))

    def kind(self) -> Int[Array, ""]:
        """Of which of these sizes the tile of this device is, inside of `jax.shard_map`."""
        number = jnp.zeros((), jnp.int32)
        for cut in self.cuts:
            if cut.longer:
                number = 2 * number + (jax.lax.axis_index(cut.name) >= cut.longer)
        return number

    def laid(self, array: Array, axes: Axes) -> Array:
        """Nodes at the places of tiles side by side, where they lie along the mesh."""
        for cut, axis in zip(self.cuts, axes, strict=True):
            if axis != WHOLE and cut.longer:
                array = jnp.take(array, cut.places, axis=axis)
        return self._placed(array, axes, self.names)

    def back(self, array: Array, axes: Axes) -> Array:
        """Places of tiles in the order of nodes. On an explicit mesh no size lies along an axis that does not divide it."""
        array = self._placed(array, axes, [cut.name for cut in self.cuts if not cut.longer])
        for cut, axis in zip(self.cuts, axes, strict=True):
            if axis != WHOLE and cut.longer:
                array = jnp.take(array, cut.back, axis=axis)
        return array

    def spec(self, axes: Axes) -> PartitionSpec:
        return self._spec(axes, self.names)

    def _placed(self, array: Array, axes: Axes, names: Sequence[str]) -> Array:
        """An array that lies along these axes of the mesh, as far as the mesh wants to be told."""
        kinds = dict(zip(self.mesh.axis_names, self.mesh.axis_types, strict=True))
        if AxisType.Explicit not in (kinds[name] for name in self.names):
            return array
        told = [name for name in names if kinds[name] is AxisType.Explicit]
        return cast(Array, jax.reshard(array, NamedSharding(self.mesh, self._spec(axes, told))))

    def _spec(self, axes: Axes, names: Sequence[str]) -> PartitionSpec:
        lies = {axis: cut.name for cut, axis in zip(self.cuts, axes, strict=True) if cut.name in names}
        return PartitionSpec(*(lies.get(axis) for axis in range(max(axes) + 1)))


def of_lengths(scan: Scan, cuts: Sequence[Cut], lengths: Sequence[int]) -> Scan:
    """The scan with so many nodes along the axes that are cut."""
    assert isinstance(scan.topology, Regular)
    sizes = {cut.axis: length for cut, length in zip(cuts, lengths, strict=True)}
    axes = [Axis(each.name, sizes.get(number, each.size)) for number, each in enumerate(scan.topology.axes)]
    return replace(scan, topology=replace(scan.topology, axes=tuple(axes)))


def _named(mesh: Any, shard: Any) -> dict[Any, Along]:
    """The axes of a scan that `shard` names, and the devices for each. Raises SpecError (STM5601) for what is no option."""
    if not isinstance(mesh, Mesh):
        message = f"`mesh` must be a `jax.sharding.Mesh`, not {type(mesh).__name__}"
        raise call_error("STM5601", message, help='such as `jax.make_mesh((8,), ("x",))`')
    if not isinstance(shard, Mapping) or not shard:
        message = f"`shard` maps axes of the topology to axes of the mesh, and is {shard!r:.80}"
        raise call_error("STM5601", message, help='such as `shard={"time": "x"}`')
    named = dict(cast(Mapping[Any, Any], shard))
    for axis, name in named.items():
        if name not in mesh.axis_names:
            message = f"the mesh has no axis {name!r:.80}; it has {list(mesh.axis_names)}"
            raise call_error("STM5601", message, help=f'name one of them: `shard={{"{axis}": "{mesh.axis_names[0]}"}}`')
    twice = [name for name, count in Counter(named.values()).items() if count > 1]
    if twice:
        message = (
            f"`shard` maps {[axis for axis, name in named.items() if name == twice[0]]} to the axis {twice[0]!r} of the mesh"
        )
        raise call_error("STM5601", message, help="give each of them an axis of its own, or leave all but one out")
    return {axis: Along(mesh, name) for axis, name in named.items()}


def division_of(scan: Scan, mesh: Any, shard: Any) -> Along:
    """The devices among which `mesh` and `shard` divide the graphs of a scan that come at run time. Raises SpecError: STM5601
    for what is no such option, STM5603 for another axis than `graphs`."""
    named = _named(mesh, shard)
    others = [axis for axis in named if axis != GRAPHS]
    if others:
        message = f"the graphs of scan `{scan.name}` come at run time, and none of them is cut along {others[0]!r:.80}"
        help = f'divide them among the devices: `shard={{"{GRAPHS}": "{named[others[0]].name}"}}`'
        raise call_error("STM5603", message, help=help)
    return named[GRAPHS]


def tiling_of(scan: Scan, mesh: Any, shard: Any) -> Tiling:
    """Where `mesh` and `shard` have a scan cut. Raises SpecError (STM5601 to STM5603) where it cannot be.

    An axis of the mesh with one device cuts nothing, and is left out beside others."""
    named = _named(mesh, shard)
    if not isinstance(scan.topology, Regular):
        message = f"scan `{scan.name}` runs on a {kind_of(scan.topology)}, which is not cut"
        help = "map a batch over it with `jax.vmap`, along the mesh: each device evaluates its examples"
        raise call_error("STM5603", message, help=help)
    names = [each.name for each in scan.topology.axes]
    for axis, along in named.items():
        if axis not in names:
            message = f"the topology of scan `{scan.name}` has no axis {axis!r:.80}; it has {names}"
            left = next((name for name in names if name not in named), names[0])
            raise call_error("STM5602", message, help=f'name one of them: `shard={{"{left}": "{along.name}"}}`')
    values = (clause.value for gate in scan.gates for clause in gate.clauses)
    if any(isinstance(expr, Neighbour) for expr in inside(*values)):
        message = f"gates of scan `{scan.name}` ask whether there is a neighbour: a piece does not know where the border is"
        raise call_error("STM5603", message, help="leave `mesh` and `shard` out, or the `neighbour`")
    empty = [each.name for each in scan.topology.axes if each.size == 0]
    if empty:
        message = f"scan `{scan.name}` has no nodes to share: its axis `{empty[0]}` has size 0"
        raise call_error("STM5602", message, help="leave `mesh` and `shard` out, or give it a size")
    cuts = [_cut(scan, names.index(axis), along) for axis, along in named.items()]
    cuts = [cut for cut in cuts if cut.devices > 1] or cuts[:1]
    return Tiling(mesh, tuple(sorted(cuts, key=lambda cut: mesh.axis_names.index(cut.name))))


def _cut(scan: Scan, axis: int, along: Along) -> Cut:
    assert isinstance(scan.topology, Regular)
    name, size = scan.topology.axes[axis].name, scan.topology.axes[axis].size
    if size is None or size < along.devices:
        found = "no size yet" if size is None else size
        message = f"axis `{name}` of scan `{scan.name}` has {found}, for {along.devices} devices"
        raise call_error("STM5602", message, help=f"give it a size of at least {along.devices}, or a smaller mesh")
    return Cut(along.name, axis, size, along.devices)
