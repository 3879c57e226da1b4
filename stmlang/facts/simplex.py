"""Column sums: how much a gate can pass on in all from one incoming edge, and where it is a point of the simplex.

`total[in]` bounds `sum over out of |gate[out, in]|`, for every value of its state indices; where the gate is a matrix on state
axes, spectral norms take the place of magnitudes. A gate is a point of the simplex over `out` if its entries are not negative
and sum to one (up to rounding).
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import NamedTuple, assert_never

import numpy as np

from stmlang.facts.bounding import has_small_columns
from stmlang.facts.classes import Bools, Floats, PortClasses
from stmlang.facts.contract import never_enlarges, shrinks_as_power
from stmlang.facts.degrees import Multiples
from stmlang.facts.interval import Interval, times
from stmlang.facts.intervals import Intervals
from stmlang.facts.operators import Operators, Pair
from stmlang.facts.walk import Analysis
from stmlang.scan.expression import (
    Apply,
    Bind,
    Degree,
    Expr,
    Eye,
    Finite,
    Function,
    GateRef,
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
)
from stmlang.scan.scan import Gate, Scan
from stmlang.scan.sizes import dense_size

MOST_TRIED = 16
"""Of a product with more factors that could be summed over `out`, only so many are tried."""


class Column(NamedTuple):
    """Arrays of shape `(1, in)`."""

    total: Floats
    simplex: Bools


class Simplex(Analysis[Column]):
    """`gates[name]` for gates, as matrices on the axes they declare; `of(expr)` for expressions, on the axes they have."""

    def __init__(self, scan: Scan, classes: PortClasses, intervals: Intervals, operators: Operators) -> None:
        super().__init__(scan, classes)
        self.intervals = intervals
        self.operators = operators
        self.multiples = Multiples(scan, classes, intervals)
        self.run()

    def gate(self, gate: Gate, values: list[Column]) -> Column:
        """Port by port of `in`: the clauses that hold at all outgoing ports, each by what it passes on in all or entry by
        entry; or all entries by their norms."""
        operator = self.operators.gates[gate.name]
        lifts = [self.lifted(clause.value, value, operator.pairs) for clause, value in zip(gate.clauses, values, strict=True)]
        entries = self.summed(operator.norm)
        if len(values) == 1:
            return Column(np.minimum(entries, lifts[0]), values[0].simplex & (not operator.pairs))
        holding = self.classes.along(self.classes.holding(gate), 0)
        total, simplex = np.zeros((1, 1)), self.constant_simplex(self.intervals.gates[gate.name]) & (not operator.pairs)
        for number, (lift, value) in enumerate(zip(lifts, values, strict=True)):
            holds = holding == number
            own = self.summed(np.where(holds, operator.norm, 0.0))
            total = total + np.where(holds.any(0, keepdims=True), np.minimum(own, lift), 0.0)
            simplex = simplex | (holds.all(0, keepdims=True) & value.simplex & (not operator.pairs))
        return Column(np.minimum(entries, total), simplex)

    def summed(self, norms: Floats) -> Floats:
        """The sum over the outgoing edges of what bounds each of them."""
        many = self.classes.leaving[:, None]
        return times(many, self.classes.along(norms, 0)).sum(axis=0, keepdims=True)

    def rule(self, expr: Expr, operands: tuple[Column, ...]) -> Column:
        operator = self.operators.of(expr)
        total = np.minimum(self.summed(operator.norm), self.structural(expr, operands, operator.pairs))
        return Column(total, self.is_simplex(expr, operands))

    def structural(self, expr: Expr, operands: tuple[Column, ...], pairs: frozenset[Pair]) -> Floats:
        """A bound from the form of an expression, infinite where it tells nothing."""
        nothing = np.full((1, 1), np.inf)
        match expr:
            case Number() | Spread() | LeafRef() | InputRef() | Eye() | Degree() | Neighbour() | LineMask():
                return nothing
            case GateRef():
                return self.referred(expr, pairs)
            case Finite():
                return nothing if pairs else operands[0].total
            case Sum(terms=terms):
                return reduce(np.add, (self.lifted(e, operand, pairs) for (_, e), operand in zip(terms, operands, strict=True)))
            case Product():
                if has_small_columns(expr):
                    return np.ones((1, 1))
                return np.minimum(self.product(expr, operands, pairs), self.shared(expr, pairs))
            case Power(base=base, exponent=Number(value=value)) if value <= -1 and not pairs:
                multiple = self.multiples.of(base).min(axis=0, keepdims=True)
                return np.where(multiple > 0, np.where(multiple > 0, multiple, 1.0) ** value, np.inf)
            case Apply() | Power() if not pairs:
                return self.shrunk(expr, operands)
            case Reduce() if not pairs:
                return self.reduced(expr, operands[0])
            case Normalize():
                return self.normalized(expr, operands[0], pairs)
            case Split():
                return np.where(self.is_simplex(expr, operands), self.entries(pairs), np.inf)
            case Stack() if not pairs:
                return reduce(np.maximum, (operand.total for operand in operands))
            case Apply() | Power() | Reduce() | Stack() | Spectral():
                return nothing
            case _:
                assert_never(expr)

    def lifted(self, term: Expr, operand: Column, pairs: frozenset[Pair]) -> Floats:
        """The column sum on more matrix axes. A number stands for a matrix of n times its norm. A vector `u` for one of
        `sqrt(n) |u|`, and since `|u| <= sum of |u[key]|`, of which each sums up to at most `total` over `out`, for
        `n sqrt(n) total`."""
        operator, total = self.operators.of(term), operand.total
        for pair in pairs - operator.pairs:
            total = total * self.operators.size(pair) ** (1.0 if operator.free.isdisjoint(pair) else 1.5)
        return total

    def referred(self, expr: GateRef, pairs: frozenset[Pair]) -> Floats:
        """A gate's column sums, where its `out` is `out` here, if it has one, and its matrix axes are the same."""
        repeated = not any("out" in (entry.declared, entry.index) for entry in expr.bind)
        if (repeated or out_kept(expr.bind)) and (not pairs or self.operators.same_matrix(expr, pairs)):
            return self.classes.rebind(self.gates[expr.gate].total, expr.bind)
        return np.full((1, 1), np.inf)

    def product(self, expr: Product, operands: tuple[Column, ...], pairs: frozenset[Pair]) -> Floats:
        """One factor by its column sum, the rest by its norm. The chosen one is a number as far as the matrix axes go, or it
        alone is the matrix. Those whose sum is no better than that of their entries need not be tried."""
        matrices = {index for pair in pairs for index in pair}
        best, tried = np.full((1, 1), np.inf), 0
        for chosen, ((inverted, factor), operand) in enumerate(zip(expr.factors, operands, strict=True)):
            operator = self.operators.of(factor)
            if inverted or tried == MOST_TRIED or not (operand.total < self.summed(operator.norm)).any():
                continue
            others = [*expr.factors[:chosen], *expr.factors[chosen + 1 :]]
            if operator.free.isdisjoint(matrices):
                norm = self.operators.product(others, pairs)
            elif operator.pairs == pairs and not any(self.operators.of(other).pairs for _, other in others):
                norm = self.operators.product(others, frozenset())
            else:
                continue
            tried += 1
            best = np.minimum(best, times(operand.total, norm.max(axis=0, keepdims=True)))
        return best

    def shared(self, expr: Product, pairs: frozenset[Pair]) -> Floats:
        """What is divided by the number of outgoing edges, or by something larger, adds up over them to what it is."""
        matrices = {index for pair in pairs for index in pair}
        best = np.full((1, 1), np.inf)
        for chosen, (inverted, factor) in enumerate(expr.factors):
            multiple = self.multiples.of(factor).min(axis=0, keepdims=True) if inverted else np.zeros((1, 1))
            if (multiple > 0).any() and self.operators.of(factor).free.isdisjoint(matrices):
                norm = self.operators.product([*expr.factors[:chosen], *expr.factors[chosen + 1 :]], pairs)
                once = norm.max(axis=0, keepdims=True)
                best = np.minimum(best, np.where(multiple > 0, once / np.where(multiple > 0, multiple, 1.0), np.inf))
        return best

    def shrunk(self, expr: Apply | Power, operands: tuple[Column, ...]) -> Floats:
        """Functions that do not enlarge; of two numbers the smaller and the larger are at most their sum in magnitude."""
        match expr:
            case Apply(function=Function.MINIMUM | Function.MAXIMUM):
                return operands[0].total + operands[1].total
            case Apply():
                shrinks = never_enlarges(expr, self.intervals)
            case Power(base=base, exponent=exponent):
                shrinks = shrinks_as_power(base, exponent, self.intervals)
        return np.where(shrinks.all(axis=0, keepdims=True), operands[0].total, np.inf)

    def reduced(self, expr: Reduce, operand: Column) -> Floats:
        """Sums over a state index add up its entries, sums over `in` the incoming edges, means do neither."""
        nothing = np.full((1, 1), np.inf)
        match expr.over:
            case "out":
                return nothing
            case "in" if expr.kind == "mean":
                return operand.total.max(axis=1, keepdims=True)
            case "in":
                return times(self.classes.entering[None, :], self.classes.along(operand.total, 1)).sum(axis=1, keepdims=True)
            case index:
                return operand.total if expr.kind == "mean" else dense_size(self.scan, index) * operand.total

    def normalized(self, expr: Normalize, operand: Column, pairs: frozenset[Pair]) -> Floats:
        """Softmax and `l1` over `out` sum to at most one in every entry."""
        if expr.kind == "l1" and not pairs:
            return np.minimum(operand.total, 1.0) if expr.over == "out" else operand.total
        if expr.over != "out" or expr.kind == "l2":
            return np.full((1, 1), np.inf)
        return np.full((1, 1), self.entries(pairs))

    def entries(self, pairs: frozenset[Pair]) -> float:
        """A matrix's norm is at most the sum of all its entries' magnitudes: this is how many there are."""
        return float(prod(self.operators.size(pair) ** 2 for pair in pairs))

    def is_simplex(self, expr: Expr, operands: tuple[Column, ...]) -> Bools:
        """Forms that make a point of the simplex, and constants that are one."""
        no = np.zeros((1, 1), np.bool_)
        match expr:
            case GateRef(gate=name, bind=bind) if out_kept(bind):
                form = self.classes.rebind(self.gates[name].simplex, bind)
            case Stack():
                form = reduce(np.logical_and, (operand.simplex for operand in operands))
            case Normalize(kind="softmax", over="out"):
                form = np.ones((1, 1), np.bool_)
            case Normalize(kind="l1", over="out"):
                form = operands[0].simplex
            case Split(arguments=arguments):
                intervals = [self.intervals.of(argument) for argument in arguments]
                inside = [np.all((i.low >= 0) & (i.high <= 1), axis=0, keepdims=True) for i in intervals]
                form = reduce(np.logical_and, inside, np.ones((1, 1), np.bool_))
                if any("out" in self.operators.of(argument).free for argument in arguments):
                    form = no
            case _:
                form = no
        return form | self.constant_simplex(self.intervals.of(expr))

    def constant_simplex(self, interval: Interval) -> Bools:
        """Numbers, one a port, that sum to one."""
        if not self.classes.regular:
            return np.zeros((1, 1), np.bool_)
        low = self.classes.along(interval.low, 0)
        fixed = np.all((interval.low == interval.high) & (interval.low >= 0) & ~interval.nan, axis=0, keepdims=True)
        return fixed & (low.sum(axis=0, keepdims=True) == 1)


def out_kept(bind: tuple[Bind, ...]) -> bool:
    """Whether a reference keeps the gate's `out` as its own, and has no other `out`."""
    outs = [entry.declared for entry in bind if entry.index == "out"]
    return outs == ["out"]
