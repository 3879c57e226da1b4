"""What every gate of a scan is worth, by direct evaluation of its equations in numpy float64 (or complex128, see `functions`).

Written apart from the JAX evaluation on purpose: each checks the other. What a value is and
how its indices are told apart stands in `values`, what comes from outside of the equations in `leaves`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import index_size, key_shape, leaf_shape, query_shape, several, value_shape
from stmlang.oracle.functions import (
    Floats,
    Groups,
    Reduction,
    Rescaling,
    apply,
    floats,
    over,
    reduced,
    rescaled,
    spectrum,
    times,
)
from stmlang.oracle.leaves import degree, has_neighbour, kept_line_edges, leaf_value
from stmlang.oracle.sites import PortIndices, Sites, sites_of
from stmlang.oracle.steps import written_out
from stmlang.oracle.values import Frame, Value, port_part, state_part
from stmlang.scan.expression import (
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
from stmlang.scan.scan import Gate, Scan

INPUT_STATES: dict[str, tuple[Index, ...]] = {"q": ("read", "key"), "k": ("write", "key"), "v": ("write", "value")}

SITES_READ: tuple[tuple[str, PortIndices], ...] = (
    ("source", ("out",)),
    ("transition", ("out", "in")),
    ("mark", ("in",)),
    ("direct", ()),
)
"""Where the recurrence reads each of its gates."""


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
        self.frame = Frame(scan, sites_of(dag, scan.directions[direction]))
        self.inputs, self.leaves = inputs, leaves
        self.gates: dict[str, Value] = {}

    def run(self) -> DirectionGates:
        """All gates; those that the recurrence reads at the sites it reads them."""
        for gate in self.scan.gates:
            self.gates[gate.name] = self.gate(gate)
        source, transition, mark, direct = (
            self.frame.spread(self.gates[name], ports, self.gates[name].states) for name, ports in SITES_READ
        )
        query, key, value = (self.input(name) for name in "qkv")
        return DirectionGates(self.frame.sites, source, transition, mark, direct, query, key, value)

    def input(self, name: str) -> Floats:
        """The queries, keys or values: as they are redefined, or as they are given; of one at each node without an axis."""
        own = INPUT_STATES[name]
        whole = own if several(index_size(self.scan, own[0])) else own[1:]
        value = self.gates[name] if name in self.gates else Value((), whole, self.inputs[name])
        array = self.frame.spread(value, (), own).array
        return array if whole == own else np.squeeze(array, 2)

    def gate(self, gate: Gate) -> Value:
        """A gate at all its declared indices: at each site the matching clause with the most pinned indices holds."""
        ports = port_part(gate.indices)
        states = state_part(gate.indices)
        count, sizes = self.frame.sites.count(ports), tuple(index_size(self.scan, index) for index in states)
        result: Floats = np.full((count, self.scan.heads, *sizes), np.nan)
        for clause in sorted(gate.clauses, key=lambda clause: len(clause.ports)):
            value = self.frame.spread(self.evaluate(clause.value), ports, states)
            matches = np.ones(count, dtype=bool)
            for index, port in clause.ports:
                matches &= self.frame.sites.port(ports, index) == self.dag.ports.index(port)
            result = np.where(matches.reshape(-1, *(1,) * (result.ndim - 1)), value.array, result)
        return Value(ports, states, result)

    def evaluate(self, expr: Expr) -> Value:
        """The value of an expression."""
        match expr:
            case Number(value=number):
                return self.frame.constant(float(number))
            case Spread(low=low, high=high):
                return self.frame.over_heads(low, high)
            case LeafRef(leaf=name):
                return leaf_value(self.frame, self.scan.leaf(name), self.leaves[name], self.direction)
            case InputRef(name=name, bind=bind):
                return self.frame.renamed(self.given(name, bind), bind)
            case GateRef(gate=name, bind=bind):
                return self.frame.renamed(self.gates[name], bind)
            case Apply(function=function, arguments=arguments):
                ports, states, arrays = self.frame.together([self.evaluate(operand) for operand in arguments])
                return Value(ports, states, self.applied(function, arrays))
            case Sum(terms=terms):
                ports, states, arrays = self.frame.together([self.evaluate(operand) for _, operand in terms])
                return Value(ports, states, self.added([negative for negative, _ in terms], arrays))
            case Product(factors=factors):
                ports, states, arrays = self.frame.together([self.evaluate(operand) for _, operand in factors])
                return Value(ports, states, self.multiplied([inverted for inverted, _ in factors], arrays))
            case Power(base=base, exponent=exponent):
                ports, states, (low, high) = self.frame.together([self.evaluate(base), self.evaluate(exponent)])
                return Value(ports, states, self.raised(low, high))
            case Reduce() | Normalize():
                return self.along(expr, self.evaluate(expr.argument))
            case Stack():
                return self.stacked(expr)
            case Split(arguments=arguments):
                return self.split([self.evaluate(operand) for operand in arguments])
            case Eye(first=first, second=second):
                return self.frame.eye(first, second)
            case Spectral(pairs=pairs, argument=argument):
                return self.spectral(pairs, self.evaluate(argument))
            case Degree(over=over):
                return degree(self.frame, over)
            case Neighbour(over=over):
                return has_neighbour(self.frame, over)
            case Finite(argument=argument):
                value = self.evaluate(argument)
                return replace(value, array=np.where(np.isfinite(value.array), value.array, 0.0))
            case LineMask():
                return kept_line_edges(self.frame)
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

    def along(self, expr: Reduce | Normalize, argument: Value) -> Value:
        """A reduction or a rescaling of an argument over one index, after it has been given that index."""
        ports, states, _ = self.frame.together([argument], expr.over)
        value = self.frame.spread(argument, ports, states)
        less, fewer = port_part(set(ports) - {expr.over}), state_part(set(states) - {expr.over})
        if expr.over in states:
            groups = Groups(2 + states.index(expr.over), None, 0)
        else:
            groups = Groups(0, self.frame.sites.within(less, ports), self.frame.sites.count(less))
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
            picked.append(self.frame.at_place(evaluated[id(entry)], expr.index, place))
        ports, states, arrays = self.frame.together(picked)
        wide = np.broadcast_shapes(*(array.shape for array in arrays))
        states = state_part({*states, expr.index})
        joined = np.stack([np.broadcast_to(array, wide) for array in arrays], axis=2 + states.index(expr.index))
        return Value(ports, states, joined)

    def spectral(self, pairs: tuple[tuple[Index, Index], ...], argument: Value) -> Value:
        """The norm of a matrix whose rows are the first indices of the pairs and whose columns are the second ones."""
        bound: list[Index] = [pair[side] for side in (0, 1) for pair in pairs]
        value = self.frame.spread(argument, argument.ports, state_part({*argument.states, *bound}))
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
        ports, states, arrays = self.frame.together(arguments, "out")
        number_of_port = self.frame.sites.port(ports, "out").reshape(-1, 1, *(1 for _ in states))
        left: Floats = np.ones((len(number_of_port), 1, *(1 for _ in states)))
        result = np.zeros_like(left)
        for number, array in enumerate(arrays):
            result = np.where(number_of_port == number, times(left, array), result)
            left = times(left, 1 - array)
        return Value(ports, states, np.where(number_of_port == len(arrays), left, result))
