"""The gating matrix by a dense triangular solve over the line graph: `G = S (I - T)^-1 M`.

`E^2` memory and `E^2 N` work, but few and large operations: for small graphs, in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.plan.candidate import Candidate, ConfigValue, Rejection, Stage, Strategy
from stmlang.plan.problem import Problem
from stmlang.plan.work import TRAINING_OPS, adjoint, attention_stage, gate_ops, gates_stage, needs_scalar_gates, shared_passes

NAME = "dense"
MOST_EDGES = 4096
SOLVE_BLOCK = 16
"""A triangular solve proceeds by blocks of about this many rows, one after the other."""


def propose(problem: Problem) -> Iterable[Candidate | Rejection]:
    """One candidate for scalar gates on a small graph."""
    yield build(problem, {})


def build(problem: Problem, config: Mapping[str, ConfigValue]) -> Candidate | Rejection:
    """It has no settings."""
    if config:
        return Rejection(NAME, f"it has no setting `{next(iter(config))}`")
    if reason := needs_scalar_gates(problem):
        return Rejection(NAME, reason)
    edges, nodes = problem.counts.edges, problem.counts.nodes
    if edges > MOST_EDGES:
        return Rejection(NAME, f"a dense matrix over {edges:,} edges is too large (at most {MOST_EDGES:,})")
    solve = _solve(problem)
    attention = attention_stage(problem, 1, nodes, shared_passes(problem))
    gates = gates_stage(problem)
    item = problem.accumulator
    matrices = problem.lanes * (edges * edges + 2 * edges * nodes + nodes * nodes) * item
    pairs = problem.batch * problem.heads * nodes * nodes * item
    ops = gate_ops(problem) + 240 * (1 if problem.axes is not None else problem.directions)
    return Candidate(
        NAME,
        (),
        (gates, solve, attention),
        (adjoint(attention), adjoint(solve), adjoint(gates)),
        memory_forward=problem.io_bytes + matrices + 2 * pairs,
        memory_backward=2 * problem.io_bytes + 3 * matrices + 4 * pairs,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _solve(problem: Problem) -> Stage:
    """`(I - T) X = M` by substitution, then `S X`: the sources' rows are sparse, but multiplied out densely."""
    edges, nodes = problem.counts.edges, problem.counts.nodes
    flops = edges * edges * nodes + 2 * nodes * edges * nodes
    numbers = 3 * edges * edges + 4 * edges * nodes + 2 * nodes * nodes
    return Stage(
        "triangular solve",
        "vector",  # substitution is far from the rate of products, on every machine
        problem.lanes * flops,
        problem.lanes * numbers * problem.accumulator,
        steps=-(-edges // SOLVE_BLOCK),
        ops=12,
    )


STRATEGY = Strategy(NAME, "gating matrix by a triangular solve over edges", propose, build)
