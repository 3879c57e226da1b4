"""Structural zeros: where a gate is zero whatever the leaves are, by reading its equation."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import numpy as np

from stmlang.facts.classes import Bools, PortClasses
from stmlang.facts.intervals import Intervals
from stmlang.facts.walk import Analysis
from stmlang.scan.expression import (
    PORT_INDICES,
    Apply,
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

KEEP_ZERO = frozenset({Function.TANH, Function.RELU, Function.ABS, Function.SQRT, Function.SIN, Function.CAP})
"""Functions that are zero at zero."""

EXACT = 2.0**24
"""Whole numbers up to here are exact in float32, and so are their sums."""


class Zeros(Analysis[Bools]):
    """`gates[name][out, in]`: whether the gate is zero there, as an identity between real numbers.

    A product with a zero factor counts only if the other factors are defined everywhere: `0 * log(x)` is not zero where x is
    not positive. That a factor overflows does not count against it: in `0 * exp(x)` zero is what is meant.
    """

    def __init__(self, scan: Scan, classes: PortClasses, intervals: Intervals) -> None:
        super().__init__(scan, classes)
        self.intervals = intervals
        self.run()

    def gate(self, gate: Gate, values: list[Bools]) -> Bools:
        return self.classes.assemble(gate, values)

    def everywhere(self, expr: Expr) -> bool:
        """Whether an expression is zero at every port."""
        return bool(self.of(expr).all())

    def rule(self, expr: Expr, operands: tuple[Bools, ...]) -> Bools:
        match expr:
            case Number(value=value):
                return np.full((1, 1), value == 0)
            case Spread(low=low, high=high):
                return np.full((1, 1), low == 0 and high == 0)
            case Stack():
                return reduce(np.logical_and, operands)
            case LeafRef() | InputRef() | Degree() | Finite():
                interval = self.intervals.of(expr)
                return (interval.low == 0) & (interval.high == 0)
            case GateRef(gate=name, bind=bind):
                return self.classes.rebind(self.gates[name], bind)
            case Apply(function=function, arguments=arguments):
                return self.applied(function, arguments, operands)
            case Sum():
                return self.sum(expr, operands)
            case Product():
                return self.product(expr, operands)
            case Power(exponent=exponent):
                return operands[0] & (self.intervals.of(exponent).low > 0)
            case Reduce(over=over):
                axis = None if over not in PORT_INDICES else PORT_INDICES.index(over)
                return operands[0] if axis is None else np.all(operands[0], axis=axis, keepdims=True)
            case Spectral():
                return operands[0]
            case Normalize(kind=kind):
                return np.zeros((1, 1), np.bool_) if kind == "softmax" else operands[0]
            case Split():
                interval = self.intervals.of(expr)
                return (interval.low == 0) & (interval.high == 0) & ~interval.nan
            case Eye() | Neighbour() | LineMask():
                return np.zeros((1, 1), np.bool_)
            case _:
                assert_never(expr)

    def applied(self, function: Function, arguments: tuple[Expr, ...], operands: tuple[Bools, ...]) -> Bools:
        """Of functions that keep zero; of minimum, maximum and clip also where their bounds leave nothing but zero."""
        if function in KEEP_ZERO:
            return operands[0]
        if function in (Function.MINIMUM, Function.MAXIMUM):
            return operands[0] & operands[1]
        if function is Function.CLIP:
            low, high = (self.intervals.of(argument) for argument in arguments[1:])
            return (operands[0] & (low.high <= 0) & (high.low >= 0)) | (operands[1] & operands[2])
        return np.zeros((1, 1), np.bool_)

    def sum(self, expr: Sum, operands: tuple[Bools, ...]) -> Bools:
        """All terms are zero, or all are whole constants that cancel exactly."""
        zero = np.ones((1, 1), np.bool_)
        total, exact = np.zeros((1, 1)), np.ones((1, 1), np.bool_)
        for (negative, term), operand in zip(expr.terms, operands, strict=True):
            zero = zero & operand
            interval = self.intervals.of(term)
            exact = exact & (interval.low == interval.high) & (interval.low == np.round(interval.low)) & ~interval.nan
            exact = exact & (interval.magnitude < EXACT)
            total = total + np.where(exact, -interval.low if negative else interval.low, 0.0)
        return zero | (exact & (total == 0))

    def product(self, expr: Product, operands: tuple[Bools, ...]) -> Bools:
        """One factor is zero, none is undefined and no divisor can be zero."""
        zero, defined = np.zeros((1, 1), np.bool_), np.ones((1, 1), np.bool_)
        for (inverted, factor), operand in zip(expr.factors, operands, strict=True):
            interval = self.intervals.of(factor)
            defined = defined & ~interval.nan
            if inverted:
                defined = defined & ~interval.holds_zero
            else:
                zero = zero | operand
        return zero & defined
