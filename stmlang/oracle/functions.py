"""The functions of the language on numpy arrays: elementwise, and over groups of entries.

Complex arguments are allowed: what depends on a sign or an order goes by the real part, so that every function is analytic
on each side. A change of `1e-30j` along some direction then yields, in the imaginary part, the derivative to the last digit.

At a kink there is no derivative, and what SPEC.md says stands for it: equal numbers that are the largest or the smallest share
it, `relu` is flat at zero, `abs` is not, and bounds belong to what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.scan.expression import L2_EPSILON, SLACK, SQUARINGS, Function

Floats = npt.NDArray[np.inexact[Any]]
"""float64, or complex128 where an argument is complex."""


def floats(array: npt.ArrayLike) -> Floats:
    """An array in double precision."""
    numbers = np.asarray(array)
    return numbers.astype(np.complex128 if np.iscomplexobj(numbers) else np.float64)


def times(a: Floats, b: Floats) -> Floats:
    """A product whose real part is that of the real parts. The one of complex numbers lacks the product of the imaginary parts,
    which is all that is left of it where a factor is zero, and would decide on which side of a kink that is."""
    if not (np.iscomplexobj(a) and np.iscomplexobj(b)):
        return a * b
    return _complex(a.real * b.real, a.real * b.imag + a.imag * b.real)


def over(a: Floats, b: Floats) -> Floats:
    """A quotient, in the same way."""
    if not np.iscomplexobj(b):
        return a / b
    real = a.real / b.real
    return _complex(real, (a.imag - real * b.imag) / b.real)


def _complex(real: Floats, imag: Floats) -> Floats:
    number = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    number.real, number.imag = real, imag
    return number


@dataclass(frozen=True, eq=False)
class Groups:
    """What a reduction ranges over: an axis, or the sites (along axis 0) of each of `count` groups."""

    axis: int
    group: npt.NDArray[np.int64] | None
    count: int

    def fold(self, function: np.ufunc, array: Floats, start: float) -> Floats:
        """`function` folded over each group, `start` where there is nothing; the axis is kept."""
        if self.group is None:
            return function.reduce(array, axis=self.axis, keepdims=True, initial=start)
        result = np.full((self.count, *array.shape[1:]), start, dtype=array.dtype)
        function.at(result, self.group, array)
        return result

    def back(self, array: Floats) -> Floats:
        """A folded array brought to the sites again."""
        return array if self.group is None else array[self.group]


Reduction = Literal["sum", "mean", "max"]
"""What `Reduce` makes of a group."""


def reduced(kind: Reduction, array: Floats, groups: Groups) -> Floats:
    """`Reduce` of an array; zero over nothing."""
    count = groups.fold(np.add, np.ones(array.shape), 0.0).real
    match kind:
        case "sum":
            return groups.fold(np.add, array, 0.0)
        case "mean":
            return groups.fold(np.add, array, 0.0) / np.maximum(count, 1.0)
        case "max":
            return np.where(count > 0, largest(array, groups), 0.0)


def largest(array: Floats, groups: Groups) -> Floats:
    """The largest real part of each group; its imaginary part is the mean of those that have it."""
    maxima = groups.fold(np.maximum, array.real, -np.inf)
    if not np.iscomplexobj(array):
        return maxima
    first = (array.real == groups.back(maxima)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return maxima + 1j * groups.fold(np.add, first * array.imag, 0.0) / groups.fold(np.add, first, 0.0)


Rescaling = Literal["softmax", "l1", "l2"]
"""What `Normalize` does to a group."""


def rescaled(kind: Rescaling, array: Floats, groups: Groups) -> Floats:
    """`Normalize` of an array."""
    match kind:
        case "softmax":
            raised = np.exp(array - groups.back(groups.fold(np.maximum, array.real, -np.inf)))
            return over(raised, groups.back(groups.fold(np.add, raised, 0.0)))
        case "l1":
            return over(array, larger(np.ones(()), groups.back(groups.fold(np.add, absolute(array), 0.0))))
        case "l2":
            return over(array, np.sqrt(groups.back(groups.fold(np.add, array**2, 0.0)) + L2_EPSILON))


def larger(a: Floats, b: Floats) -> Floats:
    """The one with the larger real part, `a` if they are equal."""
    return np.where((a.real >= b.real) | np.isnan(a), a, b)


def smaller(a: Floats, b: Floats) -> Floats:
    """The one with the smaller real part, `a` if they are equal."""
    return np.where((a.real <= b.real) | np.isnan(a), a, b)


def shared(chosen: Floats, a: Floats, b: Floats) -> Floats:
    """What was chosen of `a` and `b`; the mean where they are equal."""
    return np.where(a.real == b.real, a / 2 + b / 2, chosen)


def absolute(a: Floats) -> Floats:
    """`a` or `-a`, whichever has the larger real part."""
    return np.where(a.real < 0, -a, a)


def sigmoid(a: Floats) -> Floats:
    """`1 / (1 + exp(-a))`, from the side on which nothing overflows."""
    small = np.exp(-absolute(a))
    return np.where(a.real >= 0, 1 / (1 + small), small / (1 + small))


def divisor(a: Floats, slack: float) -> Floats:
    """The argument where it is larger than one by more than the slack, else one."""
    return np.where((a.real > 1 + slack) | np.isnan(a), a, 1.0)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Norms `(...)` as `Spectral` defines them, and what their derivatives are made of: `weights` `(..., s)` of singular
    vectors, the columns of `left` and the rows of `right`."""

    norm: Floats
    left: Floats
    weights: Floats
    right: Floats

    def along(self, change: Floats) -> Floats:
        """By how much each singular value moves along a change of the matrices."""
        return np.einsum("...rs,...rc,...sc->...s", self.left, change, self.right)


def spectrum(matrices: Floats) -> Spectrum:
    """The norms of the real parts of matrices `(..., row, column)`, by singular values. NaN where an entry is not finite."""
    real = matrices.real
    known = np.asarray(np.isfinite(real).all((-2, -1)))
    left, values, right = np.linalg.svd(np.where(known[..., None, None], real, 0.0))
    largest = values[..., :1]
    ratios = values / np.where(largest == 0, 1.0, largest)
    total = np.where(largest == 0, 1.0, np.sum(ratios**SCHATTEN, axis=-1, keepdims=True))
    weights = ratios ** (SCHATTEN - 1) / total ** (1 - 1 / SCHATTEN)
    norm = (largest * total ** (1 / SCHATTEN))[..., 0]
    return Spectrum(np.where(known, norm, np.nan), left, np.where(known[..., None], weights, np.nan), right)


SCHATTEN = 2.0 * (2.0**SQUARINGS + 1)
"""The power of singular values that `Spectral` adds up."""


SQUARED_STEP = 1e-50
"""What is smaller in a number that has a derivative is zero, and flat: the square of a zero that moves by a complex step."""


def apply(function: Function, arguments: list[Floats]) -> Floats:
    """An elementwise function."""
    x, *others = arguments
    match function:
        case Function.EXP:
            return np.exp(x)
        case Function.LOG:
            return np.log(x)
        case Function.SIGMOID:
            return sigmoid(x)
        case Function.TANH:
            return np.tanh(x)
        case Function.RELU:
            return np.where((x.real > 0) | np.isnan(x), x, 0)
        case Function.SOFTPLUS:
            return larger(x, np.zeros(())) + np.log1p(np.exp(-absolute(x)))
        case Function.ABS:
            return absolute(x)
        case Function.SQRT:
            return np.sqrt(np.where(np.abs(x.real) < SQUARED_STEP, 0.0, x)) if np.iscomplexobj(x) else np.sqrt(x)
        case Function.SIN:
            return np.sin(x)
        case Function.COS:
            return np.cos(x)
        case Function.CAP:
            return x / larger(np.ones(()), absolute(x))
        case Function.MINIMUM:
            return shared(smaller(x, others[0]), x, others[0])
        case Function.MAXIMUM:
            return shared(larger(x, others[0]), x, others[0])
        case Function.DIVISOR:
            return divisor(x, SLACK)
        case Function.CLIP:
            return smaller(larger(x, others[0]), others[1])
        case _:
            assert_never(function)
