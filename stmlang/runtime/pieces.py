"""A chain or grid in pieces on several devices: how it is evaluated.

Each device evaluates its piece as a scan of its own. What enters it across cuts is found first: states pass every piece, and
devices tell each other how (`stmlang.cost.exchange`, `stmlang.lower.exchange`). How a state passes is read off: where columns
of it are alike, each is a unit vector of its own, so that one derivative of the piece along what enters it gives as many
columns of `T` as there are such columns. Every form of gates and every strategy will do.

Where a size does not divide, the first devices have a node (a row) more than the others, which run a program of their own.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.exchange import Border, Exchange
from stmlang.lower.exchange import Devices, by_doubling, by_gathering, by_wavefront
from stmlang.lower.mesh_axes import alike
from stmlang.lower.summary import Passage
from stmlang.program.states import LOG_SCALE, State, at_scale_one, unit_scale
from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.crossing import joined, laid, parted, unit_states, unlaid
from stmlang.runtime.cut import WHOLE, Axes, Tiling
from stmlang.runtime.planned import call_scan
from stmlang.runtime.signature import Signature
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Regular


@dataclass(frozen=True)
class Split:
    """Everything static of a scan in pieces: the scan as a whole, where it is cut and how devices tell each other of states."""

    scan: Scan
    tiling: Tiling
    exchange: Exchange
    ranked: tuple[Exchange, ...]
    border: Border
    signature: Signature = field(compare=False, repr=False)

    @property
    def ports(self) -> tuple[str, ...]:
        """Those that are cut, in the order of cuts."""
        assert isinstance(self.scan.topology, Regular)
        return tuple(self.scan.topology.axes[cut.axis].name for cut in self.tiling.cuts)

    def cut_of(self, name: str) -> int:
        """The number of the cut that states of a port cross; that of a scale which is held beside them, on chains alone."""
        return 0 if name == LOG_SCALE else self.ports.index(name)

    @property
    def node_axes(self) -> Axes:
        return tuple(cut.axis for cut in self.tiling.cuts)

    def gate_axes(self, name: str) -> Axes:
        return (WHOLE,) * len(self.ports) if self.scan.leaf(name).kind == "param" else self.node_axes

    def state_axes(self, port: str) -> Axes:
        """The axes of a port's states along which they lie on the devices: across a cut they are on all of them."""
        assert isinstance(self.scan.topology, Regular)
        others = [axis.name for axis in self.scan.topology.axes if axis.name != port]
        return tuple(others.index(cut) if port != LOG_SCALE and cut in others else WHOLE for cut in self.ports)

    @property
    def lines(self) -> list[tuple[Devices, ...]]:
        """For each direction the devices along each of the axes that are cut."""
        return [
            tuple(Devices(cut.name, cut.devices, direction.senses[cut.axis]) for cut in self.tiling.cuts)
            for direction in self.scan.directions
        ]


Lines = Sequence[tuple[Devices, ...]]


@partial(jax.jit, static_argnums=0)
def evaluate(
    split: Split, pieces: tuple[CompiledScan, ...], inputs: dict[str, Array], gates: dict[str, Array], initial: State | None
) -> tuple[Array, State]:
    """The result and the final state, at scale one."""
    kind = pieces[0].compilation.program.accumulator
    given = zero_state(split.signature, kind) if initial is None else initial
    given = tuple({port: jnp.asarray(array, kind) for port, array in states.items()} for states in given)
    if split.signature.scale is not None:
        unit = unit_scale(split.signature.scale, kind)
        given = tuple({LOG_SCALE: unit, **states} for states in given)
    operands, tiling = (inputs, gates, given), split.tiling
    axes = (
        dict.fromkeys(inputs, split.node_axes),
        {name: split.gate_axes(name) for name in gates},
        tuple({port: split.state_axes(port) for port in states} for states in given),
    )
    specs = jax.tree.map(lambda _, axes: tiling.spec(axes), operands, axes)
    shares = jax.tree.map(tiling.laid, operands, axes)
    h, state = jax.shard_map(
        partial(_on_device, split, pieces),
        mesh=tiling.mesh,
        in_specs=specs,
        out_specs=(tiling.spec(split.node_axes), specs[2]),
        axis_names=set(tiling.names),
    )(*shares)
    state = jax.tree.map(tiling.back, state, axes[2])
    return tiling.back(h, split.node_axes), at_scale_one(state)


def zero_state(signature: Signature, kind: Any, *, scaled: bool = False) -> State:
    """States of zeros, with the scale of such where `scaled`."""
    unit = {LOG_SCALE: unit_scale(signature.scale, kind)} if scaled and signature.scale is not None else {}
    return tuple({**{port: jnp.zeros(shape, kind) for port, shape in ports.items()}, **unit} for ports in signature.initial)


def _on_device(
    split: Split, pieces: Sequence[CompiledScan], inputs: dict[str, Array], gates: dict[str, Array], given: State
) -> tuple[Array, State]:
    """What a device evaluates: the states that enter its piece, and then the piece."""
    lines, names = split.lines, split.tiling.names
    inputs, gates, given = alike((inputs, gates, given), [jax.lax.axis_index(name) for name in names])

    def through(crossing: State) -> tuple[Array, State]:
        return _piece(split, pieces, inputs, gates, _with(given, crossing))

    def leaving(crossing: State) -> State:
        return _crossing(split, through(crossing)[1])

    initial = _crossing(split, given)
    unit = _crossing(split, zero_state(pieces[0].signature, pieces[0].compilation.program.accumulator, scaled=True))
    entering = alike(_at_first(split, lines, initial, unit), initial)
    if split.exchange.way == "ring":

        def turn(entering: State, _: None) -> tuple[State, None]:
            sent = _by_name(split, lines, lambda line, array: line.sent(array, 1), leaving(entering))
            return alike(_at_first(split, lines, initial, sent), entering), None

        entering, _ = jax.lax.scan(turn, entering, None, length=split.border.hops)
    else:
        entering = _at_first(split, lines, initial, _merged(split, pieces[0].signature, lines, leaving, entering))
    h, final = through(entering)
    crossed = _by_name(split, lines, lambda line, array: line.of_last(array), _crossing(split, final))
    return h, _with(final, crossed)


def _merged(split: Split, signature: Signature, lines: Lines, leaving: Callable[[State], State], entering: State) -> State:
    """The states that enter each piece, from how states pass every one of them."""
    scan, ports = split.scan, split.ports
    shapes = {port: signature.initial[0][port] for port in ports}

    def passed(edges: tuple[Array, ...]) -> tuple[Array, ...]:
        left = leaving(tuple(parted(scan, each, shapes) for each in edges))
        return tuple(joined(scan, states, ports) for states in left)

    written, passing = jax.linearize(passed, tuple(joined(scan, states, ports) for states in entering))
    shape, kind = written[0].shape, written[0].dtype

    def image(turn: Array | int) -> tuple[Array, ...]:
        unit = alike(unit_states(scan, shape, turn).astype(kind), written)
        return passing((unit,) * len(lines))

    probes = split.border.probes
    images = jax.lax.map(image, jnp.arange(probes)) if probes > 1 else jax.tree.map(lambda array: array[None], image(0))
    states: list[dict[str, Array]] = []
    for devices, after, columns in zip(lines, written, images, strict=True):
        images_laid = jax.vmap(partial(laid, scan))(columns)
        turns, lanes, mixed, free = images_laid.shape
        transition = jnp.moveaxis(images_laid, 0, 2).reshape(lanes, mixed, turns * free)[..., :mixed]
        state = _told(split, Passage(transition, laid(scan, after)), devices)
        states.append(parted(scan, unlaid(scan, state, shape), shapes))
    return tuple(states)


def _told(split: Split, piece: Passage, devices: tuple[Devices, ...]) -> Array:
    """What enters this device's piece, from what devices tell each other."""
    match split.exchange.way:
        case "gather":
            return by_gathering(piece, devices[0])
        case "rounds":
            return by_doubling(piece, devices[0])
        case _:
            return by_wavefront(piece, devices, [side.edges for side in split.border.sides])


def _piece(split: Split, pieces: Sequence[CompiledScan], inputs: Any, gates: Any, entering: State) -> tuple[Array, State]:
    """The device's piece, from the states that enter it: the result and the states that leave, held at the scan's own scale."""
    tiling = split.tiling
    scaled = split.signature.scale is not None

    def call(piece: CompiledScan, lengths: Sequence[int], inputs: Any, gates: Any, entering: State) -> tuple[Array, State]:
        inputs = {name: _resized(array, split.node_axes, lengths) for name, array in inputs.items()}
        gates = {name: _resized(array, split.gate_axes(name), lengths) for name, array in gates.items()}
        h, leaving = call_scan(
            piece.compilation, piece.tables, (inputs, gates, resized(entering, lengths), None, None), True, scaled
        )
        assert leaving is not None
        longest = [cut.longest for cut in tiling.cuts]
        return _resized(h, split.node_axes, longest), resized(leaving, longest)

    def resized(state: State, lengths: Sequence[int]) -> State:
        return tuple({p: _resized(array, split.state_axes(p), lengths) for p, array in ports.items()} for ports in state)

    branches = [partial(call, piece, lengths) for piece, lengths in zip(pieces, tiling.lengths, strict=True)]
    if len(branches) == 1:
        return branches[0](inputs, gates, entering)
    return cast(Any, jax.lax.switch(tiling.kind(), branches, inputs, gates, entering))


def _resized(array: Array, axes: Axes, lengths: Sequence[int]) -> Array:
    """An array of fewer or more nodes along the axes that are cut: those behind the last are zero."""
    for axis, size in zip(axes, lengths, strict=True):
        if axis == WHOLE:
            continue
        if size <= array.shape[axis]:
            array = jax.lax.slice_in_dim(array, 0, size, axis=axis)
        else:
            array = jnp.pad(array, [(0, size - array.shape[axis] if k == axis else 0) for k in range(array.ndim)])
    return array


def _by_name(split: Split, lines: Lines, function: Callable[[Devices, Array], Array], crossing: State) -> State:
    """Each state by a function of the devices along the axis whose cuts it crosses."""
    return tuple(
        {name: function(line[split.cut_of(name)], array) for name, array in states.items()}
        for line, states in zip(lines, crossing, strict=True)
    )


def _at_first(split: Split, lines: Lines, initial: State, others: State) -> State:
    """The initial states on the first device of each direction, on the others those given."""

    def chosen(line: tuple[Devices, ...], name: str, first: Array, other: Array) -> Array:
        return jnp.where(line[split.cut_of(name)].rank == 0, first, other.astype(first.dtype))

    return tuple(
        {name: chosen(line, name, array, here[name]) for name, array in states.items()}
        for line, states, here in zip(lines, initial, others, strict=True)
    )


def _crossing(split: Split, state: State) -> State:
    """Of states those that cross cuts, with their scales."""
    names = (*split.ports, LOG_SCALE)
    return tuple({name: array for name, array in states.items() if name in names} for states in state)


def _with(state: State, crossing: State) -> State:
    return tuple({**states, **crossed} for states, crossed in zip(state, crossing, strict=True))
