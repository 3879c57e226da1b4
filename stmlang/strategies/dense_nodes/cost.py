"""The gating matrix of a rank-one transition by a dense inverse over nodes: `G = D + J (I - W)^-1 F`.

`N^2` memory and `N^3` work in few operations, whatever the number of edges: for small graphs in batches.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import inverse_cost, needs_node_states
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

NAME = "dense_nodes"
MOST_NODES = 4096


def _refuses(problem: Problem) -> str | None:
    """Gates are scalars, transitions of rank one, and the graph is small."""
    if reason := needs_scalar_gates(problem) or needs_node_states(problem):
        return reason
    if not 0 < problem.counts.nodes <= MOST_NODES:
        return f"a dense matrix over {problem.counts.nodes:,} nodes is not for it (1 to {MOST_NODES:,})"
    return None


def _cost(problem: Problem, _: Target) -> Candidate:
    nodes, counts = problem.counts.nodes, problem.counts
    inverse = _inverse(problem)
    attention, gates = attention_stage(problem, 1, nodes, shared_passes(problem)), gates_stage(problem)
    matrices = problem.lanes * 5 * (nodes + counts.entering) ** 2 * problem.accumulator
    pairs = problem.batch * problem.heads * nodes * nodes * problem.accumulator
    ops = gate_ops(problem) + 200 * (1 if problem.axes is not None else problem.directions)
    return Candidate(
        NAME,
        NoSettings(),
        (gates, inverse, attention),
        (adjoint(attention), adjoint(inverse), adjoint(gates)),
        memory_forward=problem.io_bytes + matrices + 2 * pairs,
        memory_backward=2 * problem.io_bytes + 2 * matrices + 4 * pairs,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _inverse(problem: Problem) -> Stage:
    """Four sums over edges into matrices, the inverse, and the two products beside it."""
    counts = problem.counts
    nodes, side = counts.nodes, counts.nodes + counts.entering
    flops, numbers, products = inverse_cost(nodes, max(0, counts.levels - 1))
    return Stage(
        "inverse over nodes",
        "matmul",
        problem.lanes * (flops + 2 * nodes * nodes * side + 2 * side * nodes * side),
        problem.lanes * (numbers + 12 * side * side + 8 * counts.edges) * problem.accumulator,
        ops=20 * (1 if problem.axes is not None else problem.directions),
        products=problem.lanes * (products + 2),
    )


STRATEGY = plain_strategy(NAME, "gating matrix by an inverse over nodes", _refuses, _cost, offers=Offers(gating=True))
