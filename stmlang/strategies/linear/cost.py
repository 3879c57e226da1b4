"""Chains as linear attention runs them: quadratic inside a chunk, one state handed over between chunks.

With chunks of `c` nodes the work is `4 N d (c + d)`, memory that of the inputs (training adds one state a chunk), and there are
`N / c` sequential steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import Chunk, chunk_misread, chunk_sizes, fitted_chunk, needs_one_axis, odd_chunks
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, costed
from stmlang.scan.expression import Index
from stmlang.strategies.base import Strategy

NAME = "linear"
CHUNKS = (16, 32, 64, 128, 256)


def _propose(problem: Problem) -> Sequence[Chunk]:
    """Chunks of a few sizes, and the whole chain where it is short."""
    return chunk_sizes(problem, CHUNKS)


def _refuses(problem: Problem) -> str | None:
    """Why the scan is none that linear attention could be."""
    if reason := needs_one_axis(problem):
        return reason
    if problem.track > 1:
        return _refuses_tracks(problem)
    for name in ("source", "transition", "mark"):
        state = problem.state_of(name)
        if len(state) > 1 or not state <= {"key", "value"}:
            return f"it needs a {name} that is one number, or one per entry of key or value, not ({', '.join(sorted(state))})"
    return None


def _refuses_tracks(problem: Problem) -> str | None:
    """The same of states with tracks."""
    axes = acting(problem)
    if not axes:
        return "it needs gates that act on the key or on the value, where they act on tracks at all"
    if len(axes) > 1 or not axes <= {"key", "value"}:
        listed = ", ".join(sorted(axes))
        return f"it needs gates that act, beside tracks, on the key alone or on the value alone, not on both ({listed})"
    return None


def acting(problem: Problem) -> set[Index]:
    """The state axes beside tracks that source, transition and mark act on."""
    names = ("source", "transition", "mark")
    return set[Index]().union(*(problem.state_of(name) for name in names)) - {"track", "track'"}


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the work of a chunk grows with: its nodes `c`, the state's sizes, the levels of its table, `count` chunks in all. Of
    a decay on the key (value) axis every level has scores (outputs) of its own, `score` (`seen`) products for one. Of states
    with tracks keys, or values, have an entry for each, which takes part in so many products as there are `tracks`."""

    c: int
    key: int
    value: int
    depth: int
    count: int
    score: int
    seen: int
    tracks: int

    @classmethod
    def of(cls, problem: Problem, settings: Chunk) -> _Sizes:
        depth = max(settings.chunk - 1, 0).bit_length()
        count, tracks = settings.count(problem.counts.nodes), problem.track
        indices = acting(problem) if tracks > 1 else problem.state_of("transition")
        score, seen = (max(1, depth) if index in indices else 1 for index in ("key", "value"))
        key = problem.key * (tracks if "key" in indices else 1)
        value = problem.value * (tracks if "value" in indices else 1)
        return cls(settings.chunk, key, value, depth, count, score, seen, tracks)


def _cost(problem: Problem, settings: Chunk, target: Target) -> Candidate:
    sizes, chunk = _Sizes.of(problem, settings), settings.chunk
    lanes, item = problem.lanes, problem.accumulator
    stages = _stages(problem, sizes)
    inside = lanes * item * ((sizes.score + sizes.seen + 2) * chunk * chunk + 4 * chunk * (sizes.key + sizes.value))
    states = lanes * item * problem.state
    outputs = lanes * item * problem.counts.nodes * sizes.value
    # Operands of turned directions are copies.
    turned = 2 * problem.io_bytes * (problem.directions > 1)
    levels = sizes.depth * (2 if sizes.score * sizes.seen > 1 else 1)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=(*adjoints(*stages), *_backward(problem, sizes)),
        memory_forward=problem.io_bytes + turned + outputs + inside + 2 * states,
        memory_backward=2 * (problem.io_bytes + turned) + 2 * outputs + 3 * inside + (sizes.count + 3) * states,
        terms={"levels": levels},
    )


def _stages(problem: Problem, sizes: _Sizes) -> tuple[Stage, ...]:
    """Scores and what they weigh inside a chunk; what is read of the state and written to it; the products of decays; and
    whatever else is done number by number, with operands (for each level that has its own) and with states."""
    c, key, value, chunks = sizes.c, sizes.key, sizes.value, problem.lanes * sizes.count
    columns, item = key + value, problem.accumulator
    pairs = 2 * chunks * c * c * (sizes.score * key + sizes.seen * value)
    operands = chunks * c * (key * (1 + sizes.score) + value * (1 + sizes.seen)) * sizes.tracks
    return (
        Stage("chunks", "matmul", pairs, 2 * chunks * c * columns * item, steps=sizes.count, products=2 * chunks),
        Stage("states", "matmul", 4 * chunks * c * key * value, 2 * chunks * key * value * item, products=2 * chunks),
        Stage("decays", "vector", chunks * c * c * (1 + sizes.depth), chunks * c * c * item),
        Stage("operands", "vector", operands, problem.io_bytes * problem.directions),
    )


def _backward(problem: Problem, sizes: _Sizes) -> tuple[Stage, ...]:
    """Beside the adjoints the one of the table of decays, a product of matrices, and the states that were kept."""
    chunks = problem.lanes * sizes.count
    table = 2 * chunks * sizes.c**3 * (sizes.score == sizes.seen)
    kept_states = chunks * problem.state * problem.accumulator
    return (
        Stage("table of decays", "matmul", table, chunks * sizes.c**2 * problem.accumulator, products=chunks),
        Stage("kept states", "vector", 0, kept_states),
    )


STRATEGY = Strategy(
    NAME,
    "chunks of a chain, one state between them",
    Chunk,
    _refuses,
    _propose,
    fitted_chunk,
    chunk_misread,
    _cost,
    odd_chunks,
)
