"""Upper bounds on Euclidean lengths along state indices: `sqrt(sum over key of u[key]^2)`, whatever the other indices are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import accumulate
from math import sqrt
from typing import NamedTuple, assert_never

import numpy as np

from stmlang.facts.classes import Floats, PortClasses
from stmlang.facts.contract import never_enlarges
from stmlang.facts.interval import divide, number, times
from stmlang.facts.intervals import Intervals
from stmlang.facts.walk import Analysis
from stmlang.scan.expression import (
    BOUND_INDICES,
    DENSE_INDICES,
    STATE_INDICES,
    Apply,
    Degree,
    Expr,
    Eye,
    Finite,
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
    free_indices,
)
from stmlang.scan.scan import Gate, Scan
from stmlang.scan.sizes import dense_size


class Measured(NamedTuple):
    """The state indices that an expression has, a bound on its magnitude and, for each of those indices, on its length."""

    magnitude: Floats
    lengths: dict[Index, Floats]


class Lengths(Analysis[Measured]):
    """`length(expr, index)`, an array over port classes."""

    def __init__(self, scan: Scan, classes: PortClasses, intervals: Intervals) -> None:
        super().__init__(scan, classes)
        self.intervals = intervals
        self.run()

    def length(self, expr: Expr, index: Index) -> Floats:
        """A bound on the length of an expression along a state index; one that it lacks repeats its value."""
        with np.errstate(over="ignore"):
            return self._along(self.of(expr), index)

    def _along(self, measured: Measured, index: Index) -> Floats:
        return measured.lengths.get(index, sqrt(dense_size(self.scan, index)) * measured.magnitude)

    def gate(self, gate: Gate, values: list[Measured]) -> Measured:
        lengths: dict[Index, Floats] = {}
        for index in state_part(gate.indices):
            lengths[index] = self.classes.assemble(gate, [self._along(value, index) for value in values])
        return Measured(self.intervals.gates[gate.name].magnitude, lengths)

    def rule(self, expr: Expr, operands: tuple[Measured, ...]) -> Measured:
        magnitude = self.intervals.of(expr).magnitude
        lengths: dict[Index, Floats] = {}
        for index in _states(expr, operands):
            bound = sqrt(dense_size(self.scan, index)) * magnitude
            lengths[index] = np.minimum(bound, self.structural(expr, operands, index))
        return Measured(magnitude, lengths)

    def structural(self, expr: Expr, operands: tuple[Measured, ...], index: Index) -> Floats:
        """A bound along a state index that an expression has, infinite where its form tells nothing."""
        nothing = np.full((1, 1), np.inf)
        match expr:
            case (
                Number()
                | Spread()
                | LeafRef()
                | InputRef()
                | Degree()
                | Neighbour()
                | Finite()
                | LineMask()
                | Split()
                | Power()
                | Spectral()
            ):
                return nothing
            case GateRef():
                return self.renamed(expr, index)
            case Apply():
                return np.where(never_enlarges(expr, self.intervals), self._along(operands[0], index), np.inf)
            case Sum():
                return reduce(np.add, (self._along(operand, index) for operand in operands))
            case Product(factors=factors):
                return self.product(factors, index)
            case Reduce(kind=kind, over=over):
                return self._along(operands[0], index) if kind == "mean" and over in DENSE_INDICES else nothing
            case Normalize(over=over):
                return np.ones((1, 1)) if index == over else nothing
            case Stack():
                return self.stacked(expr, operands, index)
            case Eye():
                return np.ones((1, 1))
            case _:
                assert_never(expr)

    def stacked(self, expr: Stack, operands: tuple[Measured, ...], index: Index) -> Floats:
        """Along the index of a stack entry by entry; along another one the longest of them."""
        if index != expr.index:
            return reduce(np.maximum, (self._along(operand, index) for operand in operands))
        counts = [1] * len(expr.entries) + ([] if expr.rest is None else [dense_size(self.scan, index) - len(expr.entries)])
        squares = (count * operand.magnitude**2 for count, operand in zip(counts, operands, strict=True))
        return np.sqrt(reduce(np.add, squares))

    def renamed(self, expr: GateRef, index: Index) -> Floats:
        """A gate's length along the index that is `index` here; two of the gate's that became one tell nothing."""
        known = self.gates[expr.gate].lengths
        declared: list[Index] = [entry.declared for entry in expr.bind if entry.index == index and entry.declared in known]
        return self.classes.rebind(known[declared[0]], expr.bind) if len(declared) == 1 else np.full((1, 1), np.inf)

    def product(self, factors: Iterable[tuple[bool, Expr]], index: Index) -> Floats:
        """One factor by its length, the others by their magnitudes, whichever choice is best."""
        listed = list(factors)
        magnitudes = [magnitude(self.intervals, inverted, factor) for inverted, factor in listed]
        before = list(accumulate(magnitudes, times, initial=np.ones((1, 1))))
        after = list(accumulate(reversed(magnitudes), times, initial=np.ones((1, 1))))[::-1]
        best = np.full((1, 1), np.inf)
        for chosen, (inverted, factor) in enumerate(listed):
            if not inverted:
                others = times(before[chosen], after[chosen + 1])
                best = np.minimum(best, times(others, self.length(factor, index)))
        return best


def magnitude(intervals: Intervals, inverted: bool, factor: Expr) -> Floats:
    """The largest absolute value of a factor, or of one over it."""
    interval = intervals.of(factor)
    return divide(number(1.0), interval).magnitude if inverted else interval.magnitude


def state_part(indices: Iterable[Index]) -> tuple[Index, ...]:
    """The state indices among some, in order."""
    present = set(indices)
    return tuple(index for index in (*STATE_INDICES, *BOUND_INDICES) if index in present)


def _states(expr: Expr, operands: tuple[Measured, ...]) -> tuple[Index, ...]:
    """The state indices of an expression."""
    inside: list[Index] = [index for operand in operands for index in operand.lengths]
    match expr:
        case LeafRef() | InputRef() | GateRef() | Eye():
            return state_part(free_indices(expr))
        case Reduce(over=over):
            return tuple(index for index in state_part(inside) if index != over)
        case Spectral():
            return tuple(index for index in state_part(inside) if index not in expr.indices)
        case Normalize(over=over):
            return state_part([*inside, over])
        case Stack(index=index):
            return state_part([*inside, index])
        case _:
            return state_part(inside)
