"""The recurrence itself, level by level: a `lax.scan` whose step evaluates every node of one level at once.

Work about `8 N d^2`, memory the states alive at once, as many sequential steps as levels (wavefronts on a grid). It takes every
topology and every kind of transition.
"""

from __future__ import annotations

from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import CORE_GATES, Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import edge_profile, level_sweep, matrix_width, needs_line_edges
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, array_stage, costed
from stmlang.strategies.base import Offers, plain_strategy

NAME = "recurrent"


def _refuses(problem: Problem) -> str | None:
    """Everything whose pairs of edges can be numbered."""
    return needs_line_edges(problem) if problem.axes is None else None


def _cost(problem: Problem, target: Target) -> Candidate:
    counts, item = problem.counts, problem.accumulator
    if problem.axes is None:
        profile, held = edge_profile(problem, problem.dag), counts.edges + counts.entering
        return level_sweep(NAME, problem, target, profile, held, counts.slots)
    # Training keeps what a step reads, passes on, adds and marks, each of the size of its states, padded to the widest level.
    stored = 4 * problem.lanes * counts.levels * counts.step_edges * problem.state * item
    alive = problem.lanes * (counts.slots + counts.step_edges) * problem.state * item
    sweep, gates = _sweep(problem, target, alive), _gates(problem, target)
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=(gates, sweep),
        backward=(adjoint(sweep), adjoint(gates), Stage("kept states", "vector", 0, stored)),
        memory_forward=problem.io_bytes + gates.bytes + alive,
        memory_backward=2 * (problem.io_bytes + gates.bytes) + 2 * alive + stored,
        terms={"loops": 1},
    )


def _gates(problem: Problem, target: Target) -> Stage:
    """The gates that act on states, made for all nodes before the sweep: a decay for each key and value is as large as a state
    at every node."""
    each = sum(_numbers(problem, gate) for gate in CORE_GATES if problem.state_of(gate))
    numbers = problem.lanes * problem.counts.nodes * each
    moved = numbers * problem.accumulator
    return array_stage(target, "gates of states", "vector", numbers, moved, moved)


def _numbers(problem: Problem, gate: str) -> int:
    """Numbers of a gate at a node, for each head and direction."""
    sizes = {"key": problem.key, "value": problem.value, "track": problem.track, "write": problem.writes, "read": problem.reads}
    edges = len(problem.axes or ())
    return prod(sizes.get(index.rstrip("'"), edges) for index in problem.scan.gate(gate).indices)


def _sweep(problem: Problem, target: Target, alive: int) -> Stage:
    """Per line edge one application of a transition, per edge one source and one mark, per node the query's product. A step
    gathers the states that enter, passes them on, adds to them, marks and reads them, and scatters what leaves."""
    counts, levels = problem.counts, problem.counts.levels
    state = problem.state
    per_line_edge = 2 * state * matrix_width(problem)
    numbers = levels * (
        counts.step_line_edges * per_line_edge
        + counts.step_edges * 2 * (1 + problem.writes) * state
        + counts.width * 2 * (1 + problem.reads) * state
    )
    touched = problem.lanes * levels * counts.step_edges * state * problem.accumulator
    return array_stage(
        target,
        "wavefronts",
        "vector",
        problem.lanes * numbers,
        touched,
        alive,
        steps=levels,
        products=3 * problem.lanes * levels * counts.width,
    )


STRATEGY = plain_strategy(NAME, "sweep over topological levels", _refuses, _cost, offers=Offers(at_run_time=True, several=True))
