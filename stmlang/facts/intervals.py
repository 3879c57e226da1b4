"""The interval in which each gate lies, by port (`Interval` says what that promises)."""

from __future__ import annotations

from functools import reduce
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.facts.classes import Bools, Floats, PortClasses, Scalar
from stmlang.facts.interval import (
    HUGE,
    TINY,
    Interval,
    add,
    between,
    divide,
    finite,
    hull,
    interval,
    multiply,
    negate,
    number,
    power,
    times,
)
from stmlang.facts.walk import Analysis
from stmlang.graph.limits import LARGEST
from stmlang.scan.expression import (
    Apply,
    Expr,
    Eye,
    Function,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    LineMask,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Split,
    Sum,
)
from stmlang.scan.scan import Gate, Leaf, Scan


def state_size(scan: Scan, index: Index) -> int:
    """How many values a state index takes."""
    return {"key": scan.key, "value": scan.value, "track": scan.track}[index.rstrip("'")]


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


class Intervals(Analysis[Interval]):
    """`gates[name]` is the gate's interval, `of(expr)` that of an expression."""

    def __init__(self, scan: Scan, classes: PortClasses) -> None:
        super().__init__(scan, classes)
        self.leaves: dict[str, Leaf] = {leaf.name: leaf for leaf in scan.leaves}
        self.run()

    def gate(self, gate: Gate, values: list[Interval]) -> Interval:
        assemble = self.classes.assemble
        low = assemble(gate, [value.low for value in values])
        high = assemble(gate, [value.high for value in values])
        return Interval(low, high, assemble(gate, [value.nan for value in values]))

    def rule(self, expr: Expr, parts: tuple[Interval, ...]) -> Interval:
        match expr:
            case Number(value=value):
                return number(value)
            case LeafRef(leaf=name):
                leaf = self.leaves[name]
                return finite(leaf.low, leaf.high) if leaf.kind == "given" else finite(-np.inf, np.inf)
            case InputRef():
                return finite(-np.inf, np.inf)
            case GateRef(gate=name, bind=bind):
                low, high, nan = self.gates[name]
                rebind = self.classes.rebind
                return Interval(rebind(low, bind), rebind(high, bind), rebind(nan, bind))
            case Apply(function=function):
                return apply(function, parts)
            case Sum(terms=terms):
                return add([negate(part) if negative else part for (negative, _), part in zip(terms, parts, strict=True)])
            case Product(factors=factors):
                steps = zip((inverted for inverted, _ in factors), parts, strict=True)
                return reduce(lambda whole, step: (divide if step[0] else multiply)(whole, step[1]), steps, number(1.0))
            case Power():
                return power(*parts)
            case Reduce(kind=kind, over=over):
                return self.reduced(kind, over, parts[0])
            case Normalize(kind=kind, over=over):
                return self.normalized(kind, over, parts[0])
            case Split():
                return self.split(parts)
            case Eye() | LineMask():
                return finite(0.0, 1.0)
            case _:
                assert_never(expr)

    def reduced(self, kind: Literal["sum", "mean", "max"], over: Index, part: Interval) -> Interval:
        """A reduction: over a state index of so many equal intervals, over a port index class by class."""
        if over in ("out", "in"):
            return self.reduced_ports(kind, over, part)
        size = state_size(self.scan, over)
        both = (part.low == -np.inf) & (part.high == np.inf)
        if kind == "sum":
            return interval(size * part.low, size * part.high, part.nan | both & (size > 1))
        if kind == "mean":
            return _mean(part, part.nan | both)
        return part

    def reduced_ports(self, kind: Literal["sum", "mean", "max"], over: Index, part: Interval) -> Interval:
        """A node has one edge of each regular port, and of a ragged one any number up to its largest degree, or none."""
        axis = 0 if over == "out" else 1
        counts = self.classes.edges(over)
        pieces: list[Interval] = []
        for port, ragged in enumerate(self.classes.ragged):
            low, high, nan = self._at(part.low, axis, port), self._at(part.high, axis, port), self._at(part.nan, axis, port)
            if ragged and kind == "sum":
                both = (low == -np.inf) & (high == np.inf)
                many = np.full((1, 1), counts[port])
                low, high, nan = np.minimum(0.0, times(many, low)), np.maximum(0.0, times(many, high)), nan | both
            elif ragged:
                low, high = np.minimum(0.0, low), np.maximum(0.0, high)
            pieces.append(interval(low, high, nan))
        if kind == "sum":
            return add(pieces)
        whole = hull(pieces)
        if kind == "max":
            return whole
        return _mean(whole, whole.nan | ((whole.low == -np.inf) & (whole.high == np.inf)))

    def _at(self, array: npt.NDArray[Scalar], axis: int, port: int) -> npt.NDArray[Scalar]:
        return np.take(self.classes.along(array, axis), [port], axis=axis)

    def normalized(self, kind: Literal["softmax", "l1", "l2"], over: Index, part: Interval) -> Interval:
        """Softmax in [0, 1]; `l1` and `l2` in [-1, 1], and on the argument's side of zero."""
        if over in ("out", "in"):
            axis = 0 if over == "out" else 1
            shared = np.any(part.holds_infinity, axis=axis, keepdims=True)
            nan = np.any(part.nan, axis=axis, keepdims=True)
        else:
            shared, nan = part.holds_infinity, part.nan
        part = Interval(part.low, part.high, np.broadcast_to(nan | shared, part.low.shape))
        if kind == "softmax":
            alone = over in ("out", "in") and self.classes.single
            return between(1.0 if alone else 0.0, 1.0, part)
        low, high = np.where(part.low < 0, -1.0, 0.0), np.where(part.high > 0, 1.0, 0.0)
        if kind == "l1":
            low, high = np.maximum(low, np.minimum(part.low, 0.0)), np.minimum(high, np.maximum(part.high, 0.0))
        return interval(low, high, part.nan)

    def split(self, parts: tuple[Interval, ...]) -> Interval:
        """Port by port what is broken off the stick and what was left of it. An argument that has the index `out` itself counts
        with its bounds over all of it."""
        ends = [
            Interval(p.low.min(0, keepdims=True), p.high.max(0, keepdims=True), np.any(p.nan, 0, keepdims=True)) for p in parts
        ]
        rest, pieces = number(1.0), list[Interval]()
        for end in ends:
            pieces.append(multiply(rest, end))
            rest = multiply(rest, add([number(1.0), negate(end)]))
        pieces.append(rest)
        return Interval(
            _stacked([piece.low for piece in pieces]),
            _stacked([piece.high for piece in pieces]),
            _stacked([piece.nan for piece in pieces]),
        )


def _stacked(pieces: list[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """One row a port."""
    wide = np.broadcast_shapes(*(piece.shape for piece in pieces))
    return np.concatenate([np.broadcast_to(piece, wide) for piece in pieces])


def _mean(part: Interval, nan: Bools) -> Interval:
    """A mean lies where its terms do, unless their sum passes the largest number."""
    far = HUGE / LARGEST
    low, high = np.where(part.low < -far, -np.inf, part.low), np.where(part.high > far, np.inf, part.high)
    return interval(low, high, nan)


def apply(function: Function, parts: tuple[Interval, ...]) -> Interval:
    """An elementwise function: monotone ones at both ends."""
    x = parts[0]
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
            return minimum(x, parts[1])
        case Function.MAXIMUM:
            return maximum(x, parts[1])
        case Function.CLIP:
            return clamp(x, parts[1], parts[2])
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
