"""A chain or grid whose nodes lie on several devices, along one axis of a mesh.

Each device evaluates its piece as a scan of its own. What enters it across the cut is found first: states pass every piece, and
devices tell each other how (`stmlang.cost.exchange`, `stmlang.lower.exchange`). How a state passes is read off: where columns
of it are alike, each is a unit vector of its own, so that one derivative of the piece along its initial state gives as many
columns of `T` as there are such columns. Every form of gates and every strategy will do.

Where a size does not divide, the first devices have a node (a row) more than the others, which run a program of their own.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jaxtyping import Array, Float

from stmlang.compiler import Call, Request
from stmlang.cost.exchange import Border, Exchange, exchange_lines, exchanges, least
from stmlang.facts import Facts, analyse
from stmlang.graph.topology import dag_of
from stmlang.lower.exchange import Devices, by_doubling, by_gathering
from stmlang.lower.mesh_axes import alike
from stmlang.lower.summary import Passage
from stmlang.plan.plan import Plan
from stmlang.program.program import Bundle
from stmlang.program.states import LOG_SCALE, State, at_scale_one, unit_scale
from stmlang.runtime.attributes import missing, only_compiled
from stmlang.runtime.compiled import CompiledScan, compile_scan
from stmlang.runtime.crossing import border_of, laid, unit_states, unlaid
from stmlang.runtime.cut import WHOLE, Cut, cut_of, of_length
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.options import node_shape
from stmlang.runtime.planned import call_scan
from stmlang.runtime.signature import Signature, call_error, check_arguments, flag
from stmlang.runtime.stream import ScanStream
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular
from stmlang.source.diagnostic import UnavailableError


@dataclass(frozen=True)
class Split:
    """Everything static of a scan in pieces: the scan as a whole, where it is cut and how devices tell each other of states."""

    scan: Scan
    cut: Cut
    exchange: Exchange
    ranked: tuple[Exchange, ...]
    border: Border
    signature: Signature = field(compare=False, repr=False)

    @property
    def port(self) -> str:
        assert isinstance(self.scan.topology, Regular)
        return self.scan.topology.axes[self.cut.axis].name

    @property
    def senses(self) -> tuple[int, ...]:
        return tuple(direction.senses[self.cut.axis] for direction in self.scan.directions)

    def gate_axis(self, name: str) -> int:
        return WHOLE if self.scan.leaf(name).kind == "param" else self.cut.axis

    def state_axis(self, port: str) -> int:
        """The axis of a port's states along which they lie on the devices: those that cross the cut are on all of them."""
        assert isinstance(self.scan.topology, Regular)
        others = [axis.name for axis in self.scan.topology.axes if axis.name != port]
        return others.index(self.port) if port != LOG_SCALE and self.port in others else WHOLE


class ShardedScan(eqx.Module):
    """`H = scan(q, k, v, gates)` of a chain or grid whose nodes lie on several devices: made by
    `stmlang.compile(spec, mesh=mesh, shard={"time": "x"})`.

    Arguments, results and errors are those of a `CompiledScan`, of the shapes of the whole scan. Arrays of nodes lie along the
    mesh axis, by the axis of nodes that was cut, or are put there; results lie so. The states that enter and leave across the
    cut are on every device, those of other axes lie with their nodes. Results are those of one device to rounding.

    `pieces` is the scan on a device, and, where sizes do not divide, that on those devices that have a node less.
    """

    pieces: tuple[CompiledScan, ...]
    split: Split = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __repr__(self) -> str:
        cut = self.split.cut
        return f"<ShardedScan {self.scan.name}: {cut.size} in {cut.devices} pieces along {self.split.port}, {self.pieces[0]!r}>"

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
        h, state = _evaluate(self.split, self.pieces, inputs, dict(gates), start)
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
        return _zero(self.split, self.pieces[0])

    def explain(self) -> str:
        """How devices tell each other of states, the bytes beside the least possible, and the plan of a piece."""
        split = self.split
        cut, directions = split.cut, len(split.senses)
        lengths = (
            f"{cut.longest} each"
            if not cut.longer
            else f"{cut.longest} on the first {cut.longer}, {cut.longest - 1} on the rest"
        )
        head = f"shared along {split.port}: {cut.size} on {cut.devices} devices of the mesh axis {cut.name}, {lengths}"
        lines = exchange_lines(split.ranked, split.exchange, least(split.border, directions, cut.devices))
        return "\n".join([head, *lines, "", self.pieces[0].explain()])


# --- evaluation ------------------------------------------------------------------------------------------------------


@partial(jax.jit, static_argnums=0)
def _evaluate(
    split: Split, pieces: tuple[CompiledScan, ...], inputs: dict[str, Array], gates: dict[str, Array], initial: State | None
) -> tuple[Array, State]:
    """The result and the final state."""
    kind = pieces[0].compilation.program.accumulator
    given = _zero(split, pieces[0]) if initial is None else initial
    given = tuple({port: jnp.asarray(array, kind) for port, array in states.items()} for states in given)
    if split.signature.scale is not None:
        unit = unit_scale(split.signature.scale, kind)
        given = tuple({LOG_SCALE: unit, **states} for states in given)
    operands = (inputs, gates, given)
    cut = split.cut
    axes = (
        dict.fromkeys(inputs, cut.axis),
        {name: split.gate_axis(name) for name in gates},
        tuple({port: split.state_axis(port) for port in states} for states in given),
    )
    shares = jax.tree.map(lambda array, axis: cut.laid(array, axis, cut.places), operands, axes)
    specs = jax.tree.map(cut.spec, axes)
    if cut.mesh.axis_types[cut.mesh.axis_names.index(cut.name)] is AxisType.Explicit:
        shares = jax.tree.map(lambda array, spec: jax.reshard(array, NamedSharding(cut.mesh, spec)), shares, specs)
    h, state = jax.shard_map(
        partial(_on_device, split, pieces),
        mesh=cut.mesh,
        in_specs=specs,
        out_specs=(cut.spec(cut.axis), specs[2]),
        axis_names={cut.name},
    )(*shares)
    state = jax.tree.map(lambda array, axis: cut.laid(array, axis, cut.back), state, axes[2])
    return cut.laid(h, cut.axis, cut.back), at_scale_one(state)


def _on_device(
    split: Split, pieces: Sequence[CompiledScan], inputs: dict[str, Array], gates: dict[str, Array], given: State
) -> tuple[Array, State]:
    """What a device evaluates: the states that enter its piece, and then the piece."""
    lines = [Devices(split.cut.name, split.cut.devices, sense) for sense in split.senses]
    inputs, gates, given = alike((inputs, gates, given), jax.lax.axis_index(split.cut.name))

    def through(crossing: State) -> tuple[Array, State]:
        return _piece(split, pieces, inputs, gates, _with(given, crossing))

    def leaving(crossing: State) -> State:
        return _crossing(split, through(crossing)[1])

    initial = _crossing(split, given)
    unit = _crossing(split, _zero(split, pieces[0], scaled=True))
    entering = alike(_at_first(lines, initial, unit), initial)
    if split.exchange.way == "ring":

        def turn(entering: State, _: None) -> tuple[State, None]:
            sent = tuple(line.sent(states, 1) for line, states in zip(lines, leaving(entering), strict=True))
            return alike(_at_first(lines, initial, sent), entering), None

        entering, _ = jax.lax.scan(turn, entering, None, length=split.cut.devices - 1)
    else:
        merged = _merged(split, lines, leaving, entering)
        entering = _at_first(lines, initial, merged)
    h, final = through(entering)
    crossed = tuple(line.of_last(states) for line, states in zip(lines, _crossing(split, final), strict=True))
    return h, _with(final, crossed)


def _merged(split: Split, lines: Sequence[Devices], leaving: Any, entering: State) -> State:
    """The states that enter each piece, from how states pass every one of them."""
    port = split.port
    written, passing = jax.linearize(leaving, entering)
    shape, kind = written[0][port].shape, written[0][port].dtype
    units = jnp.stack([unit_states(split.scan, shape, turn) for turn in range(split.border.probes)])
    units = alike(units.astype(kind), written)

    def image(unit: Array) -> State:
        return passing(tuple({port: unit} for _ in lines))

    images = jax.lax.map(image, units) if len(units) > 1 else jax.tree.map(lambda array: array[None], image(units[0]))
    exchanged = by_gathering if split.exchange.way == "gather" else by_doubling
    states: list[dict[str, Array]] = []
    for line, after, columns in zip(lines, written, images, strict=True):
        images_laid = jax.vmap(partial(laid, split.scan))(columns[port])
        turns, lanes, mixed, free = images_laid.shape
        transition = jnp.moveaxis(images_laid, 0, 2).reshape(lanes, mixed, turns * free)[..., :mixed]
        state = exchanged(Passage(transition, laid(split.scan, after[port])), line)
        states.append({port: unlaid(split.scan, state, shape)})
    return tuple(states)


def _piece(split: Split, pieces: Sequence[CompiledScan], inputs: Any, gates: Any, entering: State) -> tuple[Array, State]:
    """The device's piece, from the states that enter it: the result and the states that leave, held at the scan's own scale."""
    cut = split.cut

    def call(piece: CompiledScan, inputs: Any, gates: Any, entering: State) -> tuple[Array, State]:
        arguments = (inputs, gates, entering, None, None)
        h, state = call_scan(piece.compilation, piece.tables, arguments, True, split.signature.scale is not None)
        assert state is not None
        return h, state

    def shorter(inputs: Any, gates: Any, entering: State) -> tuple[Array, State]:
        size = cut.longest - 1
        inputs = {name: _resized(array, cut.axis, size) for name, array in inputs.items()}
        gates = {name: _resized(array, split.gate_axis(name), size) for name, array in gates.items()}
        states = tuple({port: _resized(a, split.state_axis(port), size) for port, a in ports.items()} for ports in entering)
        h, leaving = call(pieces[1], inputs, gates, states)
        filled = tuple({p: _resized(a, split.state_axis(p), size + 1) for p, a in ports.items()} for ports in leaving)
        return _resized(h, cut.axis, size + 1), filled

    if not cut.longer:
        return call(pieces[0], inputs, gates, entering)
    longer = jax.lax.axis_index(cut.name) < cut.longer
    return cast(Any, jax.lax.cond(longer, partial(call, pieces[0]), shorter, inputs, gates, entering))


def _resized(array: Array, axis: int, size: int) -> Array:
    """An array of fewer or more nodes: those behind the last are zero."""
    if axis == WHOLE:
        return array
    if size <= array.shape[axis]:
        return jax.lax.slice_in_dim(array, 0, size, axis=axis)
    return jnp.pad(array, [(0, size - array.shape[axis] if k == axis else 0) for k in range(array.ndim)])


def _at_first(lines: Sequence[Devices], initial: State, others: State) -> State:
    """The initial states on the first device of each direction, on the others those given."""
    return tuple(
        {name: jnp.where(line.rank == 0, array, here[name].astype(array.dtype)) for name, array in states.items()}
        for line, states, here in zip(lines, initial, others, strict=True)
    )


def _crossing(split: Split, state: State) -> State:
    """Of states those that cross the cut, with their scales."""
    return tuple({name: array for name, array in states.items() if name in (split.port, LOG_SCALE)} for states in state)


def _with(state: State, crossing: State) -> State:
    return tuple({**states, **crossed} for states, crossed in zip(state, crossing, strict=True))


def _zero(split: Split, piece: CompiledScan, *, scaled: bool = False) -> State:
    """States of zeros of the whole scan, with the scale of such where `scaled`."""
    kind, scale = piece.compilation.program.accumulator, split.signature.scale
    unit = {LOG_SCALE: unit_scale(scale, kind)} if scaled and scale is not None else {}
    shapes = split.signature.initial
    return tuple({**{port: jnp.zeros(shape, kind) for port, shape in ports.items()}, **unit} for ports in shapes)


# --- making one ------------------------------------------------------------------------------------------------------


def shard_scan(scan: Scan, call: Call, request: Request, mesh: Any, shard: Any) -> ShardedScan:
    """A checked scan of known sizes in pieces. Raises SpecError (STM5601 to STM5603) where it cannot be cut so."""
    cut = cut_of(scan, mesh, shard)
    lengths = [cut.longest, cut.longest - 1] if cut.longer else [cut.longest]
    pieces = tuple(compile_scan(of_length(scan, cut.axis, length), call, request) for length in lengths)
    runs = analyse(scan).scan
    signature = Signature.of(runs, dag_of(runs.topology), pieces[0].dtype)
    assert isinstance(runs.topology, Regular)
    crossing = signature.initial[0][runs.topology.axes[cut.axis].name]
    border = border_of(runs, crossing, pieces[0].compilation.program.accumulator.itemsize)
    estimate, scaled = pieces[0].plan.chosen, signature.scale is not None
    passing, directions = estimate.forward_seconds, len(runs.directions)
    ranked = exchanges(border, directions, cut.devices, passing, pieces[0].plan.target, scaled)
    return ShardedScan(pieces, Split(runs, cut, ranked[0], tuple(ranked), border, signature))
