"""What is known of degrees: their range, that they are whole, and that what divides by the number of a node's outgoing edges
shares between them.

A degree is zero or at least one, so that what is made of degrees alone is looked at in each of these cases by itself: in
`1 / degree(out)` nothing lies between.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Literal, TypeAlias

import numpy as np

from stmlang.facts.classes import Bools, Floats, PortClasses
from stmlang.facts.elementwise import computed
from stmlang.facts.interval import Interval, assembled, divide, finite, number, rebound
from stmlang.facts.walk import Analysis
from stmlang.graph.limits import LARGEST
from stmlang.scan.expression import (
    Apply,
    Degree,
    Expr,
    Finite,
    Function,
    GateRef,
    Number,
    Power,
    Product,
    Spread,
    Sum,
    children,
)
from stmlang.scan.scan import Gate, Scan

Cases: TypeAlias = tuple[Interval, ...]
"""An interval for each case: `in` and `out` degrees that are zero, or not."""


def degree_range(classes: PortClasses, over: Literal["out", "in"]) -> tuple[float, float]:
    """The smallest and the largest degree of a node, as far as the topology says."""
    return float((~classes.ragged).sum()), float(min(classes.edges(over).sum(), LARGEST))


def counted(classes: PortClasses, over: Literal["out", "in"]) -> Interval:
    """The interval of a degree."""
    return finite(*degree_range(classes, over))


class DegreeCases(Analysis[Cases | None]):
    """`of(expr)` for what is made of numbers and degrees alone, through gates too; None for anything else."""

    def __init__(self, scan: Scan, classes: PortClasses) -> None:
        super().__init__(scan, classes)
        self.into = self._each("in")
        self.out = self._each("out")
        self.count = len(self.into) * len(self.out)
        self.run()

    def _each(self, over: Literal["out", "in"]) -> list[Interval]:
        """The ranges of a degree that are looked at separately."""
        low, high = degree_range(self.classes, over)
        return [*([finite(0.0, 0.0)] if low == 0 else []), *([finite(max(low, 1.0), high)] if high > 0 else [])]

    def gate(self, gate: Gate, values: list[Cases | None]) -> Cases | None:
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        return tuple(assembled(self.classes, gate, [value[case] for value in known]) for case in range(self.count))

    def rule(self, expr: Expr, operands: tuple[Cases | None, ...]) -> Cases | None:
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        match expr:
            case Number(value=value):
                return (number(value),) * self.count
            case Spread(low=low, high=high):
                return (finite(min(low, high), max(low, high)),) * self.count
            case Degree(over=over):
                return tuple(out if over == "out" else into for into, out in product(self.into, self.out))
            case GateRef(gate=name, bind=bind):
                cases = self.gates[name]
                return cases and tuple(rebound(self.classes, case, bind) for case in cases)
            case Finite(argument=argument):
                inner = [cases for operand in children(argument) if (cases := self.of(operand)) is not None]
                return tuple(
                    _settled(argument, whole, [operand[case] for operand in inner]) for case, whole in enumerate(known[0])
                )
            case Sum() | Product() | Power() | Apply():
                return tuple(computed(expr, tuple(operand[case] for operand in known)) for case in range(self.count))
            case _:
                return None


def _settled(argument: Expr, whole: Interval, operands: list[Interval]) -> Interval:
    """What is finite of a value or zero, which it is for certain where it divides by zero."""
    nothing = np.zeros((1, 1))
    match argument:
        case Product(factors=factors):
            undefined = [_zero(operand) for (inverted, _), operand in zip(factors, operands, strict=True) if inverted]
            never = reduce(np.logical_or, undefined, nothing > 0)
        case Power():
            never = _zero(operands[0]) & (operands[1].high < 0)
        case Apply(function=Function.LOG):
            never = _zero(operands[0])
        case _:
            never = nothing > 0
    never = never | ((whole.low == np.inf) | (whole.high == -np.inf))
    loose = ~never & (whole.nan | whole.holds_infinity)
    low = np.where(never, 0.0, np.where(loose, np.minimum(whole.low, 0.0), whole.low))
    high = np.where(never, 0.0, np.where(loose, np.maximum(whole.high, 0.0), whole.high))
    least, most = (np.broadcast_to(bound, low.shape) for bound in finite(-np.inf, np.inf)[:2])
    return Interval(np.maximum(low, least), np.minimum(high, most), np.zeros(low.shape, np.bool_))


def _zero(interval: Interval) -> Bools:
    return (interval.low == 0) & (interval.high == 0)


class Multiples(Analysis[Floats]):
    """`of(expr)` is the largest known `c` such that `expr >= c * degree(out)` at every node that an edge leaves; minus infinity
    where the sign is not known. What is divided by such a number adds up, over `out`, to at most one in `c`th."""

    def __init__(self, scan: Scan, classes: PortClasses, intervals: Analysis[Interval]) -> None:
        super().__init__(scan, classes)
        self.intervals = intervals
        self.run()

    def gate(self, gate: Gate, values: list[Floats]) -> Floats:
        return self.classes.assemble(gate, values)

    def rule(self, expr: Expr, operands: tuple[Floats, ...]) -> Floats:
        interval = self.intervals.of(expr)
        positive = np.where((interval.low >= 0) & ~interval.nan, 0.0, -np.inf)
        match expr:
            case Degree(over="out"):
                return np.ones((1, 1))
            case GateRef(gate=name, bind=bind):
                return self.classes.rebind(self.gates[name], bind)
            case Sum(terms=terms) if not any(negative for negative, _ in terms):
                return np.maximum(positive, reduce(np.add, operands))
            case Product(factors=factors):
                return np.maximum(positive, self.product(factors, operands))
            case Power(exponent=Number(value=value)) if value >= 1:
                return np.maximum(positive, np.where(operands[0] >= 0, np.maximum(operands[0], 0.0) ** value, -np.inf))
            case Finite(argument=argument):
                inner = self.intervals.of(argument)
                return np.where(inner.nan | inner.holds_infinity, positive, np.maximum(positive, operands[0]))
            case Apply(function=Function.MAXIMUM):
                return np.maximum(positive, np.maximum(*operands))
            case Apply(function=Function.MINIMUM):
                return np.maximum(positive, np.minimum(*operands))
            case _:
                return positive

    def product(self, factors: tuple[tuple[bool, Expr], ...], operands: tuple[Floats, ...]) -> Floats:
        """One factor by its multiple, the others by their smallest values."""
        least = [self.least(inverted, factor) for inverted, factor in factors]
        best = np.full((1, 1), -np.inf)
        for chosen, ((inverted, _), operand) in enumerate(zip(factors, operands, strict=True)):
            if not inverted:
                others = reduce(np.multiply, [*least[:chosen], *least[chosen + 1 :]], np.ones((1, 1)))
                best = np.maximum(best, np.where((operand > 0) & (others > 0), np.maximum(operand, 0.0) * others, -np.inf))
        return best

    def least(self, inverted: bool, factor: Expr) -> Floats:
        """The smallest value of a factor, or of one over it; zero if it may be negative, as then nothing is claimed."""
        interval = self.intervals.of(factor)
        if inverted:
            interval = divide(number(1.0), interval)
        return np.where((interval.low > 0) & ~interval.nan & np.isfinite(interval.low), interval.low, 0.0)
