"""Second derivatives: forward over reverse, against differences of the reference's exact first ones.

Two kinks that meet are no kink: `max(1, clip(x, 0, 1))` is 1 everywhere, and by the chain rule its derivative at one is a half.
Where that is multiplied by zero, first derivatives agree, and differences are smooth. Only drawn values lie on kinks exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import jax
import numpy as np

from stmlang.fuzz.checks.differences import STEPS, even, extrapolated, slopes_around, smooth
from stmlang.fuzz.checks.judgement import Comparison, judge
from stmlang.fuzz.checks.point import Point, Slope, Tree, as_tree, point, projected
from stmlang.fuzz.checks.programs import arguments_of, as_dtype, cotangent_of, differentiated, execute
from stmlang.fuzz.trial import Finding, NothingClaimed, Trial, Way
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.expression import Apply, Function, inside
from stmlang.scan.scan import Scan

KINKED = {Function.RELU, Function.ABS, Function.CAP, Function.MINIMUM, Function.MAXIMUM, Function.CLIP, Function.DIVISOR}


def hvp(trial: Trial, way: Way) -> Finding | None:
    """The product of the matrix of second derivatives with a random change of everything, without states. Raises NothingClaimed
    of further draws, whose values are those of kinks, where a scan has more than one kind of kink."""
    sample, op = point(trial, "float64", False), trial.compiled(way, "float64")
    if trial.draw != 0 and _kinks(sample.scan) > 1:
        raise NothingClaimed("kinks may meet at a value that was drawn")
    tangent = as_dtype(as_tree(sample.along(None)), op)
    expected = list(_expected(sample))
    computed = execute(_curved, op, arguments_of(sample, op), tangent, cotangent_of(sample, op))
    arrays = [np.asarray(array, np.float64) for array in jax.tree.leaves(computed)]
    comparisons: list[Comparison] = []
    for slope, curvature, allowed in expected:
        product, slack = projected(arrays, slope.changes, "float64")
        name = f"second derivative by {slope.name} and along everything"
        comparisons.append(Comparison(name, product, curvature, allowed + slack))
    return judge("hvp", way, comparisons)


def _kinks(scan: Scan) -> int:
    """How many functions with kinks, and leaves that are clamped, a scan's equations have."""
    expressions = {expr for gate in scan.gates for clause in gate.clauses for expr in inside(clause.value)}
    functions = sum(isinstance(expr, Apply) and expr.function in KINKED for expr in expressions)
    return functions + sum(isfinite(leaf.low) or isfinite(leaf.high) for leaf in scan.leaves)


def _curved(op: CompiledScan, tree: Tree, tangent: Tree, cotangent: Tree) -> Tree:
    def gradient(tree: Tree) -> Tree:
        return differentiated(op, tree, cotangent)[1]

    return jax.jvp(gradient, (tree,), (tangent,))[1]


def _expected(sample: Point) -> Iterator[tuple[Slope, float, float]]:
    """For each argument array, or of further draws for all at once, the second derivative along its change and along
    everything, and how far off it may be: what the extrapolation is sure of, and rounding as it enters a difference.

    Raises NothingClaimed where it is sure of none: what one slope shows may be hidden in another, where zero stands before it.
    """
    slopes = sample.slopes[: len(sample.arrays[0])] if sample.draw == 0 else sample.slopes[-1:]
    middle = np.asarray([slope.expected for slope in slopes])
    values = [np.asarray([sample.product(result) for result in row]) for row in slopes_around(sample)]
    limits, doubts = extrapolated(values, middle)
    if not (smooth(doubts, limits) and even(sample)):
        raise NothingClaimed("there is a kink within reach of the differences")
    for slope, limit, doubt in zip(slopes, limits, doubts, strict=True):
        yield slope, float(limit), float(doubt) + slope.allowed / STEPS[-1]
