"""A scan whose axes have no sizes yet: compiled when it is called, once for each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jaxtyping import Array

from stmlang.lower.states import State
from stmlang.plan.problem import unbound_error
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.signature import call_error
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import bind, unbound
from stmlang.scan.topology import Regular


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
        bound = bind(self.scan, sizes)
        if missing := unbound(bound):
            raise unbound_error(list(missing), self.scan.topology.span)
        assert isinstance(bound.topology, Regular)
        key = tuple(axis.size for axis in bound.topology.axes if axis.size is not None)
        if key not in self.compiled:
            self.compiled[key] = self.finish(bound)
        return self.compiled[key]

    def at(self, nodes: Sequence[int]) -> CompiledScan:
        """The scan compiled for node arrays of a shape. Raises SpecError (STM5201) where the shape contradicts a bound axis."""
        topology = self.scan.topology
        assert isinstance(topology, Regular)
        known = tuple(axis.size for axis in topology.axes)
        fits = len(nodes) == len(known) and all(size in (None, given) for size, given in zip(known, nodes, strict=True))
        if not fits:
            names = ", ".join(axis.name if axis.size is None else str(axis.size) for axis in topology.axes)
            raise call_error(
                "STM5201", f"node arrays of scan `{self.scan.name}` begin with the axes ({names}), not {tuple(nodes)}"
            )
        return self.bind(**{axis.name: size for axis, size in zip(topology.axes, nodes, strict=True) if axis.size is None})

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
