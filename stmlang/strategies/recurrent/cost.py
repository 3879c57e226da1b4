"""The recurrence itself, level by level: a `lax.scan` whose step evaluates every node of one level at once.

Work about `8 N d^2`, memory the states alive at once, as many sequential steps as levels (wavefronts on a grid). It takes every
topology and every kind of transition.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import EDGE_PASSES, edge_profile, level_sweep, matrix_width, needs_line_edges
from stmlang.cost.target import Target
from stmlang.cost.work import TRAINING_OPS, adjoint, gate_ops, gates_stage
from stmlang.strategies.base import Offers, plain_strategy

NAME = "recurrent"
STATE_PASSES = 12
"""How often a step of a grid's wavefronts reads or writes numbers of its states: measured, against the bandwidth, on a CPU."""


def _refuses(problem: Problem) -> str | None:
    """Everything whose pairs of edges can be numbered."""
    return needs_line_edges(problem) if problem.axes is None else None


def _cost(problem: Problem, _: Target) -> Candidate:
    counts, item = problem.counts, problem.accumulator
    if problem.axes is None:
        profile, held = edge_profile(problem, problem.dag), counts.edges + counts.entering
        return level_sweep(NAME, problem, profile, EDGE_PASSES, held, counts.slots)
    sweep = _sweep(problem)
    # Training keeps what a step reads, passes on, adds and marks, each of the size of its states, padded to the widest level.
    stored = 4 * problem.lanes * counts.levels * counts.step_edges * problem.state * item
    alive = problem.lanes * (counts.slots + counts.step_edges) * problem.state * item
    gates = gates_stage(problem)
    ops = gate_ops(problem) + 240
    return Candidate(
        NAME,
        NoSettings(),
        (gates, sweep),
        (_adjoint_sweep(sweep, stored), adjoint(gates)),
        memory_forward=problem.io_bytes + alive,
        memory_backward=2 * problem.io_bytes + 2 * alive + stored,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _sweep(problem: Problem) -> Stage:
    """Per line edge one application of a transition, per edge one source and one mark, per node the query's product."""
    counts, levels = problem.counts, problem.counts.levels
    state = problem.state
    per_line_edge = 2 * state * matrix_width(problem)
    numbers = levels * (counts.step_line_edges * per_line_edge + counts.step_edges * 5 * state + counts.width * 4 * state)
    # A step gathers the states that enter, passes them on, adds to them, marks and reads them, and scatters what leaves.
    touched = levels * counts.step_edges * state * STATE_PASSES
    return Stage(
        "level sweep",
        "vector",
        problem.lanes * numbers,
        problem.lanes * touched * problem.accumulator + problem.io_bytes,
        steps=levels,
        ops=20,
        products=3 * problem.lanes * levels * counts.width,
    )


def _adjoint_sweep(sweep: Stage, stored: int) -> Stage:
    """The reversed recurrence, and a product over the state for every gate's gradient."""
    return Stage(
        "level sweep, adjoint",
        "vector",
        3 * sweep.flops,
        2 * sweep.bytes + 2 * stored,
        steps=sweep.steps,
        ops=40,
        products=2 * sweep.products,
    )


STRATEGY = plain_strategy(NAME, "sweep over topological levels", _refuses, _cost, offers=Offers(at_run_time=True))
