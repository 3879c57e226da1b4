"""Chains as linear attention runs them: quadratic inside a chunk, one state handed over between chunks.

With chunks of `c` nodes the work is `4 N d (c + d)`, memory that of the inputs (training adds one state a chunk), and there are
`N / c` sequential steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import Chunk, chunk_misread, chunk_sizes, fitted_chunk, needs_chain, odd_chunks
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import TRAINING_OPS, adjoint, gate_ops, gates_stage
from stmlang.strategies.base import Strategy

NAME = "linear"
CHUNKS = (16, 32, 64, 128, 256)


def _propose(problem: Problem) -> Sequence[Chunk]:
    """Chunks of a few sizes, and the whole chain where it is short."""
    return chunk_sizes(problem, CHUNKS)


def _refuses(problem: Problem) -> str | None:
    """Why the scan is none that linear attention could be."""
    if reason := needs_chain(problem):
        return reason
    scan = problem.scan
    for name in ("source", "transition", "mark"):
        state = set(scan.gate(name).indices) - {"out", "in"}
        if len(state) > 1 or not state <= {"key", "value"}:
            return f"it needs a {name} that is one number, or one per entry of key or value, not ({', '.join(sorted(state))})"
    return None


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the work of a chunk grows with: its nodes `c`, the state's sizes, the levels of its table, `count` chunks in all. Of
    a decay on the key (value) axis every level has scores (outputs) of its own, `score` (`seen`) products for one."""

    c: int
    key: int
    value: int
    depth: int
    count: int
    score: int
    seen: int

    @classmethod
    def of(cls, problem: Problem, settings: Chunk) -> _Sizes:
        depth = max(settings.chunk - 1, 0).bit_length()
        indices = problem.scan.gate("transition").indices
        score, seen = (max(1, depth) if index in indices else 1 for index in ("key", "value"))
        return cls(settings.chunk, problem.key, problem.value, depth, settings.count(problem.counts.nodes), score, seen)


def _cost(problem: Problem, settings: Chunk, _: Target) -> Candidate:
    sizes, chunk = _Sizes.of(problem, settings), settings.chunk
    lanes, item = problem.lanes, problem.accumulator
    gates, forward, backward = gates_stage(problem), _forward(problem, sizes), _backward(problem, sizes)
    inside = lanes * item * ((sizes.score + sizes.seen + 2) * chunk * chunk + 4 * chunk * (sizes.key + sizes.value))
    states = lanes * item * problem.state
    outputs = lanes * item * problem.counts.nodes * sizes.value
    # Operands of turned directions are copies.
    turned = 2 * problem.io_bytes * (problem.directions > 1)
    ops = gate_ops(problem) + 90 + 20 * sizes.depth * (2 if sizes.score * sizes.seen > 1 else 1)
    return Candidate(
        NAME,
        settings,
        (gates, *forward),
        (*backward, adjoint(gates)),
        memory_forward=problem.io_bytes + turned + outputs + inside + 2 * states,
        memory_backward=2 * (problem.io_bytes + turned) + 2 * outputs + 3 * inside + (sizes.count + 3) * states,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _forward(problem: Problem, sizes: _Sizes) -> tuple[Stage, ...]:
    """Scores and what they weigh inside a chunk, what is read of the state and written to it; the products of decays and
    whatever else is done number by number."""
    c, key, value, chunks = sizes.c, sizes.key, sizes.value, problem.lanes * sizes.count
    products = sizes.score + sizes.seen + 2
    return (
        Stage(
            "chunks",
            "matmul",
            2 * chunks * (c * c * (sizes.score * key + sizes.seen * value) + 2 * c * key * value),
            problem.io_bytes * problem.directions,
            steps=sizes.count,
            ops=10 + 5 * sizes.depth,
            products=products * chunks,
        ),
        Stage("decays", "vector", chunks * _numbers(sizes), problem.io_bytes),
    )


def _numbers(sizes: _Sizes) -> int:
    """Elementwise operations of a chunk: its table, its operands (for each level that has its own), its states."""
    c, key, value = sizes.c, sizes.key, sizes.value
    pairs = c * c * (2 + sizes.depth // 2)  # a choice among products in registers: four times as fast as what memory feeds
    return pairs + 3 * c * (key * (1 + sizes.score) + value * (1 + sizes.seen)) + 3 * key * value


def _backward(problem: Problem, sizes: _Sizes) -> tuple[Stage, ...]:
    """The chunk again, two products for each one that it has, one for its table of decays."""
    forward, decays = _forward(problem, sizes)
    table = 2 * sizes.c**3 * (sizes.score == sizes.seen)
    chunks = problem.lanes * sizes.count
    return (
        replace(
            forward,
            name="chunks, adjoint",
            flops=5 * forward.flops // 2 + chunks * table,
            bytes=3 * forward.bytes + 2 * chunks * problem.state * problem.accumulator,
            ops=2 * forward.ops,
            products=5 * forward.products // 2 + chunks,
        ),
        replace(decays, name="decays, adjoint", flops=3 * decays.flops, bytes=3 * decays.bytes),
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
