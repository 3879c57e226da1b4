"""Attention on grids of two axes where a path turns at most once (D-mode) and decays are one for each entry of the key, or of
the value.

The scores of a corner, of the sources in its line with the targets in its column, are a product of matrices over decayed keys
and decayed queries. Work `4 N^2 d` for each direction, memory `N (X + Y) d` for the decayed operands and `N^2` for the pairs.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.lines import Lines, lines_in, needs_one_turn
from stmlang.cost.problem import CORE_GATES, Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, array_stage, costed
from stmlang.strategies.base import Needs, plain_strategy

NAME = "corners"
MOST_PAIRS = 2**31
"""Of all targets with all sources of a head."""


def _refuses(problem: Problem) -> str | None:
    """Why scores are no products over decayed keys, or values."""
    if reason := needs_one_turn(problem):
        return reason
    nodes = problem.counts.nodes
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    state = {index for name in CORE_GATES for index in problem.scan.gate(name).indices} - {"out", "in"}
    if state not in ({"key"}, {"value"}):
        named = ", ".join(sorted(state)) or "one number a head"
        return f"it needs gates that are one per entry of the key, or all of them of the value, not ({named})"
    if nodes**2 >= MOST_PAIRS:
        return f"{nodes:,} targets times {nodes:,} nodes are too many pairs to number"
    return None


def _cost(problem: Problem, target: Target) -> Candidate:
    lines, lanes, item = lines_in(problem), problem.lanes, problem.accumulator
    columns = problem.value if "value" in problem.state_indices else problem.key
    decayed = lanes * lines.nodes * (lines.size + lines.count) * columns
    pairs = lanes * lines.nodes**2
    stages = _stages(problem, target, lines, decayed, pairs)
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=problem.io_bytes + item * (2 * decayed + 2 * pairs),
        memory_backward=2 * problem.io_bytes + item * (5 * decayed + 4 * pairs),
    )


def _stages(problem: Problem, target: Target, lines: Lines, decayed: int, pairs: int) -> tuple[Stage, ...]:
    """What is carried along lines and against columns, a place after the other; the scores of each corner, and the values that
    they weigh."""
    lanes, item = problem.lanes, problem.accumulator
    steps = lines.size + lines.count
    corners = 2 * pairs * (problem.value if "value" in problem.state_indices else problem.key)
    others = 2 * pairs * (problem.key if "value" in problem.state_indices else problem.value)
    return (
        array_stage(target, "decayed operands", "vector", 3 * decayed, decayed * item, decayed * item // 2, steps=steps),
        Stage("corners", "matmul", corners, decayed * item, products=lanes * lines.nodes),
        Stage("attention", "matmul", others, 2 * lanes * lines.nodes * problem.value * item, products=lanes),
        array_stage(target, "pairs", "vector", pairs, 2 * pairs * item, pairs * item),
    )


STRATEGY = plain_strategy(NAME, "attention with keys decayed to corners", _refuses, _cost, needs=Needs(local=True))
