"""Upper bounds on what transitions do to states: magnitudes of numbers, spectral norms of matrices on state axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import sqrt
from typing import NamedTuple, assert_never

import numpy as np

from stmlang.facts.bounding import has_small_entries
from stmlang.facts.classes import Floats, PortClasses
from stmlang.facts.factored import Factored, Shifted, shifted
from stmlang.facts.interval import times
from stmlang.facts.intervals import Intervals
from stmlang.facts.lengths import Lengths, magnitude
from stmlang.facts.rewrite import renamed
from stmlang.facts.stacks import scaled_rotation, stacked_norm
from stmlang.facts.terms import PAIRS
from stmlang.facts.walk import Analysis
from stmlang.scan.expression import (
    BOUND_INDICES,
    PORT_INDICES,
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

Pair = tuple[Index, Index]


class Operator(NamedTuple):
    """An expression as an operator: it is a matrix on the state axes of which it has both indices, a number (for all values of
    its other indices) on others. `norm` bounds its spectral norm, by port class; `free` are its indices."""

    free: frozenset[Index]
    norm: Floats

    @property
    def pairs(self) -> frozenset[Pair]:
        return frozenset(pair for pair in PAIRS if self.free.issuperset(pair))


class Operators(Analysis[Operator]):
    """`gates[name].norm`: a bound on the norm of a gate as a matrix on all axes of which it declares both indices."""

    def __init__(self, scan: Scan, classes: PortClasses, intervals: Intervals, lengths: Lengths) -> None:
        super().__init__(scan, classes)
        self.intervals = intervals
        self.lengths = lengths
        self.equations: dict[str, Gate] = {gate.name: gate for gate in scan.gates}
        self.run()

    def gate(self, gate: Gate, values: list[Operator]) -> Operator:
        free = frozenset(gate.indices)
        pairs = Operator(free, np.zeros((1, 1))).pairs
        return Operator(free, self.classes.assemble(gate, [self.lifted(value, pairs) for value in values]))

    def size(self, pair: Pair) -> int:
        """The rows of a matrix on an axis."""
        return dense_size(self.scan, pair[0])

    def lifted(self, operator: Operator, pairs: frozenset[Pair]) -> Floats:
        """The norm on more axes: a number stands for the matrix all of whose entries it is, a vector for the matrix all of
        whose columns it is."""
        return reduce(np.multiply, (self.size(pair) for pair in pairs - operator.pairs), operator.norm)

    def rule(self, expr: Expr, operands: tuple[Operator, ...]) -> Operator:
        free = frozenset(free_indices(expr)) if not operands else _free(expr, operands)
        operator = Operator(free, np.full((1, 1), np.inf))
        if not operator.pairs:
            return Operator(free, self.intervals.of(expr).magnitude)
        return Operator(free, np.minimum(self.structural(expr, operands, operator.pairs), self.entries(expr, operator.pairs)))

    def entries(self, expr: Expr, pairs: frozenset[Pair]) -> Floats:
        """The Frobenius norm, from the magnitude of the entries or the lengths of rows and columns."""
        sizes = [self.size(pair) for pair in pairs]
        bound = reduce(np.multiply, sizes, self.intervals.of(expr).magnitude)
        if len(pairs) == 1:
            (pair,) = pairs
            bound = reduce(np.minimum, (sqrt(self.size(pair)) * self.lengths.length(expr, index) for index in pair), bound)
        return bound

    def structural(self, expr: Expr, operands: tuple[Operator, ...], pairs: frozenset[Pair]) -> Floats:
        """A bound from the form of a matrix, infinite where it tells nothing."""
        nothing = np.full((1, 1), np.inf)
        match expr:
            case Eye():
                return np.ones((1, 1))
            case GateRef():
                return self.classes.rebind(self.gates[expr.gate].norm, expr.bind) if self.same_matrix(expr, pairs) else nothing
            case Sum():
                whole = reduce(np.add, (self.lifted(operand, pairs) for operand in operands))
                return np.minimum(whole, self.reflection(expr, pairs))
            case Product(factors=factors):
                return np.ones((1, 1)) if has_small_entries(expr) else self.product(factors, pairs)
            case Stack():
                return np.minimum(stacked_norm(expr, pairs), self.scaled(expr, pairs))
            case Reduce(kind="sum", over=over, argument=Product(factors=factors)) if over in BOUND_INDICES and len(pairs) == 1:
                return self.multiplied(factors, over, next(iter(pairs)))
            case Number() | Spread() | LeafRef() | InputRef() | Apply() | Power() | Reduce() | Normalize() | Split():
                return nothing
            case Degree() | Neighbour() | Finite() | LineMask() | Spectral():
                return nothing
            case _:
                assert_never(expr)

    def scaled(self, expr: Stack, pairs: frozenset[Pair]) -> Floats:
        """`|[[a, -b], [b, a]]| = sqrt(a^2 + b^2)`."""
        halves = scaled_rotation(expr, next(iter(pairs))) if len(pairs) == 1 else None
        if halves is None:
            return np.full((1, 1), np.inf)
        real, imaginary = (self.intervals.of(half).magnitude for half in halves)
        return np.hypot(real, imaginary)

    def multiplied(self, factors: Sequence[tuple[bool, Expr]], over: Index, pair: Pair) -> Floats:
        """A product of two matrices, summed over the index between them: at most the product of their norms."""
        row, column = pair
        indices = frozenset[Index]((row, column, over))
        sides: tuple[Pair, Pair] = ((row, column), (column, row))
        bound = np.ones((1, 1))
        for side, name in sides:
            own = frozenset[Index]((side, over))
            matrices = [factor for factor in factors if self.of(factor[1]).free & indices == own]
            names: dict[Index, Index] = {over: name}
            turned = renamed(matrices[0][1], names) if len(matrices) == 1 and not matrices[0][0] else None
            if turned is None:
                return np.full((1, 1), np.inf)
            bound = times(bound, self.of(turned).norm)
        numbers = [factor for factor in factors if self.of(factor[1]).free.isdisjoint(indices)]
        if len(numbers) + 2 < len(factors):
            return np.full((1, 1), np.inf)
        return reduce(times, (magnitude(self.intervals, inverted, factor) for inverted, factor in numbers), bound)

    def same_matrix(self, expr: GateRef, pairs: frozenset[Pair]) -> bool:
        """Whether a reference sees exactly the matrix axes of the gate, each as it is or transposed."""
        names = {entry.declared: entry.index for entry in expr.bind}
        referred = [{names[index] for index in pair} for pair in self.gates[expr.gate].pairs]
        return len(referred) == len(pairs) and all(set(pair) in referred for pair in pairs)

    def reflection(self, expr: Sum, pairs: frozenset[Pair]) -> Floats:
        """A diagonal and an outer product on one axis: see `turned`."""
        bound = np.full((1, 1), np.inf)
        if len(pairs) == 1:
            (pair,) = pairs
            for deep in (False, True):
                form = shifted(expr, pair, self.equations, deep)
                if form is not None:
                    bound = np.minimum(bound, self.turned(form))
        return bound

    def turned(self, value: Shifted) -> Floats:
        """`|d eye - c u u^T|`: the eigenvalues are `d` and `d - c |u|^2`, and those of `a (eye - b u u^T)` are `a` and
        `a (1 - b |u|^2)`. With a diagonal that is not one number, at most its largest entry and `|c| |u|^2`."""
        shift = self.intervals.of(value.diagonal)
        if value.u is None:
            return shift.magnitude
        squared = self.lengths.length(value.u, value.pair[0]) ** 2
        weight = self.intervals.of(value.weight)
        apart = shift.magnitude + times(weight.magnitude, squared)
        if not value.uniform:
            return apart
        form = value.factored(self.equations)
        scaled = apart if form is None else times(self.intervals.of(form.scale).magnitude, self.kept(form, squared))
        low, high = np.minimum(0.0, times(weight.low, squared)), np.maximum(0.0, times(weight.high, squared))
        far = np.maximum(np.abs(shift.low - high), np.abs(shift.high - low))
        return np.minimum(np.maximum(shift.magnitude, far), scaled)

    def kept(self, form: Factored, squared: Floats) -> Floats:
        """`|eye - b u u^T|`: its eigenvalues are 1 and `1 - b |u|^2`."""
        strength = self.intervals.of(form.strength)
        low, high = np.minimum(0.0, times(strength.low, squared)), np.maximum(0.0, times(strength.high, squared))
        return np.maximum(1.0, np.maximum(np.abs(1.0 - low), np.abs(1.0 - high)))

    def product(self, factors: Sequence[tuple[bool, Expr]], pairs: frozenset[Pair]) -> Floats:
        """An elementwise product as a matrix on the axes `pairs`, of which its factors have no others.

        Factors without any of their indices are numbers. On one axis, factors with the row (column) index only are diagonal
        matrices on the left (right) of one that has both, or vectors of an outer product. Factors on different axes make a
        Kronecker product. Infinite where a factor has indices of two axes, or two factors are matrices on one.
        """
        bound = np.ones((1, 1))
        matrices = frozenset(index for pair in pairs for index in pair)
        for pair in pairs:
            on_this_axis = [each for each in factors if not self.of(each[1]).free.isdisjoint(pair)]
            if any(not self.of(factor).free.isdisjoint(matrices.difference(pair)) for _, factor in on_this_axis):
                return np.full((1, 1), np.inf)
            bound = times(bound, self.on_axis(on_this_axis, pair))
        numbers = [each for each in factors if self.of(each[1]).free.isdisjoint(matrices)]
        return reduce(times, (magnitude(self.intervals, inverted, factor) for inverted, factor in numbers), bound)

    def on_axis(self, factors: Sequence[tuple[bool, Expr]], pair: Pair) -> Floats:
        """The part of a product that lies on one axis."""
        both = [each for each in factors if self.of(each[1]).free.issuperset(pair)]
        if not both:
            return reduce(times, (self.side(factors, index) for index in pair))
        if len(both) > 1 or both[0][0]:
            return np.full((1, 1), np.inf)
        diagonal = [each for each in factors if not self.of(each[1]).free.issuperset(pair)]
        scales = (magnitude(self.intervals, inverted, factor) for inverted, factor in diagonal)
        return reduce(times, scales, self.of(both[0][1]).norm)

    def side(self, factors: Sequence[tuple[bool, Expr]], index: Index) -> Floats:
        """The length of one vector of an outer product."""
        own = [(inverted, factor) for inverted, factor in factors if index in self.of(factor).free]
        ones = np.full((1, 1), sqrt(dense_size(self.scan, index)))
        whole = reduce(times, (magnitude(self.intervals, inverted, factor) for inverted, factor in own), ones)
        return np.minimum(whole, self.lengths.product(own, index))


def _free(expr: Expr, operands: tuple[Operator, ...]) -> frozenset[Index]:
    """The free indices of an expression with parts."""
    inside = frozenset[Index]().union(*(operand.free for operand in operands))
    match expr:
        case Reduce(over=over):
            return inside.difference((over,))
        case Spectral():
            return inside.difference(expr.indices)
        case Normalize(over=over):
            return inside.union((over,))
        case Stack(index=index):
            return inside.union((index,))
        case Split():
            return inside.union(PORT_INDICES[:1])
        case _:
            return inside
