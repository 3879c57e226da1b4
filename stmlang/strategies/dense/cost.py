"""The gating matrix by a dense inverse over the line graph: `G = S (I - T)^-1 M`.

`E^2` memory and `E^3` work, but few and large operations: for small graphs of any shape.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import inverse_cost
from stmlang.cost.target import Target
from stmlang.cost.work import (
    TRAINING_OPS,
    adjoint,
    attention_stage,
    gate_ops,
    gates_stage,
    needs_scalar_gates,
    shared_passes,
)
from stmlang.strategies.base import Offers, plain_strategy

NAME = "dense"
MOST_EDGES = 4096


def _refuses(problem: Problem) -> str | None:
    """Gates are scalars, and the graph is small."""
    if reason := needs_scalar_gates(problem):
        return reason
    if problem.counts.edges > MOST_EDGES:
        return f"a dense matrix over {problem.counts.edges:,} edges is too large (at most {MOST_EDGES:,})"
    return None


def _cost(problem: Problem, _: Target) -> Candidate:
    edges, nodes = problem.counts.edges, problem.counts.nodes
    inverse = _inverse(problem)
    attention = attention_stage(problem, 1, nodes, shared_passes(problem))
    gates = gates_stage(problem)
    item = problem.accumulator
    matrices = problem.lanes * (2 * edges * edges + 3 * edges * nodes + nodes * nodes) * item
    pairs = problem.batch * problem.heads * nodes * nodes * item
    ops = gate_ops(problem) + 240 * (1 if problem.axes is not None else problem.directions)
    return Candidate(
        NAME,
        NoSettings(),
        (gates, inverse, attention),
        (adjoint(attention), adjoint(inverse), adjoint(gates)),
        memory_forward=problem.io_bytes + matrices + 2 * pairs,
        memory_backward=2 * problem.io_bytes + 3 * matrices + 4 * pairs,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _inverse(problem: Problem) -> Stage:
    """`(I - T)^-1`, then times M, and S times that. The sources' rows are sparse, but multiplied out densely."""
    edges, nodes = problem.counts.edges, problem.counts.nodes
    flops, numbers, products = inverse_cost(edges, problem.counts.levels)
    return Stage(
        "inverse over edges",
        "matmul",
        problem.lanes * (flops + 2 * edges * edges * nodes + 2 * nodes * edges * nodes),
        problem.lanes * (numbers + 6 * edges * nodes + 3 * edges * edges + 2 * nodes * nodes) * problem.accumulator,
        ops=20 * (1 if problem.axes is not None else problem.directions),
        products=problem.lanes * (products + 2),
    )


STRATEGY = plain_strategy(NAME, "gating matrix by an inverse over edges", _refuses, _cost, offers=Offers(gating=True))
