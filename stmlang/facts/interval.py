"""Interval arithmetic for gates: an array of intervals over pairs of port classes.

An interval promises: *the value, if it is a number, lies in [low, high]*, ends included, for every choice of finite leaves;
and it is always a number unless `nan` is set. It speaks of what is computed, in float64, float32 and bfloat16 alike, up to
rounding:

* what may pass the largest float32 is taken for infinite: a bound beyond `HUGE` becomes infinite;
* what may fall below the smallest is taken for zero: a bound closer to zero than `TINY` becomes zero, and so does a lower bound
  above zero that a cancellation in bfloat16 could reach (`MARGIN`). So `low > 0` means that a logarithm may be taken.
  A sigmoid's or an exponential's interval includes 0, which they reach in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from stmlang.facts.classes import Bools, Floats, PortClasses
from stmlang.scan.expression import Bind
from stmlang.scan.scan import Gate

HUGE = 3e38
TINY = 1e-36
MARGIN = 2.0**-7
"""The relative error of one rounding in bfloat16, with a bit to spare."""
FINITE = float(np.finfo(np.float64).max)
"""Stands for "unbounded but not infinite", which leaves are."""


class Interval(NamedTuple):
    """Arrays of shape `(out, in)`, an axis having length one where nothing varies."""

    low: Floats
    high: Floats
    nan: Bools

    @property
    def magnitude(self) -> Floats:
        """The largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def holds_zero(self) -> Bools:
        return (self.low <= 0) & (self.high >= 0)

    @property
    def holds_infinity(self) -> Bools:
        return np.isinf(self.low) | np.isinf(self.high)


def assembled(classes: PortClasses, gate: Gate, values: Sequence[Interval]) -> Interval:
    """A gate's interval out of its clauses' intervals."""
    low, high = (
        classes.assemble(gate, [value.low for value in values]),
        classes.assemble(gate, [value.high for value in values]),
    )
    return Interval(low, high, classes.assemble(gate, [value.nan for value in values]))


def rebound(classes: PortClasses, value: Interval, bind: tuple[Bind, ...]) -> Interval:
    """A gate's interval as a reference to it sees it."""
    return Interval(classes.rebind(value.low, bind), classes.rebind(value.high, bind), classes.rebind(value.nan, bind))


def interval(low: Floats, high: Floats, nan: Bools) -> Interval:
    """Bounds made to hold in every precision (see the module)."""
    low = np.where(np.isnan(low) | (low < -HUGE), -np.inf, low)
    high = np.where(np.isnan(high) | (high > HUGE), np.inf, high)
    low = np.where((low > 0) & (low < TINY), 0.0, low)
    high = np.where((high < 0) & (high > -TINY), 0.0, high)
    return Interval(low, high, nan)


def finite(low: float, high: float) -> Interval:
    """A leaf between two bounds, which may be infinite and then are not reached."""
    ends = np.clip(np.array([low, high]), -FINITE, FINITE)
    return Interval(ends[:1, None], ends[1:, None], np.zeros((1, 1), np.bool_))


def number(value: float) -> Interval:
    """A constant."""
    point = np.full((1, 1), value)
    return interval(point, point, np.zeros((1, 1), np.bool_))


def between(low: float, high: float, like: Interval, nan: Bools | None = None) -> Interval:
    """The same bounds everywhere, in the shape of `like`; `nan` adds to where `like` may be no number."""
    shape = like.low.shape
    return interval(np.full(shape, low), np.full(shape, high), like.nan if nan is None else like.nan | nan)


def times(a: Floats, b: Floats) -> Floats:
    """The product of bounds, in which zero times infinity is zero: an infinite value times zero is no number."""
    with np.errstate(invalid="ignore"):
        products = a * b
    return np.where((a == 0) | (b == 0), 0.0, products)


def negate(a: Interval) -> Interval:
    return Interval(-a.high, -a.low, a.nan)


def add(terms: Sequence[Interval]) -> Interval:
    """The sum. Infinities of both signs make no number."""
    low = reduce(np.add, (term.low for term in terms))
    high = reduce(np.add, (term.high for term in terms))
    up = reduce(np.logical_or, (term.high == np.inf for term in terms))
    down = reduce(np.logical_or, (term.low == -np.inf for term in terms))
    nan = reduce(np.logical_or, (term.nan for term in terms)) | (up & down if len(terms) > 1 else np.zeros((1, 1), np.bool_))
    shape = np.broadcast_shapes(low.shape, nan.shape)
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    return _cancelled(interval(low, high, nan), terms)


def _cancelled(total: Interval, terms: Sequence[Interval]) -> Interval:
    """A sum that is close to zero only because terms cancel may round to zero in bfloat16."""
    margin = MARGIN * reduce(np.add, (term.magnitude for term in terms))
    falls = reduce(np.logical_or, (term.low < 0 for term in terms))
    rises = reduce(np.logical_or, (term.high > 0 for term in terms))
    low = np.where(falls & (total.low > 0) & (total.low <= margin), 0.0, total.low)
    high = np.where(rises & (total.high < 0) & (total.high >= -margin), 0.0, total.high)
    return Interval(low, high, total.nan)


def multiply(a: Interval, b: Interval) -> Interval:
    """The product. Zero times infinity makes no number."""
    ends = [(x, y, times(x, y)) for x in (a.low, a.high) for y in (b.low, b.high)]
    nan = a.nan | b.nan | (a.holds_zero & b.holds_infinity) | (b.holds_zero & a.holds_infinity)
    return _hull(ends, nan)


def divide(a: Interval, b: Interval) -> Interval:
    """The quotient. Zero by zero, and infinity by infinity, make no number; a zero may be negative, so a division by it is
    unbounded both ways."""
    ends = [(x, y, np.where(np.isinf(x) & np.isinf(y), 0.0, x / y)) for x in (a.low, a.high) for y in (b.low, b.high)]
    zero = (a.low == 0) & (a.high == 0)
    nan = a.nan | b.nan | (a.holds_zero & b.holds_zero) | (a.holds_infinity & b.holds_infinity)
    quotient = _hull(ends, nan)
    low = np.where(zero, 0.0, np.where(b.holds_zero, -np.inf, quotient.low))
    high = np.where(zero, 0.0, np.where(b.holds_zero, np.inf, quotient.high))
    return Interval(low, high, nan)


def _hull(ends: Sequence[tuple[Floats, Floats, Floats]], nan: Bools) -> Interval:
    """The smallest interval that holds the values at the corners; one that fell to zero is not zero for certain."""
    lows: list[Floats] = []
    highs: list[Floats] = []
    for x, y, value in ends:
        lost = (value == 0) & (x != 0) & (y != 0)
        positive = np.signbit(x) == np.signbit(y)
        lows.append(np.where(lost & ~positive, -TINY, value))
        highs.append(np.where(lost & positive, TINY, value))
    low, high = reduce(np.minimum, lows), reduce(np.maximum, highs)
    return interval(low, high, np.broadcast_to(nan, low.shape))


def power(a: Interval, b: Interval) -> Interval:
    """`a ^ b`: exact for whole exponents, `exp(b log a)` for others, where a negative base makes no number."""
    whole = (b.low == b.high) & (b.low == np.round(b.low)) & np.isfinite(b.low)
    exact, general = _whole_power(a, np.where(whole, b.low, 1.0)), _real_power(a, b)
    nan = a.nan | b.nan | (~whole & (a.low < 0))
    return interval(np.where(whole, exact.low, general.low), np.where(whole, exact.high, general.high), nan)


def _whole_power(a: Interval, exponent: Floats) -> Interval:
    size, even = np.abs(exponent), exponent % 2 == 0
    least = np.where(a.holds_zero, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    low = np.power(np.where(even, least, a.low), size)
    high = np.power(np.where(even, a.magnitude, a.high), size)
    low = np.where((low == 0) & ~even & (a.low < 0), -TINY, low)
    high = np.where((high == 0) & (np.where(even, a.magnitude, a.high) > 0), TINY, high)
    under = divide(number(1.0), interval(low, high, a.nan))
    low = np.where(exponent < 0, np.where(even & a.holds_zero, 0.0, under.low), low)
    high = np.where(exponent < 0, under.high, high)
    return Interval(np.where(exponent == 0, 1.0, low), np.where(exponent == 0, 1.0, high), a.nan)


def _real_power(a: Interval, b: Interval) -> Interval:
    """For a base that is not negative the extremes lie at the corners, since the power is monotone in each argument. A negative
    base has a power only where the exponent happens to be whole, of at most the magnitude's power."""
    negative = a.low < 0
    corners = [np.power(x, y) for x in (np.where(negative, 0.0, a.low), a.magnitude) for y in (b.low, b.high)]
    low, high = reduce(np.minimum, corners), reduce(np.maximum, corners)
    high = np.where((high == 0) & (a.magnitude > 0), TINY, high)
    low = np.where(a.holds_zero & (b.low < 0), -np.inf, low)
    return Interval(np.where(negative, -high, low), high, a.nan)


def hull(intervals: Sequence[Interval]) -> Interval:
    """The smallest interval that holds them all."""
    low = reduce(np.minimum, (interval.low for interval in intervals))
    high = reduce(np.maximum, (interval.high for interval in intervals))
    nan = reduce(np.logical_or, (interval.nan for interval in intervals))
    shape = np.broadcast_shapes(low.shape, nan.shape)
    return Interval(np.broadcast_to(low, shape), np.broadcast_to(high, shape), np.broadcast_to(nan, shape))
