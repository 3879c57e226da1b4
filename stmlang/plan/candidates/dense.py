"""The gating matrix by a dense triangular inverse over the line graph: `G = S (I - T)^-1 M`.

`E^2` memory and `E^3` work, but few and large operations: for small graphs of any shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stmlang.plan.candidate import Candidate, ConfigValue, Rejection, Stage, Strategy
from stmlang.plan.problem import Problem
from stmlang.plan.work import TRAINING_OPS, adjoint, attention_stage, gate_ops, gates_stage, needs_scalar_gates, shared_passes

NAME = "dense"
MOST_EDGES = 4096


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
    inverse = _inverse(problem)
    attention = attention_stage(problem, 1, nodes, shared_passes(problem))
    gates = gates_stage(problem)
    item = problem.accumulator
    matrices = problem.lanes * (2 * _padded(edges) ** 2 + 2 * edges * nodes + nodes * nodes) * item
    pairs = problem.batch * problem.heads * nodes * nodes * item
    ops = gate_ops(problem) + 240 * (1 if problem.axes is not None else problem.directions)
    return Candidate(
        NAME,
        (),
        (gates, inverse, attention),
        (adjoint(attention), adjoint(inverse), adjoint(gates)),
        memory_forward=problem.io_bytes + matrices + 2 * pairs,
        memory_backward=2 * problem.io_bytes + 3 * matrices + 4 * pairs,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _padded(edges: int) -> int:
    """The side of the matrix that is inverted: halves have to be equal."""
    return 1 << max(edges - 1, 0).bit_length()


def _inverse(problem: Problem) -> Stage:
    """`(I - T)^-1` put together from halves, two products of `h x h` for each pair of them; then times M, and S times that. The
    sources' rows are sparse, but multiplied out densely."""
    edges, nodes = problem.counts.edges, problem.counts.nodes
    side = _padded(edges)
    flops = 2 * side * (side * side - 1) // 3 + 2 * edges * edges * nodes + 2 * nodes * edges * nodes
    # Every level writes its inverses once as products and once put together, and reads them for the next.
    numbers = 6 * side * side + 4 * edges * nodes + 2 * nodes * nodes
    return Stage(
        "triangular inverse",
        "matmul",
        problem.lanes * flops,
        problem.lanes * numbers * problem.accumulator,
        ops=12 + 6 * side.bit_length(),
        products=problem.lanes * side,
    )


STRATEGY = Strategy(NAME, "gating matrix by a triangular inverse over edges", propose, build)
