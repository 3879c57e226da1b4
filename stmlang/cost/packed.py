"""What the strategies share that pack graphs into cells: rows of path weights, level by level, and attention in blocks.

A row has as many numbers as a cell has places, where a state has key times value; levels are as many as for any sweep.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import Profile, row_profile, step_shape
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, array_stage, attention_stages, costed, needs_scalar_gates, shared_passes
from stmlang.graph.capacity import MOST_PACKED
from stmlang.graph.limits import LARGEST


def needs_cells(problem: Problem) -> str | None:
    """Why graphs cannot be packed into cells; None where they can."""
    room = problem.room
    if room is None:
        return "it is for graphs that come at run time"
    if room.cells == 0:
        return f"it packs graphs of at most {MOST_PACKED:,} nodes, and here one has more"
    rows = problem.directions * room.rows(room.line_edges) * room.cell
    if rows > LARGEST:
        return f"its rows have {rows:,} places, more than {LARGEST:,}"
    return needs_scalar_gates(problem)


def packed_cost(name: str, problem: Problem, target: Target, profile: Profile, items: int) -> Candidate:
    """The costs of rows of so many items, the levels of whose sweep have the arcs of `profile`."""
    room = problem.room
    assert room is not None
    cell, counts, item = room.cell, problem.counts, problem.accumulator
    profile = row_profile(profile, room)
    width = step_shape(problem, profile, cell).width
    steps = problem.directions * profile.steps(width)
    arcs = problem.batch * problem.heads * steps * width
    rows = problem.lanes * room.rows(counts.nodes + counts.edges + 2 * items) * cell
    around = rows * item
    blocks = problem.batch * problem.heads * shared_passes(problem) * (room.cells + room.pairs)
    stages = (
        array_stage(target, "sweep of rows", "vector", 2 * arcs * cell, arcs * cell * item, around, steps=steps),
        array_stage(target, "rows of nodes", "vector", 2 * rows, around, around),
        *attention_stages(problem, target, blocks, cell, cell, name="attention in blocks"),
    )
    held = (rows + 2 * blocks * cell * cell) * item
    return costed(
        name,
        NoSettings(),
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=problem.io_bytes + 2 * held,
        memory_backward=2 * problem.io_bytes + 4 * held,
    )
