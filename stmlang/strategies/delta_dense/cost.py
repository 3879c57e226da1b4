"""The delta rule on any DAG: path weights between carriers, a unit triangular system a direction, attention with what it gives.

With `C` carriers, the nodes or their outgoing edges, the work is `C^2 (2 d + d + 2 d)` for scores, system and reading, for each
direction, beside the paths; memory `C^2`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.delta_rule import delta_gates
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import inverse_cost, needs_line_edges, triangle_rows
from stmlang.cost.target import Target
from stmlang.cost.work import Merge, adjoints, array_stage, costed, merge_stage, merge_terms, regular_merges
from stmlang.strategies.base import Needs, plain_strategy

NAME = "delta_dense"
MOST_CARRIERS = 8192


def _refuses(problem: Problem) -> str | None:
    rule = delta_gates(problem)
    if isinstance(rule, str):
        return rule
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    if reason := needs_line_edges(problem):
        return reason
    carriers = _carriers(problem)
    if carriers > MOST_CARRIERS:
        return f"a matrix over {carriers:,} carriers is too large (at most {MOST_CARRIERS:,})"
    return None


def _shared(problem: Problem) -> bool:
    rule = delta_gates(problem)
    return not isinstance(rule, str) and rule.sharing is not None


def _carriers(problem: Problem) -> int:
    """Nodes, or the edges that leave them."""
    counts = problem.counts
    if _shared(problem):
        return counts.nodes
    return counts.nodes * len(problem.axes) if problem.axes is not None else counts.edges


def _cost(problem: Problem, target: Target) -> Candidate:
    nodes, carriers, item = problem.counts.nodes, _carriers(problem), problem.accumulator
    lanes = problem.lanes
    matrices = lanes * carriers * (carriers + nodes) * item
    paths, held = _paths(problem, target)
    system = _system(problem, target, carriers)
    pairs = lanes * nodes * carriers
    reading = (
        array_stage(target, "reading, pairs", "vector", pairs, pairs * item, pairs * item),
        Stage("reading", "matmul", 2 * pairs * problem.value, 2 * lanes * carriers * problem.value * item, products=lanes),
    )
    turned = Stage("operands", "vector", 0, 2 * problem.io_bytes * problem.directions)
    stages = (paths, turned, *system, *reading)
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=2 * problem.io_bytes * problem.directions + held + 3 * matrices,
        memory_backward=4 * problem.io_bytes * problem.directions + 4 * held + 6 * matrices,
        terms=_terms(problem),
    )


def _paths(problem: Problem, target: Target) -> tuple[Stage, int]:
    """How carriers reach each other and the nodes that read, and the bytes that are held of it."""
    counts, carriers, item, lanes = problem.counts, _carriers(problem), problem.accumulator, problem.lanes
    if problem.axes is not None:
        return _runs_of_planes(problem, target) if _shared(problem) else merge_stage(problem, target, _merges(problem))
    side = counts.nodes if _shared(problem) else counts.edges
    depth = max(0, counts.levels - 1)
    flops, numbers, products = inverse_cost(side, depth)
    flops += 2 * side * side * counts.nodes
    numbers += 4 * side * (side + counts.nodes)
    stage = Stage("build gating matrix", "matmul", lanes * flops, lanes * numbers * item, products=lanes * (products + 1))
    return stage, lanes * item * (carriers * (carriers + counts.nodes) + 3 * side * side)


def _runs_of_planes(problem: Problem, target: Target) -> tuple[Stage, int]:
    """Paths between the nodes of a grid, whose planes are joined to runs twice as long each time, axis by axis from the last to
    the first; and what nodes read of those before them."""
    axes, nodes, lanes, item = problem.axes or (), problem.counts.nodes, problem.lanes, problem.accumulator
    flops, numbers, products = 0, (len(axes) + 2) * nodes * nodes, 0
    for axis, size in enumerate(axes):
        width, run = prod(axes[axis + 1 :]), 1
        while run < size:
            joined = prod(axes[:axis]) * -(-size // (2 * run))
            flops += 2 * joined * width * (run * width) ** 2
            numbers += 2 * joined * (2 * run * width) ** 2
            products += joined if width > 1 else 0
            run *= 2
    held = 2 * lanes * nodes * nodes * item
    work = (lanes * flops, lanes * numbers * item, held)
    return array_stage(target, "build gating matrix", "matmul", *work, products=lanes * products), held


def _merges(problem: Problem) -> Iterator[Merge]:
    """Merges of a grid whose nodes have a row for each port, and columns for these and for what reads."""
    axes = problem.axes or ()
    yield from (replace(merge, rows=len(axes), columns=len(axes) + 1) for merge in regular_merges(axes))


def _system(problem: Problem, target: Target, carriers: int) -> tuple[Stage, ...]:
    """Scores of what is erased and read, what the former weigh, and the triangular system by blocks: the inverses on the
    diagonal, and the products with what is solved."""
    lanes, item, key, value = problem.lanes, problem.accumulator, problem.key, problem.value
    rows = triangle_rows(carriers)
    blocks = -(-carriers // rows)
    flops, numbers, products = inverse_cost(rows, rows)
    pairs = lanes * carriers * carriers
    # Directions of a grid are given scores that are made once.
    nodes, made = problem.counts.nodes, lanes if problem.axes is None else problem.batch * problem.heads
    scores = Stage("scores", "matmul", 4 * made * nodes * nodes * key, 4 * made * nodes * key * item, products=2 * made)
    weights = array_stage(target, "scores, pairs", "vector", 3 * pairs, pairs * item, pairs * item)
    inverses = Stage(
        "inverses", "matmul", lanes * blocks * flops, lanes * blocks * numbers * item, products=lanes * blocks * products
    )
    solved = Stage(
        "system",
        "matmul",
        pairs * value + 2 * lanes * carriers * rows * value,
        (pairs // 2 + 4 * lanes * carriers * value) * item,
        products=2 * lanes * blocks,
    )
    return scores, weights, inverses, solved


def _terms(problem: Problem) -> dict[str, int]:
    if problem.axes is None:
        return {"graphs": problem.directions}
    return merge_terms(problem, _merges(problem))


STRATEGY = plain_strategy(
    NAME, "one triangular system for what the delta rule writes", _refuses, _cost, needs=Needs(deltas=True)
)
