"""One impulse response in place of a gating matrix, for gates that are the same at every node of a regular topology.

The response has as many numbers as the grid has nodes, and no batch multiplies it. Attention then reads its mask off the
response: all at once, or tile by tile of targets in memory that grows with the number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.tiles import odd_tiles, tile_within, tiling
from stmlang.cost.work import adjoints, attention_stages, costed, needs_scalar_gates, shared_passes
from stmlang.source.wording import count
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.impulse.settings import Impulse

NAME = "impulse"
MOST_PAIRS = 46_340**2
"""Of a tile's targets with all sources: beyond, one head's mask has 2^31 entries."""
TARGETS = (64, 128, 256)
"""How many targets the proposed tiles have, about."""


def _axes(problem: Problem) -> tuple[int, ...]:
    assert problem.axes is not None
    return problem.axes


def _propose(problem: Problem) -> Sequence[Impulse]:
    """The whole mask at once, and tiles of a few sizes: lines along the last axis, or parts of them."""
    axes = _axes(problem)
    tiles = [axes] if prod(axes) ** 2 <= MOST_PAIRS else []
    tiles += [tile for tile in dict.fromkeys(_lines(axes, targets) for targets in TARGETS) if tile != axes]
    return [Impulse(tile) for tile in tiles]


def _lines(axes: tuple[int, ...], targets: int) -> tuple[int, ...]:
    """About so many neighbouring nodes: along the last axis, then along the ones before; an axis is cut into equal parts."""
    sides: list[int] = []
    for size in reversed(axes):
        count = -(-size // max(1, min(size, targets)))
        sides.append(-(-size // count))
        targets //= sides[-1]
    return tuple(reversed(sides))


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del values
    return f"its setting is `tile`, with {count(len(_axes(problem)), 'side')}"


def _fitted(problem: Problem, settings: Impulse) -> Impulse | str:
    """A tile of targets, no side longer than its axis: the whole grid for a mask that is made at once."""
    axes = _axes(problem)
    if len(settings.tile) != len(axes):
        return _misread(problem, {})
    sides = tile_within(axes, settings.tile)
    if isinstance(sides, str):
        return sides
    if prod(sides) * prod(axes) > MOST_PAIRS:
        return f"a mask of {prod(sides):,} times {prod(axes):,} nodes is too large to number"
    return Impulse(sides)


def _odd(problem: Problem) -> Iterator[Impulse]:
    yield from map(Impulse, odd_tiles(_axes(problem)))


def _refuses(problem: Problem) -> str | None:
    """Why the scan has no impulse response."""
    if reason := needs_scalar_gates(problem):
        return reason
    if problem.axes is None:
        return "it needs a regular topology, a chain or a grid, where every place looks alike"
    if problem.facts is None or not problem.facts.constant:
        return "it needs source, transition and mark to be the same at every node"
    if problem.scan.normalize != "none" and len(problem.axes) == 1:
        return "a normalized chain is held at a scale of its own, which differs from node to node"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    return None


def _cost(problem: Problem, settings: Impulse, target: Target) -> Candidate:
    axes, tile = _axes(problem), settings.tile
    (response, stored), mask = _response_stage(problem, axes), _mask_stage(problem, axes, tile)
    count, scans = tiling(axes, tile).count, problem.batch * problem.heads * shared_passes(problem)
    streamed = not settings.whole(axes)
    attention = attention_stages(
        problem,
        target,
        scans * count,
        prod(tile),
        prod(axes),
        name="streamed attention" if streamed else "masked attention",
        at_once=scans,
        steps=count if streamed else 0,
    )
    # Of tiles the backward pass adds every one's share to the gradients of all keys and values.
    due = scans * count * prod(axes) * (problem.key + problem.value) * problem.accumulator
    added = (Stage("sums over tiles", "vector", 0, due),) if streamed else ()
    item, pairs = problem.accumulator, prod(tile) * prod(axes)
    masks = problem.heads * shared_passes(problem) * pairs * item
    # Nothing of a tile outlives it; of the whole mask the backward pass keeps the scores.
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(response, mask, *attention),
        backward=(*adjoints(*attention), *added, *adjoints(response, mask)),
        memory_forward=problem.io_bytes + stored + 2 * scans * pairs * item + 2 * masks,
        memory_backward=2 * problem.io_bytes + 3 * stored + 4 * scans * pairs * item + 3 * masks,
        terms={"axes": len(axes), "streamed": int(streamed)},
    )


def _response_stage(problem: Problem, axes: tuple[int, ...]) -> tuple[Stage, int]:
    """Wavefronts over all axes but the longest; no batch. And the bytes of the states that it holds. A chain's response is a
    power, and has a name of its own as it takes much longer for each number."""
    long = sorted((size for size in axes if size > 1), reverse=True)
    lanes, rank = problem.heads * problem.directions, len(long)
    steps = sum(long) - rank if rank > 1 else 0
    numbers = lanes * (rank * prod(long[1:]) * steps if rank > 1 else prod(long))
    flops = numbers * (2 * rank + 2 if rank > 1 else 1)
    profile = lanes * 2 ** len(axes) * prod(axes)
    held = (numbers + profile) * problem.accumulator
    return Stage("impulse response" if rank > 1 else "powers", "vector", flops, held, steps=steps), held


def _mask_stage(problem: Problem, axes: tuple[int, ...], tile: tuple[int, ...]) -> Stage:
    """Masks cut out of the response, once for all of the batch."""
    numbers = tiling(axes, tile).count * problem.heads * shared_passes(problem) * prod(tile) * prod(axes)
    return Stage("masks", "vector", numbers, numbers * problem.accumulator)


STRATEGY = Strategy(
    NAME,
    "one impulse response for gates that are the same everywhere",
    Impulse,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    offers=Offers(gating=True),
    needs=Needs(uniform=True),
)
