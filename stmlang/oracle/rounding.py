"""How much the evaluation of gates rounds off: measured, by rounding where a machine would round.

Every value of every expression is moved by `STEP` times itself, up or down; what that does to the gates, divided by `STEP`, is
what arithmetic of unit roundoff one might do to them. Cancellation in the equations (`1 - sigmoid(x)` where the sigmoid is all
but one) thereby shows, whatever the equations are.

A derivative, the imaginary part of a value, is moved by itself and by what it is made of. Where derivatives are formed from
what cancels, as in `(1 - tanh(x)^2) dx`, `a' / b - a b' / b^2` or `(I - k k^T) dk / |k|`, the unit that they may be off by is
that of the terms.

What is off already is moved further off, away from its exact value; what is not goes up or down as its bits decide. Did bits
decide everywhere, what an expression rounds off would often take back what its operands did. Of a gate that is the same at all
sites there is one number, so that in a quotient whose derivative cancels, such as a parameter divided by a multiple of itself,
the movements may add up to nothing whichever of three ways bits are read; among many draws some do.

Of two terms that are nearly equal, bits decide alike in all three ways one time in eight, and their difference would be off by
next to nothing. So sums, means and products are moved until they are off by what their operands could have made of them, had
none taken back what another one did.

Equal numbers are moved equally, and ones inwards, so that a comparison that is a tie stays one: at a kink the derivative is
that of the same side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stmlang.oracle.functions import (
    SCHATTEN,
    Floats,
    Groups,
    Reduction,
    Rescaling,
    absolute,
    divisor,
    sigmoid,
    spectrum,
)
from stmlang.oracle.gates import Evaluator
from stmlang.oracle.values import Value
from stmlang.scan.expression import L2_EPSILON, Degree, Expr, Function, Neighbour, Number, Product, Reduce, Sum

STEP = 1e-6
"""What a number is moved by, relative to itself: far above the rounding of float64, and small enough to be linear."""
ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
"""A multiplier for each way to round."""
DOUBTFUL = 100 * STEP
"""How far beyond one a norm is in doubt. What moves it must not take one of one out of the slack that it has; of one that lies
beyond the slack and within this, a derivative is known on one side only, and so none is claimed."""
WAYS = tuple(range(len(ODD)))


class Exact(Evaluator):
    """Evaluates the gates of one direction and keeps the value of every expression, by its identity."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.values: dict[int, Value] = {}

    def evaluate(self, expr: Expr) -> Value:
        value = super().evaluate(expr)
        self.values[id(expr)] = value
        return value


class Rounding(Evaluator):
    """Evaluates the gates of one direction and rounds on the way; which way is the first argument."""

    def __init__(self, way: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.way = way
        self.exact = Exact(*arguments)
        self.exact.run()
        self.off: dict[int, Value] = {}
        """How far each expression was moved, by its identity: sizes, of derivatives in the imaginary parts."""
        self.terms: Floats = np.zeros(())
        """Of the expression that is being evaluated, the size of what its derivative is made of."""
        self.partial: Floats = np.zeros(())
        """Of the same, the size of what is rounded before the value itself is: of partial sums."""

    def evaluate(self, expr: Expr) -> Value:
        """The value of an expression, moved; numbers that are written out or counted are exact."""
        value, exact = super().evaluate(expr), self.exact.values[id(expr)].array
        terms, self.terms = self.terms, np.zeros(())
        partial, self.partial = self.partial, np.zeros(())
        if not isinstance(expr, Number | Degree | Neighbour):
            lost = (self.apart(expr) - _sizes(value.array - exact)) / STEP
            partial = np.maximum(partial, np.abs(value.array.real) + _known(lost.real))
            value = replace(value, array=moved(value.array, exact, partial, terms + _known(lost.imag), self.way))
        self.off[id(expr)] = replace(value, array=_sizes(value.array - exact))
        return value

    def apart(self, expr: Expr) -> Floats:
        """How far the value of a sum or a product would be off if none of its operands took back what another one did, and its
        derivative likewise; zero of others. Of the derivative of a product all terms are counted already."""
        match expr:
            case Sum(terms=operands):
                return self.exact.added([False for _ in operands], self._together(self.off, operands))
            case Reduce(kind="sum" | "mean", argument=argument):
                return self.exact.along(expr, self.off[id(argument)]).array
            case Product(factors=operands):
                inverted = [below for below, _ in operands]
                sizes = [np.abs(array.real) for array in self._together(self.exact.values, operands)]
                total: Floats = np.zeros(())
                for place, off in enumerate(self._together(self.off, operands)):
                    others = self.exact.multiplied(inverted[:place] + inverted[place + 1 :], sizes[:place] + sizes[place + 1 :])
                    total = total + others * off.real / (sizes[place] ** 2 if inverted[place] else 1)
                return total
            case _:
                return np.zeros(())

    def _together(self, values: Mapping[int, Value], operands: Sequence[tuple[bool, Expr]]) -> list[Floats]:
        return self.frame.together([values[id(operand)] for _, operand in operands])[2]

    def applied(self, function: Function, arguments: list[Floats]) -> Floats:
        """Saturating functions: their derivatives cancel."""
        argument = arguments[0]
        match function:
            case Function.TANH:
                slope = np.ones(())
            case Function.SIGMOID | Function.SOFTPLUS:
                slope = sigmoid(argument.real)
            case Function.DIVISOR:
                return divisor(argument, DOUBTFUL)
            case Function.CAP:
                slope = 1 / np.maximum(1, np.abs(argument.real))
            case _:
                slope = np.zeros(())
        self.terms = slope * np.abs(argument.imag)
        return super().applied(function, arguments)

    def added(self, negative: list[bool], terms: list[Floats]) -> Floats:
        """Derivatives of terms may cancel, and of more than two so may partial sums."""
        self.partial = sum((np.abs(term.real) for term in terms), np.zeros(())) if len(terms) > 2 else np.zeros(())
        self.terms = sum((np.abs(term.imag) for term in terms), np.zeros(())) if len(terms) > 1 else np.zeros(())
        return super().added(negative, terms)

    def multiplied(self, inverted: list[bool], factors: list[Floats]) -> Floats:
        """The derivative of a quotient is a difference, `a' / b - a b' / b^2`, and those of a product may cancel as well."""
        size = np.zeros(())
        for place, (below, factor) in enumerate(zip(inverted, factors, strict=True)):
            if not np.iscomplexobj(factor) or len(factors) < 2:
                continue
            others = [absolute(other.real) for other in factors[:place] + factors[place + 1 :]]
            term = super().multiplied(inverted[:place] + inverted[place + 1 :], others) * absolute(factor.imag)
            size = size + (term / factor.real**2 if below else term)
        self.terms = size
        return super().multiplied(inverted, factors)

    def raised(self, base: Floats, exponent: Floats) -> Floats:
        """The derivative is `y x^(y - 1) x' + log(x) x^y y'`."""
        size, power = np.abs(base.real), np.abs(exponent.real)
        by_base = np.where(base.imag == 0, 0.0, power * size ** (exponent.real - 1) * np.abs(base.imag))
        by_exponent = np.where(exponent.imag == 0, 0.0, np.abs(np.log(size)) * size**exponent.real * np.abs(exponent.imag))
        self.terms = by_base + by_exponent
        return super().raised(base, exponent)

    def normed(self, matrices: Floats) -> Floats:
        """The derivative of a norm is a sum over the matrix's entries, which may cancel. Of singular values that are all but
        equal, rounding decides how much each counts: their ratio is off by a unit, and is raised to a high power."""
        known = spectrum(matrices)
        slope = np.einsum("...rs,...s,...sc->...rc", known.left, known.weights, known.right)
        size = np.sum(np.abs(slope * matrices.imag), axis=(-2, -1))
        share = SCHATTEN * known.weights * np.maximum(1 - known.weights, 0)
        self.terms = size + np.sum(share * np.abs(known.along(matrices.imag)), axis=-1)
        return super().normed(matrices)

    def reduced(self, kind: Reduction, array: Floats, groups: Groups) -> Floats:
        """The derivatives of what a group adds up may cancel, and of more than two numbers so may partial sums."""
        if kind != "max":
            several = groups.fold(np.add, np.where(array.real == 0, 0.0, 1.0), 0.0) > 2
            self.partial = np.where(several, super().reduced(kind, np.abs(array.real), groups), 0.0)
            self.partial = self.partial if groups.group is not None else np.squeeze(self.partial, groups.axis)
        size = super().reduced(kind, array.real + 1j * np.abs(array.imag), groups).imag
        self.terms = size if groups.group is not None else np.squeeze(size, groups.axis)
        return super().reduced(kind, array, groups)

    def rescaled(self, kind: Rescaling, array: Floats, groups: Groups) -> Floats:
        """Of what a group shares, little may be left to one of it."""
        result = super().rescaled(kind, array, groups)
        change = groups.back(groups.fold(np.maximum, np.abs(array.imag), 0.0))
        match kind:
            case "softmax":
                slope = np.abs(result.real)
            case "l1":
                slope = 1 / np.maximum(1, groups.back(groups.fold(np.add, absolute(array).real, 0.0)))
            case "l2":
                slope = 1 / np.sqrt(groups.back(groups.fold(np.add, array.real**2, 0.0)) + L2_EPSILON)
        self.terms = slope * change
        return result

    def split(self, arguments: list[Value]) -> Value:
        """What is left of the stick is a product, and a port gets a part of it."""
        ports, states, arrays = self.frame.together(arguments, "out")
        here = self.frame.sites.port(ports, "out").reshape(-1, 1, *(1 for _ in states))
        left, change, terms = np.ones(()), np.zeros(()), np.zeros(())
        for number, array in enumerate(arrays):
            taken, moves, kept = np.abs(array.real), left * np.abs(array.imag), np.abs(1 - array.real)
            terms = np.where(here == number, change * taken + moves, terms)
            left, change = left * kept, change * kept + moves
        self.terms = np.where(here == len(arrays), change, terms)
        return super().split(arguments)


class Flushed(Evaluator):
    """Evaluates the gates of one direction on a machine where results smaller than its first argument are zero. At a kink, as
    that of `abs`, that may be the other side, with another derivative."""

    def __init__(self, smallest: float, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.smallest = smallest

    def evaluate(self, expr: Expr) -> Value:
        value = super().evaluate(expr)
        real = np.where(np.abs(value.array.real) < self.smallest, np.copysign(0.0, value.array.real), value.array.real)
        return replace(value, array=real + 1j * value.array.imag if np.iscomplexobj(value.array) else real)


def moved(array: Floats, exact: Floats, partial: Floats, terms: Floats, way: int) -> Floats:
    """Every number by `STEP` times its own size or that of the partial sums that it was made of, away from the exact one; its
    derivative by `STEP` times its own size and that of its terms, likewise. Where there is nothing to go away from, the
    number's own bits decide."""
    bits = upwards(array.real, way)
    real = _away(array.real, exact.real, np.maximum(np.abs(array.real), partial), bits)
    if not np.iscomplexobj(array):
        return real
    bits = np.where(array.imag == 0, bits, upwards(array.imag, way))
    return real + 1j * _away(array.imag, exact.imag, np.abs(array.imag) + terms, bits)


def _sizes(array: Floats) -> Floats:
    """Absolute values, of derivatives in the imaginary part."""
    return np.abs(array.real) + 1j * np.abs(array.imag) if np.iscomplexobj(array) else np.abs(array)


def _known(sizes: Floats) -> Floats:
    """Sizes that are numbers and above zero, zero in place of others."""
    return np.where(np.isfinite(sizes), np.maximum(sizes, 0), 0.0)


def _away(array: Floats, exact: Floats, size: Floats, bits: np.ndarray[Any, np.dtype[np.bool_]]) -> Floats:
    """Numbers moved by `STEP` times their sizes away from the exact ones, and outwards or inwards, as bits say, where they are
    exact."""
    outwards = np.where(array.real < 0, -1.0, 1.0) * np.where(bits, 1.0, -1.0)
    return array + STEP * size * np.where(array > exact, 1.0, np.where(array < exact, -1.0, outwards))


def upwards(array: Floats, way: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which way each number goes."""
    size = np.abs(array)
    return (size.view(np.uint64) * np.uint64(ODD[way]) >> np.uint64(63) > 0) & (size != 1)
