"""Differences of the reference, extrapolated: for second derivatives, and to check first ones."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from stmlang.fuzz.checks.point import Array, Point, Together, as_tree
from stmlang.fuzz.memory import remembered
from stmlang.oracle.derivative import Arguments
from stmlang.oracle.recurrence import ReferenceResult
from stmlang.oracle.value_sets import derivatives, references

STEPS = (1e-2, 5e-3, 2.5e-3)
"""Each half of the one before. Central differences have an error in even powers of the step; two extrapolations take the first
two away."""
SMOOTH = 1e-4
"""How doubtful an extrapolation may be beside the largest number."""


def moved(at: Arguments, change: Arguments, by: float) -> Arguments:
    """Arguments moved along a change."""

    def shifted(array: Array, change: Array) -> Array:
        return array + by * change

    return Arguments(*jax.tree.map(shifted, as_tree(at), as_tree(change)))


def extrapolated(values: Sequence[Array], middle: Array) -> tuple[Array, Array]:
    """The derivative as the limit of central differences of the values `around` a point, and how far off it may be: ten times
    what the last step of the extrapolation changed, and a thousand times what the derivatives on the two sides differ by.

    At a kink central differences have a limit too, the mean of both sides; where several meet, the derivative need not lie
    anywhere near it.
    """
    sides = [(values[2 * number], values[2 * number + 1], step) for number, step in enumerate(STEPS)]
    rough, fine = _halved([(after - before) / (2 * step) for after, before, step in sides], 2)
    bend = _halved([(after - middle - (middle - before)) / step for after, before, step in sides], 1)
    return (16 * fine - rough) / 15, 10 * np.abs(fine - rough) + 1000 * np.abs(8 * bend[1] - bend[0]) / 7


def smooth(doubt: Array, limit: Array) -> bool:
    """Whether no doubt matters beside the largest number. Values at the steps alone can be those of a smooth function where
    another one bends between them, so one doubt spoils all."""
    return bool(np.all(doubt <= SMOOTH * np.max(np.abs(limit), initial=0.0)))


def even(sample: Point) -> bool:
    """Whether nothing happens nearer than the steps: the derivatives on both sides have the point's own as the limit of their
    mean. (One that is wrong everywhere alike has, too, and is left to whoever asks.)"""
    own = sample.derivatives[-1][0].h.real
    sides = [result.h.real for result in _turned(sample.together)[sample.place]]
    rough, fine = _halved([(sides[k] + sides[k + 1]) / 2 for k in range(0, len(sides), 2)], 2)
    return smooth(np.abs((16 * fine - rough) / 15 - own), own)


def _halved(values: Sequence[Array], power: int) -> tuple[Array, Array]:
    """What is found at one step and half of it, without the error in that power of the step: at the first and second pair."""
    first, second, third = values
    factor = 2.0**power
    return (factor * second - first) / (factor - 1), (factor * third - second) / (factor - 1)


def around(sample: Point, change: Arguments) -> list[Arguments]:
    """The points that differences are taken between."""
    return [moved(sample.at, change, sign * step) for step in STEPS for sign in (1, -1)]


def values_around(sample: Point) -> list[ReferenceResult]:
    """The reference at the points that differences along everything are taken between."""
    return references(sample.scan, sample.dag, around(sample, sample.along(None)))


def slopes_around(sample: Point) -> list[list[ReferenceResult]]:
    """At each of the same points, the derivatives by each argument array, or, of further draws, along everything."""
    if sample.draw != 0:
        return [[result] for result in _turned(sample.together)[sample.place]]
    along = [sample.along(number) for number in range(len(sample.arrays[0]))]
    points = around(sample, sample.along(None))
    sets = [point for point in points for _ in along]
    each = iter(derivatives(sample.scan, sample.dag, sets, along * len(points)))
    return [[next(each) for _ in along] for _ in points]


@remembered(2)
def _turned(together: Together) -> dict[int, list[ReferenceResult]]:
    """By the place of each point, the derivatives along everything at the points around it."""
    known = [point for point in together.points if together.derivatives[point.place] is not None]
    along = [point.along(None) for point in known]
    sets = [around(point, change) for point, change in zip(known, along, strict=True)]
    changes = [change for change, points in zip(along, sets, strict=True) for _ in points]
    each = iter(derivatives(together.scan, together.dag, [point for points in sets for point in points], changes))
    return {point.place: [next(each) for _ in points] for point, points in zip(known, sets, strict=True)}
