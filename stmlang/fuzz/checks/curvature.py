"""Second derivatives: forward over reverse, against differences of the reference's exact first ones."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from stmlang.fuzz.checks.differences import STEPS, around, even, extrapolated, slopes_at, smooth
from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import Point, Tree, as_tree, point, slope_slack
from stmlang.fuzz.checks.programs import arguments_of, as_dtype, cotangent_of, differentiated, execute
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.runtime.compiled import CompiledScan


def hvp(trial: Trial, way: Way) -> Finding | None:
    """The product of the matrix of second derivatives with a random change of everything, without states."""
    here, op = point(trial, "float64", False), trial.compiled(way, "float64")
    tangent = as_dtype(as_tree(here.along(None)), op)

    def curved(op: CompiledScan, tree: Tree, tangent: Tree, cotangent: Tree) -> Tree:
        def gradient(tree: Tree) -> Tree:
            return differentiated(op, tree, cotangent)[1]

        return jax.jvp(gradient, (tree,), (tangent,))[1]

    comparisons = list(_expected(here))
    found = execute(curved, op, arguments_of(here, op), tangent, cotangent_of(here, op))
    arrays = [np.asarray(array, np.float64) for array in jax.tree.leaves(found)]
    products = [
        Comparison(
            f"second derivative by {name} and along everything",
            float(np.sum(array * change)),
            wanted,
            allowed + slope_slack(array, change, "float64"),
        )
        for array, (name, wanted, allowed), change in zip(arrays, comparisons, _changes(here), strict=True)
    ]
    return judge("hvp", way, products)


def _changes(here: Point) -> list[np.ndarray]:
    return [change for _, change in here.changes[: len(here.arrays[0])]]


def _expected(here: Point) -> Iterator[tuple[str, float, float]]:
    """For each argument array, the second derivative along its change and along everything, and how far off it may be: what
    the extrapolation is sure of, and rounding as it enters a difference.

    Raises NotApplicable where it is sure of none: what one slope shows may be hidden in another, where zero stands before it.
    """
    count = len(here.arrays[0])
    middle = np.asarray([slope.wanted for slope in here.slopes[:count]])
    values = [np.asarray(row) for row in slopes_at(here, around(here, here.along(None)), count)]
    limits, doubts = extrapolated(values, middle)
    if not (smooth(doubts, limits) and even(here)):
        raise NotApplicable("there is a kink within reach of the differences")
    for slope, limit, doubt in zip(here.slopes[:count], limits, doubts, strict=True):
        yield slope.name, float(limit), float(doubt) + slope.allowed / STEPS[-1]
