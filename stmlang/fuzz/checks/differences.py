"""Differences of the reference, extrapolated: for second derivatives, and to check first ones."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from stmlang.fuzz.checks.point import Array, Point, as_tree
from stmlang.oracle.copies import copies, side_by_side, taken_apart
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import ReferenceResult, reference

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


def even(here: Point) -> bool:
    """Whether nothing happens nearer than the steps: the derivatives on both sides have the point's own as the limit of their
    mean. (One that is wrong everywhere alike has, too, and is left to whoever asks.)"""
    change, own = here.along(None), here.derivatives[-1][0].h.real
    points = around(here, change)
    at, along = (side_by_side(here.scan, here.dag, part) for part in (points, [change] * len(points)))
    found = derivative(copies(here.scan, len(points)), here.dag, at, along)
    sides = [part.h.real for part in taken_apart(here.scan, len(points), found)]
    rough, fine = _halved([(sides[k] + sides[k + 1]) / 2 for k in range(0, len(sides), 2)], 2)
    return smooth(np.abs((16 * fine - rough) / 15 - own), own)


def _halved(values: Sequence[Array], power: int) -> tuple[Array, Array]:
    """What is found at one step and half of it, without the error in that power of the step: at the first and second pair."""
    first, second, third = values
    factor = 2.0**power
    return (factor * second - first) / (factor - 1), (factor * third - second) / (factor - 1)


def around(here: Point, change: Arguments) -> list[Arguments]:
    """The points that differences are taken between."""
    return [moved(here.at, change, sign * step) for step in STEPS for sign in (1, -1)]


def values_at(here: Point, points: Sequence[Arguments]) -> list[ReferenceResult]:
    """The reference at several points."""
    at = side_by_side(here.scan, here.dag, points)
    found = reference(copies(here.scan, len(points)), here.dag, at.q, at.k, at.v, at.gates, at.initial)
    return taken_apart(here.scan, len(points), found)


def slopes_at(here: Point, points: Sequence[Arguments], count: int) -> list[list[float]]:
    """For each point, the derivative of the cotangent's product along the first `count` changes."""
    along = [here.along(number) for number in range(count)]
    at, changes = (
        side_by_side(here.scan, here.dag, part) for part in ([p for p in points for _ in along], along * len(points))
    )
    found = derivative(copies(here.scan, count * len(points)), here.dag, at, changes)
    products = [here.product(part) for part in taken_apart(here.scan, count * len(points), found)]
    return [products[number * count : (number + 1) * count] for number in range(len(points))]
