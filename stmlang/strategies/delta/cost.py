"""Chains of the delta rule: a few products and one triangular system a chunk, one state handed over between chunks.

With chunks of `c` nodes the work is `8 N c d + 6 N d^2 + 4 N c^2`, memory that of the inputs (training adds one state a chunk),
and there are `N / c` sequential steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import Chunk, chunk_misread, chunk_sizes, fitted_chunk, needs_chain, odd_chunks
from stmlang.cost.delta_rule import delta_gates
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import triangle_rows
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, costed
from stmlang.facts.overwriting import DeltaRule
from stmlang.strategies.base import Needs, Strategy

NAME = "delta"
CHUNKS = (16, 32, 64, 128)


def _propose(problem: Problem) -> Sequence[Chunk]:
    """Chunks of a few sizes, and the whole chain where it is short."""
    return chunk_sizes(problem, CHUNKS)


def _refuses(problem: Problem) -> str | None:
    form = _form(problem)
    return form if isinstance(form, str) else None


def _form(problem: Problem) -> DeltaRule | str:
    """The form of the transition, or why the scan is none of the delta rule."""
    if reason := needs_chain(problem):
        return reason
    return delta_gates(problem)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the work of a chunk grows with: its nodes `c`, the state's sizes, `count` chunks in all, `depth` levels of the table
    of scales (none where there is no scale)."""

    c: int
    key: int
    value: int
    depth: int
    count: int

    @classmethod
    def of(cls, problem: Problem, form: DeltaRule, settings: Chunk) -> _Sizes:
        depth = 0 if form.transition.plain else max(settings.chunk - 1, 0).bit_length()
        return cls(settings.chunk, problem.key, problem.value, depth, settings.count(problem.counts.nodes))


def _cost(problem: Problem, settings: Chunk, target: Target) -> Candidate:
    form, chunk = _form(problem), settings.chunk
    assert isinstance(form, DeltaRule)
    sizes = _Sizes.of(problem, form, settings)
    lanes, item = problem.lanes, problem.accumulator
    stages = _stages(problem, sizes)
    kept_states = Stage("kept states", "vector", 0, lanes * sizes.count * problem.state * item)
    inside = lanes * item * (6 * chunk * chunk + 4 * chunk * (sizes.key + sizes.value))
    states = lanes * item * problem.state
    outputs = lanes * item * problem.counts.nodes * sizes.value
    # Operands of turned directions are copies; a matrix that is read through and is not of the form is there itself.
    turned = 2 * problem.io_bytes * (problem.directions > 1)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=(*adjoints(*stages), kept_states),
        memory_forward=problem.io_bytes + turned + 2 * outputs + inside + 2 * states,
        memory_backward=2 * (problem.io_bytes + turned) + 3 * outputs + 3 * inside + (sizes.count + 3) * states,
        terms={"levels": sizes.depth, "halves": max(chunk - 1, 0).bit_length()},
    )


def _stages(problem: Problem, sizes: _Sizes) -> tuple[Stage, ...]:
    """Scores of keys and queries and what they weigh; what is read of the state and written to it; the system, whose diagonal
    blocks are inverted by halves; the tables; and whatever else is done number by number, with operands and with states."""
    c, key, value, chunks = sizes.c, sizes.key, sizes.value, problem.lanes * sizes.count
    columns, item = key + value, problem.accumulator
    rows = triangle_rows(c)
    blocks = -(-c // rows)
    inverse = 2 * chunks * (blocks * rows**3 // 3 + c * c * columns)
    halves = 2 * blocks * max(0, rows // SMALL - 1)
    return (
        Stage(
            "chunks",
            "matmul",
            2 * chunks * c * c * columns,
            2 * chunks * c * columns * item,
            steps=sizes.count,
            products=2 * chunks,
        ),
        Stage("states", "matmul", 6 * chunks * c * key * value, 2 * chunks * key * value * item, products=3 * chunks),
        Stage("inverse", "matmul", inverse, chunks * c * c * item, products=(2 * blocks + halves) * chunks),
        Stage("small triangles", "vector", chunks * c * SMALL * SMALL, chunks * c * SMALL * item),
        Stage("decays", "vector", chunks * c * c * (1 + sizes.depth), chunks * c * c * item),
        Stage("operands", "vector", 2 * chunks * c * columns, problem.io_bytes * problem.directions),
    )


SMALL = 16
"""Triangles up to this size are inverted without matrix products."""


STRATEGY = Strategy(
    NAME,
    "chunks of a chain that overwrites, one state between them",
    Chunk,
    _refuses,
    _propose,
    fitted_chunk,
    chunk_misread,
    _cost,
    odd_chunks,
    needs=Needs(deltas=True),
)
