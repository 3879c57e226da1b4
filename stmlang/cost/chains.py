"""What the strategies share that work a chain off in chunks of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from stmlang.cost.problem import Problem


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chain cut into chunks of `chunk` nodes, the last one filled up."""

    chunk: int

    def count(self, nodes: int) -> int:
        """How many chunks a chain of so many nodes has."""
        return -(-nodes // self.chunk)

    def transposed(self, rank: int) -> Self:
        del rank
        return self

    def resized(self, axes: tuple[int, ...] | None) -> Self:
        del axes
        return self


def needs_one_axis(problem: Problem) -> str | None:
    """Why a topology cannot be cut into chunks of a chain; None where it can."""
    if problem.axes is None or len(problem.axes) != 1:
        return "it needs a chain: one axis, and one port"
    if problem.counts.nodes == 0:
        return "there are no nodes to cut into chunks"
    return None


def needs_chain(problem: Problem) -> str | None:
    """Why a scan cannot be cut into chunks of a chain, with one state of no tracks between two; None where it can."""
    if reason := needs_one_axis(problem):
        return reason
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    return None


def chunk_sizes(problem: Problem, sizes: Sequence[int]) -> list[Chunk]:
    """Those of the sizes (rising) that are shorter than the chain, and the whole chain where the largest covers it."""
    nodes = problem.counts.nodes
    return [Chunk(size) for size in [size for size in sizes if size < nodes] + ([nodes] if nodes <= sizes[-1] else [])]


def fitted_chunk(problem: Problem, settings: Chunk) -> Chunk | str:
    """A chunk no longer than the chain; or what is wrong with it."""
    if settings.chunk < 1:
        return f"the nodes in a chunk are a positive number, not {settings.chunk}"
    return Chunk(min(settings.chunk, problem.counts.nodes))


def chunk_misread(problem: Problem, values: Mapping[str, object]) -> str:
    """What is wrong with values that are no chunk."""
    del problem, values
    return "its setting is `chunk`, the number of nodes in a chunk"


def odd_chunks(problem: Problem) -> list[Chunk]:
    """Single nodes, chunks that do not divide the chain, and one that is longer than it."""
    nodes = problem.counts.nodes
    return [Chunk(1), Chunk(odd_length(nodes)), Chunk(nodes + 3)]


def odd_length(size: int) -> int:
    """A length that does not divide a size, where there is one below it."""
    return next((length for length in range(2, size) if size % length), max(size, 1))
