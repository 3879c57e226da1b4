"""The functions of the language on numpy arrays: elementwise, and over groups of entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
import numpy.typing as npt

from stmlang.scan.expression import L2_EPSILON, Function

Floats = npt.NDArray[np.float64]


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
        result = np.full((self.count, *array.shape[1:]), start)
        function.at(result, self.group, array)
        return result

    def back(self, array: Floats) -> Floats:
        """A folded array brought to the sites again."""
        return array if self.group is None else array[self.group]


def reduced(kind: Literal["sum", "mean", "max"], array: Floats, groups: Groups) -> Floats:
    """`Reduce` of an array; zero over nothing."""
    count = groups.fold(np.add, np.ones_like(array), 0.0)
    match kind:
        case "sum":
            return groups.fold(np.add, array, 0.0)
        case "mean":
            return groups.fold(np.add, array, 0.0) / np.maximum(count, 1.0)
        case "max":
            return np.where(count > 0, groups.fold(np.maximum, array, -np.inf), 0.0)


def rescaled(kind: Literal["softmax", "l1", "l2"], array: Floats, groups: Groups) -> Floats:
    """`Normalize` of an array."""
    match kind:
        case "softmax":
            raised = np.exp(array - groups.back(groups.fold(np.maximum, array, -np.inf)))
            return raised / groups.back(groups.fold(np.add, raised, 0.0))
        case "l1":
            return array / np.maximum(1.0, groups.back(groups.fold(np.add, np.abs(array), 0.0)))
        case "l2":
            return array / np.sqrt(groups.back(groups.fold(np.add, array**2, 0.0)) + L2_EPSILON)


def apply(function: Function, arguments: list[Floats]) -> Floats:
    """An elementwise function."""
    x, *rest = arguments
    match function:
        case Function.EXP:
            return np.exp(x)
        case Function.LOG:
            return np.log(x)
        case Function.SIGMOID:
            return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))
        case Function.TANH:
            return np.tanh(x)
        case Function.RELU:
            return np.maximum(x, 0)
        case Function.SOFTPLUS:
            return np.logaddexp(x, 0)
        case Function.ABS:
            return np.abs(x)
        case Function.SQRT:
            return np.sqrt(x)
        case Function.SIN:
            return np.sin(x)
        case Function.COS:
            return np.cos(x)
        case Function.CAP:
            return x / np.maximum(1, np.abs(x))
        case Function.MINIMUM:
            return np.minimum(x, rest[0])
        case Function.MAXIMUM:
            return np.maximum(x, rest[0])
        case Function.CLIP:
            return np.minimum(np.maximum(x, rest[0]), rest[1])
        case _:
            assert_never(function)
