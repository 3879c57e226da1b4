"""What every gate of a scan is worth, by direct evaluation of its equations in numpy float64 (or complex128, see `functions`).

Written apart from the JAX evaluation on purpose: each checks the other. A value holds one number for each site (see `sites`),
head, and state index it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.reduction import multitree
from stmlang.graph.shapes import index_size, key_shape, leaf_shape, query_shape, several, value_shape
from stmlang.oracle.functions import (
    Floats,
    Groups,
    Reduction,
    Rescaling,
    apply,
    floats,
    larger,
    over,
    reduced,
    rescaled,
    smaller,
    spectrum,
    times,
)
from stmlang.oracle.sites import PortIndices, Sites, sites_of
from stmlang.oracle.steps import written_out
from stmlang.scan.expression import (
    BOUND_INDICES,
    DENSE_INDICES,
    INDICES,
    PORT_INDICES,
    Apply,
    Bind,
    Degree,
    Expr,
    Eye,
    Finite,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Split,
    Spread,
    Stack,
    Sum,
    children,
)
from stmlang.scan.scan import Gate, Leaf, Scan
from stmlang.scan.topology import is_regular

AXIS: dict[Index, str] = dict(zip((*INDICES, *BOUND_INDICES), "oiwrkKvVtTxy", strict=True))
"""A letter for each index in einsum subscripts; heads are `h`, sites `n`."""


INPUT_STATES: dict[str, tuple[Index, ...]] = {"q": ("read", "key"), "k": ("write", "key"), "v": ("write", "value")}

SITES_READ: tuple[tuple[str, PortIndices], ...] = (
    ("source", ("out",)),
    ("transition", ("out", "in")),
    ("mark", ("in",)),
    ("direct", ()),
)
"""Where the recurrence reads each of its gates."""


def port_part(indices: Iterable[Index]) -> PortIndices:
    """The port indices among some, in order."""
    present = set(indices)
    return tuple(index for index in PORT_INDICES if index in present)


def state_part(indices: Iterable[Index]) -> tuple[Index, ...]:
    """The other indices among some, in order: those of the state, and of writes and reads."""
    present = set(indices)
    return tuple(index for index in (*DENSE_INDICES, *BOUND_INDICES) if index in present)


@dataclass(frozen=True, eq=False)
class Value:
    """Numbers of shape (sites of `ports`, head, *`states`); both in the order of `INDICES`. State axes may have length one."""

    ports: PortIndices
    states: tuple[Index, ...]
    array: Floats


@dataclass(frozen=True, eq=False)
class DirectionGates:
    """The gates of one direction: source by out-site, transition by pair, mark by in-site, direct by node, and what the
    recurrence uses as query, `(node, head, [read], key)`, key, `(node, head, [write], key)`, and value."""

    sites: Sites
    source: Value
    transition: Value
    mark: Value
    direct: Value
    query: Floats
    key: Floats
    value: Floats

    @property
    def dtype(self) -> np.dtype[np.inexact[Any]]:
        """complex128 if anything is complex, else float64."""
        gates = (self.source, self.transition, self.mark, self.direct)
        return np.result_type(self.query, self.key, self.value, *(gate.array for gate in gates))


def evaluate_gates(
    scan: Scan,
    dag: DAG,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    gates: Mapping[str, npt.ArrayLike],
    evaluator: Callable[..., Evaluator] | None = None,
) -> tuple[DirectionGates, ...]:
    """The gates of every direction; `gates` holds an array for each leaf, by name. All directions share the query, key and
    value of the first, but for those of which each has its own. `evaluator` may be another one than `Evaluator`.

    Where nodes take several steps the gates are those of the chain of all steps.

    Raises ValueError for a leaf that is missing or unknown, or an array of another shape than `stmlang.graph.shapes` says.
    """
    if scan.steps > 1:
        return evaluate_gates(*written_out(scan, dag, q, k, v, gates), evaluator)
    unknown = sorted(set(gates) - {leaf.name for leaf in scan.leaves})
    if unknown:
        raise ValueError(f"scan '{scan.name}' has no leaf {', '.join(unknown)}")
    inputs = {
        name: _checked(name, array, shape).reshape(dag.node_count, *shape[len(dag.node_shape) :])
        for name, array, shape in (
            ("q", q, query_shape(scan, dag)),
            ("k", k, key_shape(scan, dag)),
            ("v", v, value_shape(scan, dag)),
        )
    }
    leaves: dict[str, Floats] = {}
    for leaf in scan.leaves:
        if leaf.name not in gates:
            raise ValueError(f"no array for the leaf '{leaf.name}' of scan '{scan.name}'")
        leaves[leaf.name] = _checked(leaf.name, gates[leaf.name], leaf_shape(scan, dag, leaf))
    with np.errstate(all="ignore"):
        evaluators = [
            (evaluator or Evaluator)(scan, dag, number, inputs_of(scan, inputs, number), leaves)
            for number in range(len(scan.directions))
        ]
        by_direction = [direction.run() for direction in evaluators]
    first = by_direction[0]
    shared = {"query": first.query, "key": first.key, "value": first.value}
    shared = {name: array for name, array in shared.items() if name[0] not in scan.own}
    return tuple(replace(values, **shared) for values in by_direction)


def inputs_of(scan: Scan, inputs: Mapping[str, Floats], number: int) -> dict[str, Floats]:
    """The queries, keys and values of one direction, `(node, head, ...)`: of those that are its own an entry of the axis behind
    the heads, if there are several directions."""
    own = scan.own if len(scan.directions) > 1 else ()
    return {name: array[:, :, number] if name in own else array for name, array in inputs.items()}


def _checked(name: str, array: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    numbers = floats(array)
    if numbers.shape != shape:
        raise ValueError(f"'{name}' has shape {numbers.shape}, should be {shape}")
    return numbers


class Evaluator:
    """Evaluates the gates of one direction, in order."""

    def __init__(self, scan: Scan, dag: DAG, direction: int, inputs: dict[str, Floats], leaves: dict[str, Floats]) -> None:
        self.scan, self.dag, self.direction = scan, dag, direction
        self.sites = sites_of(dag, scan.directions[direction])
        self.inputs, self.leaves = inputs, leaves
        self.gates: dict[str, Value] = {}

    def run(self) -> DirectionGates:
        """All gates; those that the recurrence reads at the sites it reads them."""
        for gate in self.scan.gates:
            self.gates[gate.name] = self.gate(gate)
        source, transition, mark, direct = (
            self.spread(self.gates[name], ports, self.gates[name].states) for name, ports in SITES_READ
        )
        query, key, value = (self.input(name) for name in "qkv")
        return DirectionGates(self.sites, source, transition, mark, direct, query, key, value)

    def input(self, name: str) -> Floats:
        """The queries, keys or values: as they are redefined, or as they are given; of one at each node without an axis."""
        own = INPUT_STATES[name]
        whole = own if several(index_size(self.scan, own[0])) else own[1:]
        value = self.gates[name] if name in self.gates else Value((), whole, self.inputs[name])
        array = self.spread(value, (), own).array
        return array if whole == own else np.squeeze(array, 2)

    def gate(self, gate: Gate) -> Value:
        """A gate at all its declared indices: at each site the matching clause with the most pinned indices holds."""
        ports = port_part(gate.indices)
        states = state_part(gate.indices)
        count, sizes = self.sites.count(ports), tuple(index_size(self.scan, index) for index in states)
        result: Floats = np.full((count, self.scan.heads, *sizes), np.nan)
        for clause in sorted(gate.clauses, key=lambda clause: len(clause.ports)):
            value = self.spread(self.evaluate(clause.value), ports, states)
            matches = np.ones(count, dtype=bool)
            for index, port in clause.ports:
                matches &= self.sites.port(ports, index) == self.dag.ports.index(port)
            result = np.where(matches.reshape(-1, *(1,) * (result.ndim - 1)), value.array, result)
        return Value(ports, states, result)

    def lift(self, value: Value, ports: PortIndices, states: tuple[Index, ...]) -> Value:
        """A value with more indices, the same along those it lacked (state axes of length one there)."""
        array = value.array[self.sites.within(value.ports, ports)]
        lengths = dict(zip(value.states, array.shape[2:], strict=True))
        return Value(ports, states, array.reshape(*array.shape[:2], *(lengths.get(index, 1) for index in states)))

    def spread(self, value: Value, ports: PortIndices, states: tuple[Index, ...]) -> Value:
        """As `lift`, with every state axis at its full length."""
        lifted = self.lift(value, ports, states)
        sizes = tuple(index_size(self.scan, index) for index in states)
        return Value(ports, states, np.broadcast_to(lifted.array, (*lifted.array.shape[:2], *sizes)))

    def together(self, values: list[Value], *more: Index) -> tuple[PortIndices, tuple[Index, ...], list[Floats]]:
        """Values brought to the union of their indices and `more`, so that their arrays broadcast."""
        indices = set(more)
        for value in values:
            indices.update(value.ports, value.states)
        ports = port_part(indices)
        states = state_part(indices)
        return ports, states, [self.lift(value, ports, states).array for value in values]

    def evaluate(self, expr: Expr) -> Value:
        """The value of an expression."""
        match expr:
            case Number(value=number):
                return Value((), (), np.full((self.sites.count(()), self.scan.heads), float(number)))
            case Spread(low=low, high=high):
                heads = self.scan.heads
                each = [low + (high - low) * (head / (heads - 1) if heads > 1 else 0.5) for head in range(heads)]
                return Value((), (), np.broadcast_to(np.asarray(each), (self.sites.count(()), heads)))
            case LeafRef(leaf=name):
                return self.leaf(self.scan.leaf(name))
            case InputRef(name=name, bind=bind):
                return self.rename(self.given(name, bind), bind)
            case GateRef(gate=name, bind=bind):
                return self.rename(self.gates[name], bind)
            case Apply(function=function, arguments=arguments):
                ports, states, arrays = self.together([self.evaluate(operand) for operand in arguments])
                return Value(ports, states, self.applied(function, arrays))
            case Sum(terms=terms):
                ports, states, arrays = self.together([self.evaluate(operand) for _, operand in terms])
                return Value(ports, states, self.added([negative for negative, _ in terms], arrays))
            case Product(factors=factors):
                ports, states, arrays = self.together([self.evaluate(operand) for _, operand in factors])
                return Value(ports, states, self.multiplied([inverted for inverted, _ in factors], arrays))
            case Power(base=base, exponent=exponent):
                ports, states, (low, high) = self.together([self.evaluate(base), self.evaluate(exponent)])
                return Value(ports, states, self.raised(low, high))
            case Reduce() | Normalize():
                return self.along(expr)
            case Stack():
                return self.stacked(expr)
            case Split(arguments=arguments):
                return self.split([self.evaluate(operand) for operand in arguments])
            case Eye(first=first, second=second):
                states = state_part((first, second))
                eye = np.eye(index_size(self.scan, first))
                return Value((), states, np.broadcast_to(eye, (self.sites.count(()), self.scan.heads, *eye.shape)))
            case Spectral(pairs=pairs, argument=argument):
                return self.spectral(pairs, self.evaluate(argument))
            case Degree(over=over):
                return self.degree(over)
            case Neighbour(over=over):
                edges, ends = (self.sites.in_edge, self.sites.tail) if over == "in" else (self.sites.out_edge, self.sites.head)
                there = np.asarray([0.0 if ends[edge] == OPEN else 1.0 for edge in edges])
                return Value((over,), (), np.broadcast_to(there[:, None], (len(there), self.scan.heads)))
            case Finite(argument=argument):
                value = self.evaluate(argument)
                return replace(value, array=np.where(np.isfinite(value.array), value.array, 0.0))
            case LineMask():
                return self.mask()
            case _:
                assert_never(expr)

    def given(self, name: str, bind: tuple[Bind, ...]) -> Value:
        """An input as it is given, with the indices that it has in the spec."""
        states: tuple[Index, ...] = tuple(entry.declared for entry in bind)
        return Value(
            (),
            states,
            self.inputs[name].reshape(*self.inputs[name].shape[:2], *(index_size(self.scan, index) for index in states)),
        )

    def applied(self, function: Function, arguments: list[Floats]) -> Floats:
        """An elementwise function."""
        return apply(function, arguments)

    def added(self, negative: list[bool], terms: list[Floats]) -> Floats:
        """A sum, of whose terms some are subtracted."""
        result: Floats = np.zeros(())
        for below, term in zip(negative, terms, strict=True):
            result = result - term if below else result + term
        return result

    def multiplied(self, inverted: list[bool], factors: list[Floats]) -> Floats:
        """A product, of whose factors some are divided by."""
        result: Floats = np.ones(())
        for below, factor in zip(inverted, factors, strict=True):
            result = over(result, factor) if below else times(result, factor)
        return result

    def raised(self, base: Floats, exponent: Floats) -> Floats:
        """A power."""
        return np.power(base, exponent)

    def reduced(self, kind: Reduction, array: Floats, groups: Groups) -> Floats:
        """A reduction of groups."""
        return reduced(kind, array, groups)

    def rescaled(self, kind: Rescaling, array: Floats, groups: Groups) -> Floats:
        """A rescaling over groups."""
        return rescaled(kind, array, groups)

    def leaf(self, leaf: Leaf) -> Value:
        """A leaf's array in this direction, its axes sorted out: site axes first, then head, then state indices in order."""
        array = self.leaves[leaf.name]
        dense = is_regular(self.scan.topology)
        ports = port_part(leaf.indices)
        states = state_part(leaf.indices)
        lead = 0 if leaf.kind == "param" else len(self.dag.node_shape) if dense or not ports else 1
        if leaf.directional and len(self.scan.directions) > 1:
            array = np.take(array, self.direction, axis=lead + 1)
        array = array.reshape(int(np.prod(array.shape[:lead])), *array.shape[lead:])
        axes = [index for index in leaf.indices if dense or index not in PORT_INDICES]
        order = [*(index for index in ports if dense), "h", *states]
        array = array.transpose(0, *(1 + ["h", *axes].index(index) for index in order))
        if leaf.kind == "given":
            array = smaller(larger(array, np.asarray(leaf.low)), np.asarray(leaf.high))
        if leaf.kind == "param":
            count = self.dag.node_count if dense else self.sites.count(ports)
            array = np.broadcast_to(array, (count, *array.shape[1:]))
        elif not dense and len(ports) == 1:
            array = array[self.sites.out_edge if ports == ("out",) else self.sites.in_edge]
        elif not dense and len(ports) == 2:
            array = array[: self.sites.count(ports)]  # what is spare belongs to no line edge
        return Value(ports, states, array.reshape(self.sites.count(ports), *array.shape[1 + len(ports) * dense :]))

    def rename(self, value: Value, bind: tuple[Bind, ...]) -> Value:
        """A gate or an input as referred to: each declared index renamed, or pinned to a port."""
        for entry in bind:
            value = value if entry.place is None else self.at_place(value, entry.declared, entry.place)
        to: dict[Index, Index | None] = {index: index for index in value.states}
        to |= {entry.declared: entry.index for entry in bind}
        renamed: list[Index] = [new_index for index in value.states if (new_index := to[index]) is not None]
        states, letters = state_part(renamed), "".join(AXIS[index] for index in renamed)
        array = np.einsum(f"nh{letters}->nh{''.join(AXIS[index] for index in states)}", value.array)
        value = Value(value.ports, states, array)
        ports = [entry for entry in bind if entry.declared in value.ports]
        if all(entry.index == entry.declared for entry in ports):
            return value
        return self.rename_dense(value, ports) if is_regular(self.scan.topology) else self.pin(value, ports)

    def rename_dense(self, value: Value, bind: list[Bind]) -> Value:
        """Port indices on a regular topology, where each node has one edge of each port: axes can be swapped and picked."""
        array = value.array.reshape(self.dag.node_count, *[len(self.dag.ports)] * len(value.ports), *value.array.shape[1:])
        renamed: list[Index] = []
        for entry in sorted(bind, key=lambda entry: value.ports.index(entry.declared)):
            if entry.index is None:
                array = np.take(array, self.dag.ports.index(str(entry.port)), axis=1 + len(renamed))
            else:
                renamed.append(entry.index)
        ports, letters = port_part(renamed), "".join(AXIS[index] for index in renamed)
        array = np.einsum(f"n{letters}...->n{''.join(AXIS[index] for index in ports)}...", array)
        return Value(ports, value.states, array.reshape(self.sites.count(ports), *array.shape[1 + len(ports) :]))

    def pin(self, value: Value, bind: list[Bind]) -> Value:
        """Port indices elsewhere, where they can only be pinned, and only to a port of which each node has one edge."""
        pinned: dict[Index, str | None] = {entry.declared: entry.port for entry in bind if entry.index != entry.declared}
        ports = port_part(index for index in value.ports if index not in pinned)
        matches = np.ones(len(value.array), dtype=bool)
        for index, port in pinned.items():
            matches &= self.sites.port(value.ports, index) == self.dag.ports.index(str(port))
        where = self.sites.within(ports, value.ports)[matches]
        if sorted(where) != list(range(self.sites.count(ports))):
            raise ValueError(f"a gate is pinned to ports {pinned} of which some node has none or several edges")
        array = np.empty((len(where), *value.array.shape[1:]), dtype=value.array.dtype)
        array[where] = value.array[matches]
        return Value(ports, value.states, array)

    def along(self, expr: Reduce | Normalize) -> Value:
        """A reduction or a rescaling over one index, after the argument has been given that index."""
        argument = self.evaluate(expr.argument)
        ports, states, _ = self.together([argument], expr.over)
        value = self.spread(argument, ports, states)
        less, fewer = port_part(set(ports) - {expr.over}), state_part(set(states) - {expr.over})
        if expr.over in states:
            groups = Groups(2 + states.index(expr.over), None, 0)
        else:
            groups = Groups(0, self.sites.within(less, ports), self.sites.count(less))
        if isinstance(expr, Normalize):
            return Value(ports, states, self.rescaled(expr.kind, value.array, groups))
        result = self.reduced(expr.kind, value.array, groups)
        return Value(less, fewer, np.squeeze(result, groups.axis) if groups.group is None else result)

    def stacked(self, expr: Stack) -> Value:
        """Position by position: what its entry has there, else what the rest has."""
        own = dict(expr.entries)
        evaluated = {id(entry): self.evaluate(entry) for entry in children(expr)}
        picked: list[Value] = []
        for place in range(index_size(self.scan, expr.index)):
            entry = own.get(place, expr.rest)
            assert entry is not None, "every position has an entry or there is a rest"
            picked.append(self.at_place(evaluated[id(entry)], expr.index, place))
        ports, states, arrays = self.together(picked)
        wide = np.broadcast_shapes(*(array.shape for array in arrays))
        states = state_part({*states, expr.index})
        joined = np.stack([np.broadcast_to(array, wide) for array in arrays], axis=2 + states.index(expr.index))
        return Value(ports, states, joined)

    def at_place(self, value: Value, index: Index, place: int) -> Value:
        """One position of a state index, which a value may lack."""
        if index not in value.states:
            return value
        axis = value.states.index(index)
        whole = self.spread(value, value.ports, value.states).array
        return Value(
            value.ports, value.states[:axis] + value.states[axis + 1 :], np.take(whole, [place], 2 + axis).squeeze(2 + axis)
        )

    def spectral(self, pairs: tuple[tuple[Index, Index], ...], argument: Value) -> Value:
        """The norm of a matrix whose rows are the first indices of the pairs and whose columns are the second ones."""
        bound: list[Index] = [pair[side] for side in (0, 1) for pair in pairs]
        value = self.spread(argument, argument.ports, state_part({*argument.states, *bound}))
        axes = [2 + value.states.index(index) for index in bound]
        moved = np.moveaxis(value.array, axes, range(-len(axes), 0))
        rows = int(np.prod([index_size(self.scan, row) for row, _ in pairs]))
        norm = self.normed(moved.reshape(*moved.shape[: -len(axes)], rows, rows))
        return Value(value.ports, state_part(set(value.states) - set(bound)), norm)

    def normed(self, matrices: Floats) -> Floats:
        """The norms of matrices `(..., row, column)`."""
        decomposed = spectrum(matrices)
        if not np.iscomplexobj(matrices):
            return decomposed.norm
        return decomposed.norm + 1j * np.sum(decomposed.weights * decomposed.along(matrices.imag), axis=-1)

    def split(self, arguments: list[Value]) -> Value:
        """The stick broken at the arguments: a port gets its argument's part of what the ports before it left."""
        ports, states, arrays = self.together(arguments, "out")
        number_of_port = self.sites.port(ports, "out").reshape(-1, 1, *(1 for _ in states))
        left: Floats = np.ones((len(number_of_port), 1, *(1 for _ in states)))
        result = np.zeros_like(left)
        for number, array in enumerate(arrays):
            result = np.where(number_of_port == number, times(left, array), result)
            left = times(left, 1 - array)
        return Value(ports, states, np.where(number_of_port == len(arrays), left, result))

    def degree(self, over: Index) -> Value:
        """The edges that leave each node, or enter it, one by one."""
        count = np.zeros(self.sites.count(()))
        for end in (self.sites.tail if over == "out" else self.sites.head).tolist():
            if end != OPEN:
                count[end] += 1
        return Value((), (), np.broadcast_to(count[:, None], (len(count), self.scan.heads)))

    def mask(self) -> Value:
        """The line edges that a multitree keeps: a matter of the declared DAG, the same for both senses."""
        mask = np.asarray(multitree(self.dag), dtype=np.float64)
        return Value(("out", "in"), (), np.broadcast_to(mask[:, None], (len(mask), self.scan.heads)))
