"""What the strategies share that pack graphs into cells: rows of path weights, level by level, and attention in blocks.

A row has as many numbers as a cell has places, where a state has key times value; levels are as many as for any sweep.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.sweeps import Profile, row_profile, step_shape
from stmlang.cost.work import TRAINING_OPS, adjoint, gate_ops, gates_stage, needs_scalar_gates, shared_passes
from stmlang.graph.buckets import MOST_PACKED
from stmlang.graph.limits import LARGEST

STEP_PASSES = 6
"""How often a step reads or writes the rows of its arcs."""
ROW_PASSES = 6
"""How often the rows of all items are written or read around the sweep."""


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


def packed_cost(name: str, problem: Problem, profile: Profile, items: int) -> Candidate:
    """The costs of rows of so many items, the levels of whose sweep have the arcs of `profile`."""
    room = problem.room
    assert room is not None
    cell, counts, item = room.cell, problem.counts, problem.accumulator
    profile = row_profile(profile, room)
    width = step_shape(problem, profile, cell).width
    steps = problem.directions * profile.steps(width)
    arcs = problem.batch * problem.heads * steps * width
    rows = problem.lanes * room.rows(counts.nodes + counts.edges + 2 * items) * cell
    sweep = Stage("sweep of rows", "vector", 2 * arcs * cell, STEP_PASSES * arcs * cell * item, steps=steps, ops=20)
    around = Stage("rows of nodes", "vector", 2 * rows, ROW_PASSES * rows * item, ops=30)
    blocks = problem.batch * problem.heads * shared_passes(problem) * (room.cells + room.pairs)
    pairs = blocks * cell * cell
    flops = 2 * pairs * (problem.key + problem.value)
    attention = Stage("attention in blocks", "matmul", flops, 3 * pairs * item + problem.io_bytes, products=2 * blocks)
    gates = gates_stage(problem)
    ops = gate_ops(problem) + 200 * problem.directions
    held = (rows + 2 * pairs) * item
    return Candidate(
        name,
        NoSettings(),
        (gates, sweep, around, attention),
        (adjoint(attention), adjoint(around), adjoint(sweep, 1.2, 1.2), adjoint(gates)),
        memory_forward=problem.io_bytes + 2 * held,
        memory_backward=2 * problem.io_bytes + 4 * held,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )
