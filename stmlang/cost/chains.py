"""What the strategies share that work a chain off in chunks of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stmlang.cost.candidate import ConfigValue
from stmlang.cost.problem import Problem


def needs_chain(problem: Problem) -> str | None:
    """Why a scan cannot be cut into chunks of a chain, with one state between two; None where it can."""
    if problem.axes is None or len(problem.axes) != 1:
        return "it needs a chain: one axis, and one port"
    if problem.counts.nodes == 0:
        return "there are no nodes to cut into chunks"
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    return None


def chunk_sizes(problem: Problem, sizes: Sequence[int]) -> list[int]:
    """Those of the sizes (rising) that are shorter than the chain, and the whole chain where the largest covers it."""
    nodes = problem.counts.nodes
    return [size for size in sizes if size < nodes] + ([nodes] if nodes <= sizes[-1] else [])


def chunk_of(problem: Problem, config: Mapping[str, ConfigValue]) -> int | str:
    """The chunk that `{"chunk": nodes in a chunk}` asks for, no longer than the chain; or what is wrong with the settings."""
    chunk = config.get("chunk")
    if set(config) != {"chunk"} or not isinstance(chunk, int):
        return "its setting is `chunk`, the number of nodes in a chunk"
    if chunk < 1:
        return f"the nodes in a chunk are a positive number, not {chunk}"
    return min(chunk, problem.counts.nodes)
