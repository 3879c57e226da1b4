"""Arithmetic and elementwise functions of intervals, as expressions have them."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import numpy as np

from stmlang.facts.classes import Floats
from stmlang.facts.interval import TINY, Interval, add, between, divide, hull, interval, multiply, negate, number, power
from stmlang.scan.expression import Apply, Function, Power, Product, Sum


def computed(expr: Sum | Product | Power | Apply, operands: tuple[Interval, ...]) -> Interval:
    """What an expression computes of its parts."""
    match expr:
        case Sum(terms=terms):
            return add(
                [negate(operand) if negative else operand for (negative, _), operand in zip(terms, operands, strict=True)]
            )
        case Product(factors=factors):
            steps = zip((inverted for inverted, _ in factors), operands, strict=True)
            return reduce(lambda whole, step: (divide if step[0] else multiply)(whole, step[1]), steps, number(1.0))
        case Power():
            return power(*operands)
        case Apply(function=function):
            return apply(function, operands)


def clamp(x: Interval, low: Interval, high: Interval) -> Interval:
    """Between two bounds, whichever is applied first."""
    first = minimum(maximum(x, low), high)
    return hull([first, maximum(minimum(x, high), low)])


def minimum(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high), a.nan | b.nan)


def maximum(a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high), a.nan | b.nan)


def absolute(a: Interval) -> Interval:
    low = np.where(a.holds_zero, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    return Interval(low, a.magnitude, a.nan)


def apply(function: Function, operands: tuple[Interval, ...]) -> Interval:
    """An elementwise function: monotone ones at both ends."""
    x = operands[0]
    infinite = x.nan | x.holds_infinity
    match function:
        case Function.EXP:
            return interval(np.exp(x.low), np.maximum(np.exp(x.high), TINY), x.nan)
        case Function.LOG:
            return _log(x)
        case Function.SIGMOID:
            return interval(_sigmoid(x.low), np.maximum(_sigmoid(x.high), TINY), x.nan)
        case Function.TANH:
            return interval(np.tanh(x.low), np.tanh(x.high), x.nan)
        case Function.RELU:
            return interval(np.maximum(x.low, 0.0), np.maximum(x.high, 0.0), x.nan)
        case Function.SOFTPLUS:
            return interval(np.logaddexp(x.low, 0.0), np.maximum(np.logaddexp(x.high, 0.0), TINY), x.nan)
        case Function.ABS:
            return absolute(x)
        case Function.SQRT:
            return interval(np.sqrt(np.maximum(x.low, 0.0)), np.sqrt(np.maximum(x.high, 0.0)), x.nan | (x.low < 0))
        case Function.SIN | Function.COS:
            return between(-1.0, 1.0, x, infinite)
        case Function.CAP:
            return interval(np.clip(x.low, -1.0, 1.0), np.clip(x.high, -1.0, 1.0), infinite)
        case Function.MINIMUM:
            return minimum(x, operands[1])
        case Function.MAXIMUM:
            return maximum(x, operands[1])
        case Function.DIVISOR:
            return interval(np.maximum(x.low, 1.0), np.maximum(x.high, 1.0), x.nan)
        case Function.CLIP:
            return clamp(x, operands[1], operands[2])
        case _:
            assert_never(function)


def _sigmoid(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))


def _log(x: Interval) -> Interval:
    """Of a number near one the logarithm is near zero, and zero once the number is rounded."""
    low, high = np.log(np.maximum(x.low, 0.0)), np.log(np.maximum(x.high, TINY))
    low = np.where((low > 0) & (low < 0.01), 0.0, low)
    high = np.where((high < 0) & (high > -0.01), 0.0, high)
    return interval(low, high, x.nan | (x.low < 0))
