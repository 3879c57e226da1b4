"""How much the evaluation of gates rounds off: measured, by rounding where a machine would round.

Every value of every expression is moved by `STEP` times itself, up or down; what that does to the gates, divided by `STEP`, is
what arithmetic of unit roundoff one might do to them. Cancellation in the equations (`1 - sigmoid(x)` where the sigmoid is all
but one) thereby shows, whatever the equations are.

A derivative, the imaginary part of a value, is moved by itself. Where derivatives are formed from what cancels, as in
`(1 - tanh(x)^2) dx`, the unit that they may be off by is that of the terms.

Equal numbers are moved equally, and ones inwards, so that a comparison that is a tie stays one: at a kink the derivative is
that of the same side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stmlang.oracle.functions import SCHATTEN, Floats, Groups, Rescaling, absolute, divisor, sigmoid, spectrum
from stmlang.oracle.gates import Evaluator, Value
from stmlang.scan.expression import L2_EPSILON, Degree, Expr, Function, Number

STEP = 1e-6
"""What a number is moved by, relative to itself: far above the rounding of float64, and small enough to be linear."""
ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""A multiplier for each way to round."""
DOUBTFUL = 100 * STEP
"""How far beyond one a norm is in doubt. What moves it must not take one of one out of the slack that it has; of one that lies
beyond the slack and within this, a derivative is known on one side only, and so none is claimed."""
WAYS = tuple(range(len(ODD)))


class Rounding(Evaluator):
    """Evaluates the gates of one direction and rounds on the way; which way is the first argument."""

    def __init__(self, way: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.way = way

    def evaluate(self, expr: Expr) -> Value:
        """The value of an expression, moved; numbers that are written out or counted are exact."""
        value = super().evaluate(expr)
        return value if isinstance(expr, Number | Degree) else replace(value, array=moved(value.array, self.way))

    def applied(self, function: Function, arguments: list[Floats]) -> Floats:
        """Saturating functions: their derivatives cancel."""
        result, argument = super().applied(function, arguments), arguments[0]
        match function:
            case Function.TANH:
                terms = np.ones(())
            case Function.SIGMOID | Function.SOFTPLUS:
                terms = sigmoid(argument.real)
            case Function.DIVISOR:
                return divisor(argument, DOUBTFUL)
            case Function.CAP:
                terms = 1 / np.maximum(1, np.abs(argument.real))
            case _:
                return result
        return self.turned(result, terms * np.abs(argument.imag))

    def multiplied(self, inverted: list[bool], factors: list[Floats]) -> Floats:
        """The derivative of a quotient is a difference, `a' / b - a b' / b^2`, and those of a product may cancel as well."""
        result, size = super().multiplied(inverted, factors), np.zeros(())
        for place, (below, factor) in enumerate(zip(inverted, factors, strict=True)):
            if not np.iscomplexobj(factor) or len(factors) < 2:
                continue
            others = [absolute(other.real) for other in factors[:place] + factors[place + 1 :]]
            term = super().multiplied(inverted[:place] + inverted[place + 1 :], others) * absolute(factor.imag)
            size = size + (term / factor.real**2 if below else term)
        return self.turned(result, size)

    def normed(self, matrices: Floats) -> Floats:
        """The derivative of a norm is a sum over the matrix's entries, which may cancel. Of singular values that are all but
        equal, rounding decides how much each counts: their ratio is off by a unit, and is raised to a high power."""
        norm, known = super().normed(matrices), spectrum(matrices)
        slope = np.einsum("...rs,...s,...sc->...rc", known.left, known.weights, known.right)
        size = np.sum(np.abs(slope * matrices.imag), axis=(-2, -1))
        share = SCHATTEN * known.weights * np.maximum(1 - known.weights, 0)
        return self.turned(norm, size + np.sum(share * np.abs(known.along(matrices.imag)), axis=-1))

    def rescaled(self, kind: Rescaling, array: Floats, groups: Groups) -> Floats:
        """Of what a group shares, little may be left to one of it."""
        result = super().rescaled(kind, array, groups)
        change = groups.back(groups.fold(np.maximum, np.abs(array.imag), 0.0))
        match kind:
            case "softmax":
                terms = np.abs(result.real)
            case "l1":
                terms = 1 / np.maximum(1, groups.back(groups.fold(np.add, absolute(array).real, 0.0)))
            case "l2":
                terms = 1 / np.sqrt(groups.back(groups.fold(np.add, array.real**2, 0.0)) + L2_EPSILON)
        return self.turned(result, terms * change)

    def turned(self, array: Floats, size: Floats) -> Floats:
        """An array whose derivative is off by `STEP` times a size, one way or the other."""
        return array + 1j * STEP * np.where(upwards(array.real, self.way), size, -size) if np.iscomplexobj(array) else array


def moved(array: Floats, way: int) -> Floats:
    """Every number times `1 + STEP` or `1 - STEP`, as its own bits decide."""
    real = array.real * np.where(upwards(array.real, way), 1 + STEP, 1 - STEP)
    if not np.iscomplexobj(array):
        return real
    return real + 1j * array.imag * np.where(upwards(array.imag, way), 1 + STEP, 1 - STEP)


def upwards(array: Floats, way: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which way each number goes."""
    size = np.abs(array)
    return (size.view(np.uint64) * np.uint64(ODD[way]) >> np.uint64(63) > 0) & (size != 1)
