"""The gating matrix of a rank-one transition by a dense inverse over nodes: `G = D + J (I - W)^-1 F`.

`N^2` memory and `N^3` work in few operations, whatever the number of edges: for small graphs in batches.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import inverse_cost, needs_node_states
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, attention_stages, costed, needs_scalar_gates, shared_passes
from stmlang.strategies.base import Needs, Offers, plain_strategy

NAME = "dense_nodes"
MOST_NODES = 4096


def _refuses(problem: Problem) -> str | None:
    """Gates are scalars, transitions of rank one, and the graph is small."""
    if reason := needs_scalar_gates(problem) or needs_node_states(problem):
        return reason
    if not 0 < problem.counts.nodes <= MOST_NODES:
        return f"a dense matrix over {problem.counts.nodes:,} nodes is not for it (1 to {MOST_NODES:,})"
    return None


def _cost(problem: Problem, target: Target) -> Candidate:
    nodes, counts = problem.counts.nodes, problem.counts
    matrices = problem.lanes * 5 * (nodes + counts.entering) ** 2 * problem.accumulator
    scans = problem.batch * problem.heads
    pairs = scans * nodes * nodes * problem.accumulator
    stages = (*_inverse(problem), *attention_stages(problem, target, scans * shared_passes(problem), nodes, nodes))
    backward = 2 * matrices
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
    """The inverse, and beside it four sums over edges into matrices and two products."""
    counts, lanes, item = problem.counts, problem.lanes, problem.accumulator
    nodes, side = counts.nodes, counts.nodes + counts.entering
    flops, numbers, products = inverse_cost(nodes, max(0, counts.levels - 1))
    beside = 2 * nodes * nodes * side + 2 * side * nodes * side
    moved = 4 * side * side + counts.edges
    return (
        Stage("inverse over nodes", "matmul", lanes * flops, lanes * numbers * item, products=lanes * products),
        Stage("sources and marks", "matmul", lanes * beside, lanes * moved * item, products=2 * lanes),
    )


STRATEGY = plain_strategy(
    NAME, "gating matrix by an inverse over nodes", _refuses, _cost, offers=Offers(gating=True), needs=Needs(factors=True)
)
