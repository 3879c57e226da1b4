"""Rewritings of scans on chains and grids: windows, margins, axes turned around or exchanged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from stmlang.fuzz.relations.instance import Floats, Given, Instance, Outcome, State
from stmlang.fuzz.trial import NotApplicable
from stmlang.graph.build import regular_dag
from stmlang.graph.dag import DAG
from stmlang.scan.expression import PORT_INDICES, Expr, LeafRef, Number, Product, Split, Sum
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Clause, Direction, Gate, Leaf, Scan
from stmlang.scan.topology import Axis, Regular

T = TypeVar("T")
Window = tuple[slice, ...]
"""One slice for each axis of a grid."""


def axes_of(dag: DAG) -> tuple[int, ...]:
    """The sizes of a chain's or grid's axes. Raises NotApplicable on other topologies."""
    if dag.regular is None:
        raise NotApplicable("it is about chains and grids")
    return dag.regular


def resized(scan: Scan, sizes: Sequence[int]) -> tuple[Scan, DAG]:
    """The same equations on a grid of other sizes."""
    assert isinstance(scan.topology, Regular)
    axes = tuple(Axis(axis.name, size) for axis, size in zip(scan.topology.axes, sizes, strict=True))
    names = [axis.name for axis in axes]
    return replace(scan, topology=replace(scan.topology, axes=axes)), regular_dag(sizes, names)


def by_node(arguments: Given, scan: Scan, change: Callable[[Floats], Floats]) -> Given:
    """Arguments with every array that begins with node axes changed; states and learned constants stay."""
    leaves = {
        leaf.name: arguments.leaves[leaf.name] if leaf.kind == "param" else change(arguments.leaves[leaf.name])
        for leaf in scan.leaves
    }
    return Given({name: change(array) for name, array in arguments.inputs.items()}, leaves, arguments.initial)


def others(entries: Sequence[slice], axis: int) -> tuple[slice, ...]:
    """What belongs to the axes but one."""
    return (*entries[:axis], *entries[axis + 1 :])


def windowed(instance: Instance, window: Window, initial: State) -> Instance:
    """The part of a grid in a window; what enters it is `initial`."""
    axes = axes_of(instance.dag)
    sizes = [len(range(size)[span]) for size, span in zip(axes, window, strict=True)]
    scan, dag = resized(instance.scan, sizes)
    arguments = by_node(instance.given, scan, lambda array: array[window])
    return Instance(scan, dag, replace(arguments, initial=initial))


# --- turned around


def turned_around(instance: Instance) -> Instance:
    """Every axis from its other end, and every direction with it."""
    scan, rank = instance.scan, len(axes_of(instance.dag))
    directions = tuple(Direction(tuple(-sense for sense in direction.senses)) for direction in scan.directions)
    arguments = by_node(instance.given, scan, lambda array: np.flip(array, tuple(range(rank))))
    arguments = replace(arguments, initial=flipped_states(arguments.initial, rank))
    return Instance(replace(scan, directions=directions), instance.dag, arguments)


def flipped(outcome: Outcome, rank: int) -> Outcome:
    """An outcome on a grid as the grid turned around must give it."""
    return Outcome(np.flip(outcome.h, tuple(range(rank))), flipped_states(outcome.state, rank))


def flipped_states(states: State, rank: int) -> State:
    """Border states of a grid of which every axis is turned around."""
    return tuple({port: np.flip(array, tuple(range(rank - 1))) for port, array in ports.items()} for ports in states)


# --- axes exchanged


def transposed(instance: Instance) -> Instance:
    """The last two axes exchanged, and their ports with them. Raises NotApplicable on chains."""
    scan, axes = instance.scan, axes_of(instance.dag)
    rank = len(axes)
    if rank < 2:
        raise NotApplicable("a chain has no two axes")
    assert isinstance(scan.topology, Regular)
    topology = replace(scan.topology, axes=_exchanged(scan.topology.axes))
    directions = tuple(Direction(_exchanged(direction.senses)) for direction in scan.directions)
    gates = tuple(_each_clause(gate, _turned_split) for gate in scan.gates)
    leaves = {leaf.name: _transposed_leaf(instance.dag, leaf, instance.given.leaves[leaf.name]) for leaf in scan.leaves}
    inputs = {name: np.swapaxes(array, rank - 2, rank - 1) for name, array in instance.given.inputs.items()}
    dag = regular_dag(_exchanged(axes), [axis.name for axis in topology.axes])
    rewritten = replace(scan, topology=topology, directions=directions, gates=gates)
    return Instance(rewritten, dag, Given(inputs, leaves, transposed_states(instance.dag, instance.given.initial)))


def transposed_outcome(dag: DAG, outcome: Outcome) -> Outcome:
    """An outcome on `dag` as the transposed grid must give it."""
    rank = len(dag.node_shape)
    return Outcome(np.swapaxes(outcome.h, rank - 2, rank - 1), transposed_states(dag, outcome.state))


def transposed_states(dag: DAG, states: State) -> State:
    """Only the states of ports along neither of the two axes have both among their own."""
    rank = len(dag.ports)

    def turned(port: str, array: Floats) -> Floats:
        return np.swapaxes(array, rank - 3, rank - 2) if dag.ports.index(port) < rank - 2 else array

    return tuple({port: turned(port, array) for port, array in ports.items()} for ports in states)


def _exchanged(entries: tuple[T, ...]) -> tuple[T, ...]:
    return (*entries[:-2], entries[-1], entries[-2])


def _transposed_leaf(dag: DAG, leaf: Leaf, array: Floats) -> Floats:
    """The last two node axes exchanged, and the last two entries along port axes."""
    rank = len(dag.ports)
    if leaf.kind != "param":
        array = np.swapaxes(array, rank - 2, rank - 1)
    first = array.ndim - len(leaf.indices)
    order = _exchanged(tuple(range(rank)))
    for place, index in enumerate(leaf.indices):
        if index in PORT_INDICES:
            array = np.take(array, order, axis=first + place)
    return array


def _turned_split(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """A stick broken for the ports in order: the last two pieces change places as their share turns from `a` to `1 - a`."""
    if isinstance(expr, Split) and operands:
        share = Sum(((False, Number(1.0, expr.span)), (True, operands[-1])), expr.span)
        return rebuilt(expr, (*operands[:-1], share))
    return rebuilt(expr, operands)


def _each_clause(gate: Gate, change: Callable[[Expr, tuple[Expr, ...]], Expr]) -> Gate:
    return replace(gate, clauses=tuple(replace(clause, value=fold(clause.value, change, {})) for clause in gate.clauses))


# --- margins


def embedded(instance: Instance, before: Sequence[int], after: Sequence[int]) -> Instance:
    """The grid in a larger one, whose other nodes hold what some of its own do, but write nothing: their key is zero. Nothing
    enters."""
    scan, axes = instance.scan, axes_of(instance.dag)
    sizes = [first + size + last for first, size, last in zip(before, axes, after, strict=True)]
    larger, dag = resized(scan, sizes)
    widths = list(zip(before, after, strict=True))

    def around(array: Floats) -> Floats:
        return np.pad(array, [*widths, *((0, 0) for _ in range(array.ndim - len(widths)))], mode="wrap")

    arguments = by_node(instance.given, scan, around)
    inside = np.pad(np.ones(axes), widths)
    initial: State = tuple(
        {
            port: np.zeros((*dag.node_shape[:axis], *dag.node_shape[axis + 1 :], *array.shape[len(axes) - 1 :]))
            for axis, (port, array) in enumerate(ports.items())
        }
        for ports in arguments.initial
    )
    masked = np.broadcast_to(inside[..., None], (*sizes, scan.heads))
    if any(gate.name == "k" for gate in scan.gates):
        return Instance(_key_within(larger), dag, Given(arguments.inputs, arguments.leaves | {WITHIN: masked}, initial))
    key = arguments.inputs["k"]
    key = key * masked.reshape(*masked.shape, *(1,) * (key.ndim - masked.ndim))
    return Instance(larger, dag, Given(arguments.inputs | {"k": key}, arguments.leaves, initial))


WITHIN = "within the margin"
"""No name that a text can give."""


def _key_within(scan: Scan) -> Scan:
    """A redefined key times a leaf of one number for each node and head."""
    span = scan.span
    leaf = Leaf(WITHIN, "given", (), False)

    def masked(clause: Clause) -> Clause:
        return replace(clause, value=Product(((False, LeafRef(WITHIN, (), span)), (False, clause.value)), span))

    gates = tuple(replace(gate, clauses=tuple(map(masked, gate.clauses))) if gate.name == "k" else gate for gate in scan.gates)
    return replace(scan, gates=gates, leaves=(*scan.leaves, leaf))


def inner(instance: Instance, before: Sequence[int]) -> Window:
    """Where the grid lies in the larger one."""
    axes = axes_of(instance.dag)
    return tuple(slice(first, first + size) for first, size in zip(before, axes, strict=True))
