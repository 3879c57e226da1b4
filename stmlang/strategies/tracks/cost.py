"""Chains with tracks: every chunk is merged to one block, all chunks at once, and one state is handed over between two.

With chunks of `c` nodes and `j` tracks of `d x d` numbers the work is `4 N c d + 4 N j d^2` and `N c j` for the gating matrices
of the chunks, memory those matrices and a state a chunk, and there are `N / c` sequential steps of `j^2 d^2` each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import Chunk, chunk_misread, needs_one_axis
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, array_stage, costed
from stmlang.strategies.base import Offers, Strategy

NAME = "tracks"
CHUNKS = (8, 16, 32, 64, 128)


def _refuses(problem: Problem) -> str | None:
    """Why the chunks of a scan are no blocks with an edge for each track."""
    if reason := needs_one_axis(problem):
        return reason
    if problem.track == 1:
        return "it needs states with a tracking axis"
    for name, acting in (("source", {"track"}), ("transition", {"track", "track'"}), ("mark", {"track"})):
        others = problem.state_of(name) - acting
        if others:
            return f"it needs a {name} that acts on tracks alone, and here it acts on the state ({', '.join(sorted(others))})"
    return None


def _propose(problem: Problem) -> Sequence[Chunk]:
    """Chunks of a few sizes, and one that covers a short chain."""
    return list(dict.fromkeys(_resized(problem, size) for size in CHUNKS))


def _resized(problem: Problem, size: int) -> Chunk:
    """The next power of two, for pairs are merged, and none larger than the first that covers the chain."""
    return Chunk(2 ** max(0, min(size, problem.counts.nodes) - 1).bit_length())


def _fitted(problem: Problem, settings: Chunk) -> Chunk | str:
    if settings.chunk < 1:
        return f"the nodes in a chunk are a positive number, not {settings.chunk}"
    return _resized(problem, settings.chunk)


def _odd(problem: Problem) -> Iterator[Chunk]:
    yield from (Chunk(1), Chunk(2), Chunk(problem.counts.nodes))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What the work of a chunk grows with: its nodes `c`, the sources and targets in it, `count` chunks of a chain and `chunks`
    in all."""

    c: int
    sources: int
    targets: int
    count: int
    chunks: int

    @classmethod
    def of(cls, problem: Problem, settings: Chunk) -> _Sizes:
        c, count = settings.chunk, settings.count(problem.counts.nodes)
        return cls(c, c * problem.writes, c * problem.reads, count, problem.lanes * count)

    @property
    def pairs(self) -> int:
        """Of a source and a target, in all chunks."""
        return self.chunks * self.sources * self.targets


def _cost(problem: Problem, settings: Chunk, target: Target) -> Candidate:
    sizes, item = _Sizes.of(problem, settings), problem.accumulator
    stages = _stages(problem, sizes, target)
    terms = sizes.chunks * (sizes.sources + sizes.targets)
    # The matrices and what they weigh; tracks and keys of sources and targets; states that enter and that are written.
    held = item * (3 * sizes.pairs + terms * problem.track * (1 + problem.key) + 2 * sizes.chunks * problem.state)
    levels = settings.chunk.bit_length() - 1
    tables = item * terms * problem.track * levels
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=2 * problem.io_bytes + held,
        memory_backward=4 * problem.io_bytes + 2 * held + tables,
        terms={"levels": levels},
    )


def _stages(problem: Problem, sizes: _Sizes, target: Target) -> tuple[Stage, ...]:
    """The merges; scores and what they weigh inside of chunks, and the pairs themselves; what is written to states and read of
    them; and the states one after the other."""
    item, track, chunks = problem.accumulator, problem.track, sizes.chunks
    numbers = chunks * _merged(sizes.c, problem.writes, problem.reads, track)
    pairs, state = sizes.pairs * item, chunks * problem.state * item
    columns, both = problem.key + problem.value, sizes.sources + sizes.targets
    return (
        array_stage(target, "paths", "vector", numbers, 2 * pairs, pairs),
        Stage("chunks", "matmul", 2 * sizes.pairs * columns, chunks * both * columns * item, products=2 * chunks),
        array_stage(target, "pairs", "vector", sizes.pairs, pairs, pairs),
        Stage("states", "matmul", 2 * chunks * both * problem.state, 2 * state, products=2 * chunks),
        Stage("passing", "vector", 2 * chunks * track * problem.state, 3 * state, steps=sizes.count),
    )


def _merged(chunk: int, writes: int, reads: int, track: int) -> int:
    """Products of two numbers in all merges of a chunk."""
    sides = (2**level for level in range(chunk.bit_length() - 1))
    return sum(chunk // (2 * side) * track * (side * writes + track) * (side * reads + track) for side in sides)


STRATEGY = Strategy(
    NAME,
    "chunks of a chain whose tracks mix, one state between them",
    Chunk,
    _refuses,
    _propose,
    _fitted,
    chunk_misread,
    _cost,
    _odd,
    offers=Offers(several=True),
)
