"""The oracles against each other: who watches the watchers. Nothing here is compiled, so one way a trial is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stmlang.fuzz.checks.differences import STEPS, even, extrapolated, smooth, values_around
from stmlang.fuzz.checks.judgement import Comparison, judge, of_results
from stmlang.fuzz.checks.point import Point, point
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.graph.shapes import output_shape
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.oracle.recurrence import apart, normalized, scales, with_ones
from stmlang.scan.scan import own_inputs
from stmlang.strategies.registry import reference_strategy

FEW_EDGES, FEW_PATHS = 300, 3000
"""Sizes up to which a dense system is solved, and paths are followed one by one."""


def oracles(trial: Trial, way: Way) -> Finding | None:
    """The recurrence against the dense solve and the sum over paths, where gates are numbers; its exact derivative against
    differences. Said once, for the reference strategy."""
    if way.strategy != reference_strategy().name:
        raise NotApplicable("oracles are compared once a trial")
    with_states, without = point(trial, "float64", True), point(trial, "float64", False)
    return judge("oracles", way, [*_solve(with_states), *_paths(without), *_differences(with_states)])


def scalar(sample: Point) -> bool:
    """Whether the gates leave the key and value axes alone, as two of the oracles need."""
    indices = {index for name in ("source", "transition", "mark", "direct") for index in sample.scan.gate(name).indices}
    return not indices & {"key", "key'", "value", "value'"}


def _solve(sample: Point) -> Iterator[Comparison]:
    at, edges = sample.at, sample.dag.edge_count
    if not scalar(sample) or edges > FEW_EDGES:
        return
    solution = solved(sample.scan, sample.dag, at.q, at.k, at.v, at.gates, at.initial)
    for comparison in of_results((solution.h, solution.state), sample.result, sample.allowed):
        # Elimination adds up as many terms as there are edges.
        yield Comparison(
            f"{comparison.name} by the dense solve", comparison.computed, comparison.expected, comparison.allowed * (edges + 1)
        )


def _paths(sample: Point) -> Iterator[Comparison]:
    if not scalar(sample) or paths(sample) > FEW_PATHS or sample.scan.steps > 1:
        return
    at = sample.at
    matrix = gating_matrix(sample.scan, sample.dag, at.q, at.k, at.v, at.gates, gating_by_paths)
    every = evaluate_gates(sample.scan, sample.dag, at.q, at.k, at.v, at.gates)
    nodes, concatenated = sample.dag.node_count, sample.scan.combine == "concat"
    each = every if concatenated or own_inputs(sample.scan) else every[:1]

    def heads(pick: Callable[[DirectionGates], Floats]) -> Floats:
        return np.concatenate([apart(pick(values)) for values in each], axis=1)

    query, key = heads(lambda values: values.query), heads(lambda values: values.key)
    value = heads(lambda values: with_ones(sample.scan, values.value))
    gating = matrix.reshape(nodes, nodes, query.shape[1], sample.scan.writes, sample.scan.reads)
    h = np.einsum("mhrk,nhwk,nmhwr,nhwv->mhrv", query, key, gating, value, optimize=True)
    if not concatenated:
        h = h.reshape(nodes, len(each), sample.scan.heads, *h.shape[2:]).sum(axis=1)
    h = normalized(sample.scan, h, scales(sample.scan, every)).reshape(output_shape(sample.scan, sample.dag))
    yield Comparison("result by paths", h, sample.result.h, sample.allowed.h)


def paths(sample: Point) -> float:
    """How many paths of edges there are, in the sense of the declared edges."""
    before = np.zeros((sample.dag.edge_count, sample.dag.edge_count))
    before[sample.dag.line_edges[:, 0], sample.dag.line_edges[:, 1]] = 1
    count = total = np.ones(sample.dag.edge_count)
    while count.any() and total.sum() <= FEW_PATHS:
        count = count @ before
        total = total + count
    return float(total.sum())


def _differences(sample: Point) -> Iterator[Comparison]:
    """Central differences, with what they are sure of; nothing, if there is a kink within their reach. What one number shows of
    it may be hidden in another, where zero stands before it."""
    derivative, allowed = sample.derivatives[-1]
    limit, doubt = extrapolated([result.h.real for result in values_around(sample)], sample.result.h.real)
    if smooth(doubt, limit) and even(sample):
        yield Comparison("derivative by differences", limit, derivative.h, doubt + allowed.h / STEPS[-1])
