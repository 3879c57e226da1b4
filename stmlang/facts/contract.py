"""Functions that never enlarge: `|f(x)| <= |x|`, so that a bound on a norm of `x` is one on that of `f(x)`."""

from __future__ import annotations

import numpy as np

from stmlang.facts.classes import Bools
from stmlang.facts.intervals import Intervals
from stmlang.scan.expression import Apply, Expr, Function

NEVER_ENLARGE = frozenset({Function.ABS, Function.TANH, Function.RELU, Function.SIN, Function.CAP})


def never_enlarges(expr: Apply, intervals: Intervals) -> Bools:
    """Where a function is known not to enlarge its first argument; `clip` is one where its bounds hold zero."""
    if expr.function in NEVER_ENLARGE:
        return np.ones((1, 1), np.bool_)
    if expr.function is Function.CLIP:
        low, high = (intervals.of(argument) for argument in expr.arguments[1:])
        return (low.high <= 0) & (high.low >= 0)
    return np.zeros((1, 1), np.bool_)


def shrinks_as_power(base: Expr, exponent: Expr, intervals: Intervals) -> Bools:
    """Where `|base ^ exponent| <= |base|`: the base is at most one and the exponent at least one."""
    return (intervals.of(base).magnitude <= 1) & (intervals.of(exponent).low >= 1)
