"""The gating matrix by pairwise merges all the way, summed over directions, and one masked attention pass.

Work `4 N^2 d` and the merges, memory `N^2`, sequential steps only as many as there are merges, a logarithm of the size.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import needs_line_edges
from stmlang.cost.target import Target
from stmlang.cost.work import (
    adjoints,
    attention_stages,
    by_track,
    costed,
    merge_stage,
    merge_terms,
    needs_path_weights,
    ragged_merges,
    regular_merges,
    shared_passes,
)
from stmlang.strategies.base import Offers, plain_strategy

NAME = "parallel"
MOST_NODES = 46_340
"""Beyond, one head's matrix has 2^31 entries."""


def _refuses(problem: Problem) -> str | None:
    """Gates are numbers, or matrices on tracks."""
    if reason := needs_path_weights(problem) or needs_line_edges(problem):
        return reason
    nodes = problem.counts.nodes
    if nodes == 0:
        return "there are no nodes to build a gating matrix for"
    if nodes > MOST_NODES:
        return f"a gating matrix over {nodes:,} nodes is too large to number (at most {MOST_NODES:,})"
    return None


def _cost(problem: Problem, target: Target) -> Candidate:
    nodes, scans = problem.counts.nodes, problem.batch * problem.heads
    boxes = regular_merges(problem.axes) if problem.axes is not None else ragged_merges(problem, nodes)
    merges = list(by_track(boxes, problem.track))
    matrix, largest = merge_stage(problem, target, merges)
    stages = (matrix, *attention_stages(problem, target, scans * shared_passes(problem), nodes, nodes))
    pairs = scans * nodes * nodes * problem.accumulator
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        # A merge holds its operands (together as large as half its result) beside the result.
        memory_forward=problem.io_bytes + 2 * largest + 2 * pairs,
        memory_backward=2 * problem.io_bytes + 4 * largest + 4 * pairs,
        terms=merge_terms(problem, merges),
    )


STRATEGY = plain_strategy(NAME, "gating matrix by merges, one attention pass", _refuses, _cost, offers=Offers(gating=True))
