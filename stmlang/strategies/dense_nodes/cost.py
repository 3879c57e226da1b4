"""The gating matrix of a rank-one transition by a dense inverse over nodes: `G = D + J (I - W)^-1 F`.

`N^2` memory and `N^3` work in few operations, whatever the number of edges: for small graphs in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.cost.candidate import Candidate, ConfigValue, Rejection, Stage, Strategy
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import inverse_cost, needs_node_states
from stmlang.cost.work import (
    TRAINING_OPS,
    adjoint,
    attention_stage,
    gate_ops,
    gates_stage,
    needs_scalar_gates,
    shared_passes,
    takes_no_settings,
)

NAME = "dense_nodes"
MOST_NODES = 4096


def propose(problem: Problem) -> Iterable[Candidate | Rejection]:
    """One candidate for scalar gates on a small graph."""
    yield build(problem, {})


def build(problem: Problem, config: Mapping[str, ConfigValue]) -> Candidate | Rejection:
    """It has no settings."""
    if reason := takes_no_settings(config):
        return Rejection(NAME, reason)
    if reason := needs_scalar_gates(problem) or needs_node_states(problem):
        return Rejection(NAME, reason)
    nodes, counts = problem.counts.nodes, problem.counts
    if not 0 < nodes <= MOST_NODES:
        return Rejection(NAME, f"a dense matrix over {nodes:,} nodes is not for it (1 to {MOST_NODES:,})")
    inverse = _inverse(problem)
    attention, gates = attention_stage(problem, 1, nodes, shared_passes(problem)), gates_stage(problem)
    matrices = problem.lanes * 5 * (nodes + counts.entering) ** 2 * problem.accumulator
    pairs = problem.batch * problem.heads * nodes * nodes * problem.accumulator
    ops = gate_ops(problem) + 200 * (1 if problem.axes is not None else problem.directions)
    return Candidate(
        NAME,
        (),
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


STRATEGY = Strategy(NAME, "gating matrix by an inverse over nodes", propose, build)
