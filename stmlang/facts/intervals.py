"""The interval in which each gate lies, by port (`Interval` says what that promises)."""

from __future__ import annotations

from math import prod
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.facts.classes import Bools, PortClasses, Scalar
from stmlang.facts.degrees import DegreeCases, counted
from stmlang.facts.elementwise import computed
from stmlang.facts.interval import (
    FINITE,
    HUGE,
    Interval,
    add,
    assembled,
    between,
    finite,
    hull,
    interval,
    multiply,
    negate,
    number,
    rebound,
    times,
)
from stmlang.facts.walk import Analysis
from stmlang.graph.limits import LARGEST
from stmlang.scan.expression import (
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
)
from stmlang.scan.scan import Gate, Leaf, Scan
from stmlang.scan.sizes import dense_size


class Intervals(Analysis[Interval]):
    """`gates[name]` is the gate's interval, `of(expr)` that of an expression."""

    def __init__(self, scan: Scan, classes: PortClasses) -> None:
        super().__init__(scan, classes)
        self.leaves: dict[str, Leaf] = {leaf.name: leaf for leaf in scan.leaves}
        self.cases = DegreeCases(scan, classes)
        self.run()

    def gate(self, gate: Gate, values: list[Interval]) -> Interval:
        return assembled(self.classes, gate, values)

    def rule(self, expr: Expr, operands: tuple[Interval, ...]) -> Interval:
        match expr:
            case Number(value=value):
                return number(value)
            case Spread(low=low, high=high):
                return finite(min(low, high), max(low, high))
            case LeafRef(leaf=name):
                leaf = self.leaves[name]
                return finite(leaf.low, leaf.high) if leaf.kind == "given" else finite(-np.inf, np.inf)
            case InputRef():
                return finite(-np.inf, np.inf)
            case GateRef(gate=name, bind=bind):
                return rebound(self.classes, self.gates[name], bind)
            case Sum() | Product() | Power() | Apply():
                return computed(expr, operands)
            case Reduce(kind=kind, over=over):
                return self.reduced(kind, over, operands[0])
            case Normalize(kind=kind, over=over):
                return self.normalized(kind, over, operands[0])
            case Stack():
                return hull(operands)
            case Split():
                return self.split(operands)
            case Spectral(pairs=pairs):
                return self.spectral(pairs, operands[0])
            case Degree(over=over):
                return counted(self.classes, over)
            case Finite():
                cases = self.cases.of(expr)
                return _finite(operands[0]) if cases is None else hull(cases)
            case Eye() | Neighbour() | LineMask():
                return finite(0.0, 1.0)
            case _:
                assert_never(expr)

    def spectral(self, pairs: tuple[tuple[Index, Index], ...], operand: Interval) -> Interval:
        """A matrix's norm is at most the size of its entries times the number of its rows."""
        rows = prod(dense_size(self.scan, row) for row, _ in pairs)
        return interval(np.zeros(operand.low.shape), rows * operand.magnitude, operand.nan | operand.holds_infinity)

    def reduced(self, kind: Literal["sum", "mean", "max"], over: Index, operand: Interval) -> Interval:
        """A reduction: over a state index of so many equal intervals, over a port index class by class."""
        if over in ("out", "in"):
            return self.reduced_ports(kind, over, operand)
        size = dense_size(self.scan, over)
        both = (operand.low == -np.inf) & (operand.high == np.inf)
        if kind == "sum":
            return interval(size * operand.low, size * operand.high, operand.nan | both & (size > 1))
        if kind == "mean":
            return _mean(operand, operand.nan | both)
        return operand

    def reduced_ports(self, kind: Literal["sum", "mean", "max"], over: Index, operand: Interval) -> Interval:
        """A node has one edge of each regular port, and of a ragged one any number up to its largest degree, or none."""
        axis = 0 if over == "out" else 1
        counts = self.classes.edges(over)
        pieces: list[Interval] = []
        for port, ragged in enumerate(self.classes.ragged):
            low, high, nan = (
                self._at(operand.low, axis, port),
                self._at(operand.high, axis, port),
                self._at(operand.nan, axis, port),
            )
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

    def normalized(self, kind: Literal["softmax", "l1", "l2"], over: Index, operand: Interval) -> Interval:
        """Softmax in [0, 1]; `l1` and `l2` in [-1, 1], and on the argument's side of zero."""
        if over in ("out", "in"):
            axis = 0 if over == "out" else 1
            shared = np.any(operand.holds_infinity, axis=axis, keepdims=True)
            nan = np.any(operand.nan, axis=axis, keepdims=True)
        else:
            shared, nan = operand.holds_infinity, operand.nan
        operand = Interval(operand.low, operand.high, np.broadcast_to(nan | shared, operand.low.shape))
        if kind == "softmax":
            alone = over in ("out", "in") and self.classes.single
            return between(1.0 if alone else 0.0, 1.0, operand)
        low, high = np.where(operand.low < 0, -1.0, 0.0), np.where(operand.high > 0, 1.0, 0.0)
        if kind == "l1":
            low, high = np.maximum(low, np.minimum(operand.low, 0.0)), np.minimum(high, np.maximum(operand.high, 0.0))
        return interval(low, high, operand.nan)

    def split(self, operands: tuple[Interval, ...]) -> Interval:
        """Port by port what is broken off the stick and what was left of it. An argument that has the index `out` itself counts
        with its bounds over all of it."""
        ends = [
            Interval(p.low.min(0, keepdims=True), p.high.max(0, keepdims=True), np.any(p.nan, 0, keepdims=True))
            for p in operands
        ]
        left, pieces = number(1.0), list[Interval]()
        for end in ends:
            pieces.append(multiply(left, end))
            left = multiply(left, add([number(1.0), negate(end)]))
        pieces.append(left)
        return Interval(
            _stacked([piece.low for piece in pieces]),
            _stacked([piece.high for piece in pieces]),
            _stacked([piece.nan for piece in pieces]),
        )


def _finite(operand: Interval) -> Interval:
    """What is finite of a value, or zero."""
    low, high = np.clip(operand.low, -FINITE, 0.0), np.clip(operand.high, 0.0, FINITE)
    return Interval(low, high, np.zeros(operand.nan.shape, np.bool_))


def _stacked(pieces: list[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """One row a port."""
    wide = np.broadcast_shapes(*(piece.shape for piece in pieces))
    return np.concatenate([np.broadcast_to(piece, wide) for piece in pieces])


def _mean(operand: Interval, nan: Bools) -> Interval:
    """A mean lies where its terms do, unless their sum passes the largest number."""
    far = HUGE / LARGEST
    low, high = np.where(operand.low < -far, -np.inf, operand.low), np.where(operand.high > far, np.inf, operand.high)
    return interval(low, high, nan)
