"""The ways through a block of a chain: a whole sequence, many steps from a state on, one step.

A block is written once, as `run(x, before, scan)`: what stands around the scan has a time axis in any case, and `scan` is one
of the three functions below. `before` is the `Cache` that the steps before have left, and the result is the pair of `y` and the
cache behind it. A whole sequence starts from `NOTHING`, and what it would leave is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.nn.errors import require_scan
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.open import OpenScan
from stmlang.runtime.signature import call_error, widest
from stmlang.scan.topology import Regular

ChainScan = CompiledScan | OpenScan
Scan = Callable[[ChainScan, Any, Array, Array, Array, Mapping[str, Array]], tuple[Array, Any]]
"""From a compiled scan, its state before, q, k, v and gates to its result and the state behind, all with a time axis."""


class Cache(NamedTuple):
    """What a block keeps between steps: the last inputs of its convolution `(last, channels)`, and the state of its scan."""

    tail: Float[Array, "last channels"] | None
    scan: Any


NOTHING = Cache(None, None)


class Mixer(Protocol):
    """What mixes the nodes of a chain and can do it step by step: the blocks of this folder, and `ScanLayer`.

    `layer(x)`, `x: (time, dim)`, is the whole sequence. `layer.step(state, x)`, `x: (dim,)`, is the next node and
    `layer.prefill(state, x)` many of them, from `state = layer.init_state()` on; both give the pair of `y` and the next state,
    and what the whole sequence gives, to rounding.
    """

    def __call__(self, x: Array, /) -> Any: ...

    def init_state(self) -> Any: ...

    def prefill(self, state: Any, x: Array, /) -> tuple[Array, Any]: ...

    def step(self, state: Any, x: Array, /) -> tuple[Array, Any]: ...


def whole(op: ChainScan, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Array, Any]:
    """All nodes, from nothing on. Grids of any number of axes have this way alone."""
    del state
    return op(*_typed(op, q, k, v), _typed_gates(op, gates)), None


def many(op: ChainScan, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Array, Any]:
    """Many steps as one call."""
    return op.prefill(state, *_typed(op, q, k, v), _typed_gates(op, gates))


def one(op: ChainScan, state: Any, q: Array, k: Array, v: Array, gates: Mapping[str, Array]) -> tuple[Array, Any]:
    """One step; the time axis has size one."""
    constant = {leaf.name for leaf in op.scan.leaves if leaf.kind == "param"}
    now = {name: gate if name in constant else gate[0] for name, gate in _typed_gates(op, gates).items()}
    h, behind = op.step(state, *_typed(op, q[0], k[0], v[0]), now)
    return h[None], behind


def stepped(run: Callable[[Array, Cache, Scan], tuple[Array, Cache]], state: Cache, x: Float[Array, " dim"]) -> Any:
    """One step of a block: `y: (dim,)` and the cache behind it."""
    y, state = run(x[None], state, one)
    return y[0], state


def kept_dtype(op: ChainScan) -> jnp.dtype:
    """The data type in which a block keeps what it has seen: float32, or that of a float64 scan."""
    return widest(op.dtype)


def require_leaves(op: ChainScan, names: set[str], example: str, axes: int = 1) -> ChainScan:
    """A compiled chain, or a grid of so many axes, whose leaves are those that a block fills. Raises SpecError (STM5208) for
    anything else."""
    scan = require_scan("op", op).scan
    nodes = len(scan.topology.axes) if isinstance(scan.topology, Regular) else None
    known = {leaf.name for leaf in scan.leaves}
    if nodes == axes and known == names:
        return op
    kind = "a chain" if axes == 1 else f"a grid of {axes} axes"
    message = f"the block fills the leaves {sorted(names)} of {kind}; scan `{scan.name}` has {sorted(known)}"
    raise call_error("STM5208", message, help=f"such as `{example}`; `stmlang.nn.ScanLayer` takes any scan")


def _typed(op: ChainScan, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    return q.astype(op.dtype), k.astype(op.dtype), v.astype(op.dtype)


def _typed_gates(op: ChainScan, gates: Mapping[str, Array]) -> dict[str, Array]:
    """Gates in the data type of the scan, constants as wide as they are kept."""
    constant = {leaf.name for leaf in op.scan.leaves if leaf.kind == "param"}
    return {name: gate.astype(kept_dtype(op) if name in constant else op.dtype) for name, gate in gates.items()}
