"""A chain or grid whose nodes lie on several devices, along axes of a mesh: what users hold. `stmlang.runtime.pieces` evaluates
it."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import equinox as eqx
from jaxtyping import Array, Float

from stmlang.compiler import Call, Request
from stmlang.cost.exchange import exchange_lines, exchanges
from stmlang.facts import Facts, analyse
from stmlang.graph.topology import dag_of
from stmlang.plan.plan import Plan
from stmlang.program.program import Bundle
from stmlang.program.states import State
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compiled import CompiledScan, compile_scan
from stmlang.runtime.crossing import border_of
from stmlang.runtime.cut import Cut, of_lengths, tiling_of
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.options import node_shape
from stmlang.runtime.pieces import Split, evaluate, zero_state
from stmlang.runtime.signature import Signature, call_error, check_arguments, flag
from stmlang.runtime.stream import ScanStream
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular
from stmlang.source.diagnostic import UnavailableError


class ShardedScan(eqx.Module):
    """`H = scan(q, k, v, gates)` of a chain or grid whose nodes lie on several devices: made by
    `stmlang.compile(spec, mesh=mesh, shard={"time": "x"})`, or of a grid with `shard={"rows": "x", "cols": "y"}`.

    Arguments, results and errors are those of a `CompiledScan`, of the shapes of the whole scan. Arrays of nodes lie along the
    axes of the mesh, by the axes of nodes that were cut, or are put there; results lie so. The states that enter and leave
    along an axis that was cut are on every device along its cuts, and lie with their nodes along the others. Results are those
    of one device to rounding.

    `pieces` are the scans on devices: one, and, where sizes do not divide, those of a node less along any of the axes.
    """

    pieces: tuple[CompiledScan, ...]
    split: Split = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __repr__(self) -> str:
        cuts = zip(self.split.ports, self.split.tiling.cuts, strict=True)
        shared = ", ".join(f"{cut.size} in {cut.devices} pieces along {port}" for port, cut in cuts)
        return f"<ShardedScan {self.scan.name}: {shared}, {self.pieces[0]!r}>"

    def __call__(
        self,
        q: Float[Array, "*nodes head *read key"],
        k: Float[Array, "*nodes head *write key"],
        v: Float[Array, "*nodes head *write value"],
        gates: Mapping[str, Array],
        initial: State | None = None,
        return_state: bool = False,
        mask: None = None,
        segments: None = None,
    ) -> Any:
        """As `CompiledScan.__call__`. Raises SpecError: STM52xx where arguments do not fit, STM5604 for mask or segments."""
        inputs, return_state = {"q": q, "k": k, "v": v}, flag("return_state", return_state)
        check_arguments(self.signature, inputs, gates, initial)
        for name, array in (("mask", mask), ("segments", segments)):
            if array is not None:
                message = f"scan `{self.scan.name}` is shared between devices, which takes no `{name}`"
                raise call_error("STM5604", message, help="leave it out, or compile the scan without `shard`")
        start = None if initial is None else tuple(dict(states) for states in initial)
        h, state = evaluate(self.split, self.pieces, inputs, dict(gates), start)
        return (h, state) if return_state else h

    @property
    def scan(self) -> Scan:
        """The typed scan that runs: stabilized."""
        return self.split.scan

    @property
    def dtype(self) -> str:
        return self.signature.dtype

    @property
    def signature(self) -> Signature:
        return self.split.signature

    @property
    def node_shape(self) -> tuple[int, ...]:
        assert isinstance(self.scan.topology, Regular)
        return tuple(cast(int, axis.size) for axis in self.scan.topology.axes)

    @property
    def facts(self) -> Facts:
        return self.pieces[0].facts

    @property
    def plan(self) -> Plan:
        """That of the longest piece."""
        return self.pieces[0].plan

    @property
    def tables(self) -> tuple[Bundle, ...]:
        """The index tables of the longest piece."""
        return self.pieces[0].tables

    def at(self, nodes: Sequence[int]) -> ShardedScan:
        """This scan, if node arrays have this shape. Raises SpecError (STM5201) if not."""
        shape = node_shape(nodes)
        if shape != self.node_shape:
            message = f"node arrays of scan `{self.scan.name}` begin with {self.node_shape}, not {shape}"
            raise call_error("STM5201", message)
        return self

    def stream(self) -> ScanStream:
        """Raises SpecError (STM5211): a step knows one place."""
        message = f"scan `{self.scan.name}` is shared between devices, and steps are taken on one"
        raise call_error("STM5211", message, help="compile it without `shard`; its layer's parameters fit there")

    def __getattr__(self, name: str) -> Any:
        if not only_compiled(self, name):
            raise missing(self, name)
        message = f"scan `{self.scan.name}` is shared between devices, and has no `{name}`"
        raise UnavailableError(call_error("STM5604", message, help="compile it without `shard`, and ask that").diagnostics)

    def zero_state(self) -> State:
        """An initial state of zeros."""
        return zero_state(self.signature, self.pieces[0].compilation.program.accumulator)

    def explain(self) -> str:
        """How devices tell each other of states, the bytes beside the least possible, and the plan of a piece."""
        split = self.split
        heads = [_shared(port, cut) for port, cut in zip(split.ports, split.tiling.cuts, strict=True)]
        fewest = split.border.least * len(split.scan.directions)
        lines = exchange_lines(split.ranked, split.exchange, fewest, self.plan.target)
        return "\n".join([*heads, *lines, "", self.pieces[0].explain()])


def _shared(port: str, cut: Cut) -> str:
    """A line about an axis that is cut."""
    lengths = f"{cut.longest} each"
    if cut.longer:
        lengths = f"{cut.longest} on the first {cut.longer}, {cut.longest - 1} on the rest"
    return f"shared along {port}: {cut.size} on {cut.devices} devices of the mesh axis {cut.name}, {lengths}"


def shard_scan(scan: Scan, call: Call, request: Request, mesh: Any, shard: Any) -> ShardedScan:
    """A checked scan of known sizes in pieces. Raises SpecError (STM5601 to STM5603) where it cannot be cut so."""
    tiling = tiling_of(scan, mesh, shard)
    pieces = tuple(compile_scan(of_lengths(scan, tiling.cuts, lengths), call, request) for lengths in tiling.lengths)
    runs = analyse(scan).scan
    signature = Signature.of(runs, dag_of(runs.topology), pieces[0].dtype)
    border = border_of(runs, tiling.cuts, pieces[0].compilation.program.accumulator.itemsize)
    passing, target = pieces[0].plan.chosen.forward_seconds, pieces[0].plan.target
    ranked = exchanges(border, len(runs.directions), passing, target, signature.scale is not None)
    return ShardedScan(pieces, Split(runs, tiling, ranked[0], tuple(ranked), border, signature))
