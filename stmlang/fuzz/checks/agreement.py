"""The oracles against each other: who watches the watchers. Nothing here is compiled, so one way a trial is enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stmlang.fuzz.checks.differences import STEPS, even, extrapolated, smooth, values_around
from stmlang.fuzz.checks.judgement import Comparison, judge, of_results
from stmlang.fuzz.checks.point import Point, point
from stmlang.fuzz.trial import Finding, NotApplicable, Trial, Way
from stmlang.graph.shapes import output_shape
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import evaluate_gates
from stmlang.oracle.recurrence import normalized, with_ones
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


def scalar(here: Point) -> bool:
    """Whether the gates leave the key and value axes alone, as two of the oracles need."""
    found = {index for name in ("source", "transition", "mark", "direct") for index in here.scan.gate(name).indices}
    return not found & {"key", "key'", "value", "value'"}


def _solve(here: Point) -> Iterator[Comparison]:
    at, edges = here.at, here.dag.edge_count
    if not scalar(here) or edges > FEW_EDGES:
        return
    found = solved(here.scan, here.dag, at.q, at.k, at.v, at.gates, at.initial)
    for one in of_results((found.h, found.state), here.result, here.allowed):
        # Elimination adds up as many terms as there are edges.
        yield Comparison(f"{one.name} by the dense solve", one.found, one.wanted, one.allowed * (edges + 1))


def _paths(here: Point) -> Iterator[Comparison]:
    if not scalar(here) or paths(here) > FEW_PATHS:
        return
    at = here.at
    matrix = gating_matrix(here.scan, here.dag, at.q, at.k, at.v, at.gates, gating_by_paths)
    values = evaluate_gates(here.scan, here.dag, at.q, at.k, at.v, at.gates)[0]
    nodes, repeat = here.dag.node_count, len(here.scan.directions) if here.scan.combine == "concat" else 1

    def heads(array: Floats) -> Floats:
        return np.tile(array, (1, repeat, 1))

    query, key, value = heads(values.query), heads(values.key), heads(with_ones(here.scan, values.value))
    gating = matrix.reshape(nodes, nodes, matrix.shape[-1])
    h = np.einsum("mhk,nhk,nmh,nhv->mhv", query, key, gating, value, optimize=True)
    h = normalized(here.scan, h).reshape(output_shape(here.scan, here.dag))
    yield Comparison("result by paths", h, here.result.h, here.allowed.h)


def paths(here: Point) -> float:
    """How many paths of edges there are, in the sense of the declared edges."""
    before = np.zeros((here.dag.edge_count, here.dag.edge_count))
    before[here.dag.line_edges[:, 0], here.dag.line_edges[:, 1]] = 1
    count = total = np.ones(here.dag.edge_count)
    while count.any() and total.sum() <= FEW_PATHS:
        count = count @ before
        total = total + count
    return float(total.sum())


def _differences(here: Point) -> Iterator[Comparison]:
    """Central differences, with what they are sure of; nothing, if there is a kink within their reach. What one number shows of
    it may be hidden in another, where zero stands before it."""
    wanted, allowed = here.derivatives[-1]
    limit, doubt = extrapolated([result.h.real for result in values_around(here)], here.result.h.real)
    if smooth(doubt, limit) and even(here):
        yield Comparison("derivative by differences", limit, wanted.h, doubt + allowed.h / STEPS[-1])
