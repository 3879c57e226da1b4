"""A scan whose axes have no sizes yet: compiled when it is called, once for each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import jax
from jaxtyping import Array

from stmlang.lower.states import State
from stmlang.plan.problem import unbound_error
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.options import node_shape, plain
from stmlang.runtime.signature import call_error, mapped
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import bind, regular_part, unbound
from stmlang.scan.topology import Axis, CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology


@jax.tree_util.register_static
@dataclass(frozen=True, eq=False, repr=False)
class OpenScan:
    """What `stmlang.compile` returns for a spec with unbound axes. Callable like a `CompiledScan`, and a pytree without leaves.

    `finish` compiles a scan whose sizes are bound, with results of data type `dtype`; what it made is kept in `compiled`, by
    sizes.
    """

    scan: Scan
    dtype: str
    finish: Callable[[Scan], CompiledScan]
    compiled: dict[tuple[int, ...], CompiledScan] = field(default_factory=dict[tuple[int, ...], CompiledScan])

    def __repr__(self) -> str:
        return f"<OpenScan {self.scan.name}: no size yet for {', '.join(unbound(self.scan))}>"

    def bind(self, **sizes: int) -> CompiledScan:
        """The scan compiled for these sizes. Raises SpecError for unknown names and where one is still missing (STM5001)."""
        bound = bind(self.scan, {name: plain(size) for name, size in sizes.items()})
        if missing := unbound(bound):
            raise unbound_error(list(missing), self.scan.topology.span)
        regular = regular_part(bound)
        assert regular is not None, "only chains and grids have axes that can be open"
        key = tuple(axis.size for axis in regular.axes if axis.size is not None)
        if key not in self.compiled:
            self.compiled[key] = self.finish(bound)
        return self.compiled[key]

    def at(self, nodes: Sequence[int]) -> CompiledScan:
        """The scan compiled for node arrays of a shape. Raises SpecError (STM5201) where the shape contradicts a bound axis."""
        shape, axes = node_shape(nodes), _axes(self.scan.topology)
        fits = len(shape) == len(axes) and all(axis.size in (None, given) for axis, given in zip(axes, shape, strict=True))
        if not fits:
            names = ", ".join(axis.name if axis.size is None else str(axis.size) for axis in axes)
            message = f"node arrays of scan `{self.scan.name}` begin with the axes ({names}), not {shape}"
            raise call_error("STM5201", message, help=mapped("op") if len(shape) > len(axes) else None)
        open_axes = unbound(self.scan)
        sizes = {axis.name: size for axis, size in zip(axes, shape, strict=True) if axis.name in open_axes}
        return self.bind(**sizes).at(shape)

    def __call__(
        self,
        q: Array,
        k: Array,
        v: Array,
        gates: Mapping[str, Array],
        initial: State | None = None,
        return_state: bool = False,
    ) -> Any:
        """As `CompiledScan.__call__`, with the sizes of `q`."""
        return self._for(q)(q, k, v, gates, initial, return_state)

    def reference(self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None) -> Any:
        """As `CompiledScan.reference`, with the sizes of `q`."""
        return self._for(q).reference(q, k, v, gates, initial)

    def _for(self, q: Any) -> CompiledScan:
        shape = getattr(q, "shape", None)
        if shape is None:
            raise call_error("STM5203", f"`q` must be an array, not {type(q).__name__}")
        return self.at(tuple(shape)[:-2])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(CompiledScan, name):
            raise AttributeError(name)
        raise unbound_error(list(unbound(self.scan)), self.scan.topology.span)


def _axes(topology: Topology) -> tuple[Axis, ...]:
    """The axes of node arrays: those of chains and grids, and one of the nodes of each tree or DAG, without a size where only
    its graph tells."""
    match topology:
        case Regular(axes=axes):
            return axes
        case Product(factors=factors):
            return tuple(axis for factor in factors for axis in _axes(factor))
        case Static(nodes=nodes):
            return (Axis("nodes", len(nodes)),)
        case CompleteTree() | FromFile() | Runtime():
            return (Axis("nodes", None),)
        case _:
            assert_never(topology)
