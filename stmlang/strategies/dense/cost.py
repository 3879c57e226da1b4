"""The gating matrix by a dense inverse over the line graph: `G = S (I - T)^-1 M`.

`E^2` memory and `E^3` work, but few and large operations: for small graphs of any shape.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import inverse_cost
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, attention_stages, costed, needs_path_weights, shared_passes
from stmlang.strategies.base import Offers, plain_strategy

NAME = "dense"
MOST_EDGES = 4096


def _refuses(problem: Problem) -> str | None:
    """Gates are numbers or matrices on tracks, and the graph is small."""
    if reason := needs_path_weights(problem):
        return reason
    edges, each = problem.counts.edges * problem.track, "" if problem.track == 1 else f" of {problem.track} tracks"
    if edges > MOST_EDGES:
        return f"a dense matrix over {problem.counts.edges:,} edges{each} is too large (at most {MOST_EDGES:,} rows)"
    return None


def _cost(problem: Problem, target: Target) -> Candidate:
    edges, nodes = problem.counts.edges * problem.track, problem.counts.nodes
    item = problem.accumulator
    matrices = problem.lanes * (2 * edges * edges + 3 * edges * nodes + nodes * nodes) * item
    scans = problem.batch * problem.heads
    pairs = scans * nodes * nodes * item
    stages = (*_inverse(problem), *attention_stages(problem, target, scans * shared_passes(problem), nodes, nodes))
    backward = 3 * matrices
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=problem.io_bytes + matrices + 2 * pairs,
        memory_backward=2 * problem.io_bytes + backward + 4 * pairs,
        terms={"programs": 1 if problem.axes is not None else problem.directions},
    )


def _inverse(problem: Problem) -> tuple[Stage, Stage]:
    """`(I - T)^-1`, then times M, and S times that. The sources' rows are sparse, but multiplied out densely."""
    edges, nodes, lanes, item = problem.counts.edges * problem.track, problem.counts.nodes, problem.lanes, problem.accumulator
    flops, numbers, products = inverse_cost(edges, problem.counts.levels)
    beside = 2 * edges * edges * nodes + 2 * nodes * edges * nodes
    moved = 2 * edges * nodes + edges * edges + nodes * nodes
    return (
        Stage("inverse over edges", "matmul", lanes * flops, lanes * numbers * item, products=lanes * products),
        Stage("sources and marks", "matmul", lanes * beside, lanes * moved * item, products=2 * lanes),
    )


STRATEGY = plain_strategy(NAME, "gating matrix by an inverse over edges", _refuses, _cost, offers=Offers(gating=True))
