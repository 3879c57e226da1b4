"""A scan whose axes have no sizes yet: compiled when it is called, once for each shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from stmlang.compiler import Call, Request
from stmlang.cost.problem import unbound_error
from stmlang.graph.shapes import query_axes
from stmlang.log import CACHE
from stmlang.program.states import State
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compiled import CompiledScan, compile_scan
from stmlang.runtime.lengths import Lengths, filled_up, padded
from stmlang.runtime.masks import require_segments
from stmlang.runtime.options import node_shape, plain
from stmlang.runtime.signature import call_error, mapped
from stmlang.runtime.stream import ScanStream
from stmlang.scan.scan import Scan
from stmlang.scan.sizes import bind, regular_part, unbound
from stmlang.scan.topology import Axis, CompleteTree, FromFile, Product, Regular, Runtime, Static, Topology
from stmlang.source import short
from stmlang.source.diagnostic import UnavailableError


@jax.tree_util.register_static
@dataclass(frozen=True, repr=False)
class OpenScan:
    """What `stmlang.compile` returns for a spec with unbound axes. Callable like a `CompiledScan`, and a pytree without leaves.

    `call` and `request` say what it is compiled for once its sizes are bound; what was compiled is kept in `compiled`, by
    sizes, and not stored. Where axes have `lengths`, arrays are filled up to one of few sizes and the scan is told by a mask
    what counts of them, so that few sizes are compiled. Two are equal whose specs and options are.
    """

    scan: Scan
    call: Call
    request: Request
    lengths: Mapping[str, Lengths] = field(default_factory=dict[str, Lengths])
    compiled: dict[tuple[int, ...], CompiledScan] = field(default_factory=dict[tuple[int, ...], CompiledScan], compare=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> OpenScan:
        del memo
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return OpenScan, (self.scan, self.call, self.request, dict(self.lengths))

    def __hash__(self) -> int:
        return hash((self.scan, self.call, self.request, tuple(sorted(self.lengths))))

    __pdoc__ = short.text

    def __repr__(self) -> str:
        return f"<OpenScan {self.scan.name}: no size yet for {', '.join(unbound(self.scan))}>"

    @property
    def dtype(self) -> str:
        """The data type of results."""
        return self.call.dtype

    def bind(self, **sizes: int) -> CompiledScan:
        """The scan compiled for these sizes. Raises SpecError for unknown names and where one is still missing (STM5001)."""
        bound = bind(self.scan, {name: plain(size) for name, size in sizes.items()})
        if unknown := unbound(bound):
            raise unbound_error(list(unknown), self.scan.topology.span)
        regular = regular_part(bound)
        assert regular is not None, "only chains and grids have axes that can be open"
        key = tuple(axis.size for axis in regular.axes if axis.size is not None)
        CACHE.info("%s for %s: %s", self.scan.name, key, "compiled before" if key in self.compiled else "not compiled yet")
        if key not in self.compiled:
            self.compiled[key] = compile_scan(bound, self.call, self.request)
        return self.compiled[key]

    def at(self, nodes: Sequence[int]) -> CompiledScan:
        """The scan compiled for node arrays of a shape. Raises SpecError (STM5201) where the shape contradicts a bound axis."""
        shape, axes = node_shape(nodes), _axes(self.scan.topology)
        fits = len(shape) == len(axes) and all(axis.size in (None, length) for axis, length in zip(axes, shape, strict=True))
        if not fits:
            names = ", ".join(axis.name if axis.size is None else str(axis.size) for axis in axes)
            message = f"node arrays of scan `{self.scan.name}` begin with the axes ({names}), not {shape}"
            raise call_error("STM5201", message, help=mapped("op") if len(shape) > len(axes) else None)
        open_axes = unbound(self.scan)
        sizes = {axis.name: size for axis, size in zip(axes, shape, strict=True) if axis.name in open_axes}
        return self.bind(**sizes).at(shape)

    def pad(self, x: Any, mask: Any = None) -> tuple[Any, Any]:
        """An array that begins with the node axes, filled up at their ends to the next of the scan's `lengths`, and the mask of
        what counts of it.

        Called outside of a compiled function it gives that function few shapes. Numpy's arrays stay numpy's.

            padded, mask = op.pad(x)                 # x: (time, dim)
            y = step(layer, padded, mask)            # step is compiled once for each of few lengths
            y[: len(x)]

        Raises SpecError: STM5010 where the scan was compiled without lengths, STM5201 for one that is too long.
        """
        return padded(x, self._sizes(x), mask)

    def pad_all(self, xs: Sequence[Any]) -> tuple[Any, Any]:
        """`pad` for several arrays, all filled up to the size of the largest: `(batch, *nodes, ...)` and the masks `(batch,
        *nodes)`, for `jax.vmap(layer)`. Raises SpecError as `pad` does, and STM5203 where there is none."""
        each = [self._sizes(x) for x in xs]
        if not each:
            raise call_error("STM5203", "`pad_all` needs an array at least", help="skip an empty batch")
        sizes = [max(sizes) for sizes in zip(*each, strict=True)]
        arrays, masks = zip(*(padded(x, sizes) for x in xs), strict=True)
        library = jnp if any(isinstance(array, jax.Array) for array in arrays) else np
        return library.stack(arrays), np.stack(masks)

    def _sizes(self, x: Any) -> list[int]:
        if not self.lengths:
            help = "say so when compiling: `stmlang.compile(spec, time=stmlang.Lengths())`"
            raise call_error("STM5010", f"scan `{self.scan.name}` was compiled without lengths to fill up to", help=help)
        axes, shape = _axes(self.scan.topology), tuple(getattr(x, "shape", ()))
        if len(shape) < len(axes):
            names = ", ".join(axis.name for axis in axes)
            raise call_error("STM5201", f"an array of scan `{self.scan.name}` begins with the axes ({names}), not {shape}")
        pairs = zip(axes, shape, strict=False)
        return [self.lengths[axis.name].above(size) if axis.name in self.lengths else size for axis, size in pairs]

    def __call__(
        self,
        q: Array,
        k: Array,
        v: Array,
        gates: Mapping[str, Array],
        initial: State | None = None,
        return_state: bool = False,
        mask: Bool[Array, "*nodes"] | None = None,
        segments: Int[Array, "*nodes"] | None = None,
    ) -> Any:
        """As `CompiledScan.__call__`, with the sizes of `q`."""
        if not self.lengths:
            return self._for(q)(q, k, v, gates, initial, return_state, mask, segments)
        if segments is not None:
            nodes, states = tuple(q.shape[: len(self._sizes(q))]), return_state or initial is not None
            segments, mask = require_segments(self.scan, nodes, segments, mask, states=states)
            segments = self.fill(segments)
        cut, op, arguments, mask = self._filled(q, k, v, gates, mask)
        result = op(*arguments, initial, return_state, mask, segments)
        return (result[0][cut], result[1]) if return_state else result[cut]

    def fill(self, array: Array) -> Array:
        """An array that begins with the node axes, filled up with zeros as `pad` fills up."""
        return filled_up(array, self._sizes(array))

    def _filled(
        self, q: Any, k: Any, v: Any, gates: Mapping[str, Array], mask: Any
    ) -> tuple[tuple[slice, ...], CompiledScan, tuple[Array, Array, Array, dict[str, Array]], Any]:
        """For `lengths`: what of a result counts, the scan of the size to fill up to, its arguments and their mask."""
        sizes = self._sizes(q)
        nodes = tuple(q.shape[: len(sizes)])
        own = {leaf.name for leaf in self.scan.leaves if leaf.kind != "param"}
        wide = {
            name: padded(array, sizes, nodes=nodes, name=f'`gates["{name}"]`')[0] if name in own else array
            for name, array in gates.items()
        }
        query, mask = padded(q, sizes, mask, name="`q`")
        key, value = (padded(array, sizes, nodes=nodes, name=name)[0] for name, array in (("`k`", k), ("`v`", v)))
        return tuple(slice(size) for size in nodes), self.at(sizes), (query, key, value, wide), mask

    def stream(self, *others: int) -> ScanStream:
        """The scan step by step, along its first axis, for these sizes of the other axes of its nodes, of which a chain has
        none. See `CompiledScan.stream`."""
        if not isinstance(self.scan.topology, Regular):
            raise unbound_error(list(unbound(self.scan)), self.scan.topology.span)
        first = self.scan.topology.axes[0].size
        return self.at((1 if first is None else first, *others)).stream()

    def init_state(self, initial: State | None = None, nodes: Sequence[int] = ()) -> Any:
        """The state before the first step; `nodes` are the sizes of the axes but the first. See `CompiledScan.init_state`."""
        return self.stream(*node_shape(nodes)).init_state(initial)

    def step(self, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array], **options: Any) -> tuple[Array, Any]:
        """As `CompiledScan.step`, with the sizes of `q`: sequences of any length need none."""
        return self.stream(*self._nodes(q)).step(state, q, k, v, gates, **options)

    def final_state(self, state: Any, nodes: Sequence[int] = ()) -> State:
        """As `CompiledScan.final_state`."""
        return self.stream(*node_shape(nodes)).final_state(state)

    def step_arguments(self, step: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Any, ...]:
        """As `CompiledScan.step_arguments`, with the sizes of `q`."""
        return self._for(q).step_arguments(step, q, k, v, gates)

    def prefill(
        self, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array], mask: Bool[Array, "*nodes"] | None = None
    ) -> tuple[Array, Any]:
        """As `CompiledScan.prefill`, with the sizes of `q`."""
        if not self.lengths:
            return self._for(q).prefill(state, q, k, v, gates, mask)
        nodes, op, arguments, mask = self._filled(q, k, v, gates, mask)
        h, state = op.prefill(state, *arguments, mask)
        return h[nodes], state

    def reference(
        self, q: Any, k: Any, v: Any, gates: Mapping[str, Any], initial: State | None = None, declared: bool = False
    ) -> Any:
        """As `CompiledScan.reference`, with the sizes of `q`."""
        return self._for(q).reference(q, k, v, gates, initial, declared)

    def _for(self, q: Any) -> CompiledScan:
        return self.at(self._nodes(q))

    def _nodes(self, q: Any) -> tuple[int, ...]:
        """The axes of a query's array that are those of nodes."""
        return _shape(q)[: -len(query_axes(self.scan))]

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        raise UnavailableError(unbound_error(list(unbound(self.scan)), self.scan.topology.span).diagnostics)


def _shape(q: Any) -> tuple[int, ...]:
    shape = getattr(q, "shape", None)
    if shape is None:
        raise call_error("STM5203", f"`q` must be an array, not {type(q).__name__}")
    return tuple(shape)


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
