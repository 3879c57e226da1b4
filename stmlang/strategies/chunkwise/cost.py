"""Tiles: merged inside, the recurrence over tile wavefronts between them.

With tile side `c` on a 2-D grid the work is `4 c^2 N d + ~8 c N d^2`, memory `N c^2` and the boundary states, and there are
`(rows + cols) / c` sequential steps. On a ragged DAG the tiles are intervals of one topological order, `2^l` nodes each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.counts import widest_wavefront
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import needs_line_edges
from stmlang.cost.target import Target
from stmlang.cost.tiles import odd_tiles, tile_within, tiling
from stmlang.cost.work import (
    Merge,
    adjoints,
    array_stage,
    attention_stages,
    by_track,
    costed,
    merge_stage,
    merge_terms,
    needs_path_weights,
    ragged_merges,
    regular_merges,
)
from stmlang.source.wording import count
from stmlang.strategies.base import Strategy
from stmlang.strategies.chunkwise.settings import Chunkwise

NAME = "chunkwise"
LARGEST_BLOCK = 512
"""Interval blocks beyond this are not proposed: their gating matrices alone outweigh the rest."""


@dataclass(frozen=True)
class Pieces:
    """`tiles` tiles of `nodes` nodes and `edges` entering (leaving) edges, worked off in `steps` wavefronts of at most `width`
    tiles; `merges` build one tile (regular) or all of them (`shared_merges`)."""

    tiles: int
    nodes: int
    edges: int
    steps: int
    width: int
    merges: tuple[Merge, ...]
    shared_merges: bool


def _refuses(problem: Problem) -> str | None:
    if reason := needs_path_weights(problem) or needs_line_edges(problem):
        return reason
    return "there are no nodes to cut into tiles" if problem.counts.nodes == 0 else None


def _propose(problem: Problem) -> Sequence[Chunkwise] | str:
    """A few tilings at every depth between single nodes and the whole."""
    if problem.axes is not None:
        settings = [Chunkwise(tile=tile) for tile in proposed_tiles(problem.axes)]
    else:
        settings = [Chunkwise(block=block) for block in proposed_blocks(problem.counts.nodes)]
    return settings or "the topology is too small to cut"


def proposed_tiles(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cubes with sides near each power of two, once the power itself and once the divisor of the axis nearest to it, and slabs
    that span every axis but the first; without single nodes and the whole grid."""
    candidates: dict[tuple[int, ...], None] = {}
    scale = 2
    while axes and scale < max(axes):
        powers = tuple(min(scale, size) for size in axes)
        divisors = tuple(_nearest_divisor(size, scale) for size in axes)
        for sides in (powers, divisors, (divisors[0], *axes[1:])):
            candidates[sides] = None
        scale *= 2
    whole = {axes, (1,) * len(axes)}
    return [sides for sides in candidates if sides not in whole]


def proposed_blocks(nodes: int) -> Iterator[int]:
    """Powers of two below the number of nodes."""
    block = 2
    while block < min(nodes, LARGEST_BLOCK + 1):
        yield block
        block *= 2


def _nearest_divisor(size: int, side: int) -> int:
    """The divisor of `size` nearest to `side` in ratio; the larger of two equally near."""
    divisors = {d for d in range(1, isqrt(size) + 1) if size % d == 0}
    divisors |= {size // d for d in divisors}
    return max(divisors, key=lambda d: (min(d, side) / max(d, side), d)) if divisors else 1


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del values
    if problem.axes is None:
        return "on this topology its setting is `block`, the number of nodes in a block"
    return f"on this topology its setting is `tile`, with {count(len(problem.axes), 'side')}"


def _fitted(problem: Problem, settings: Chunkwise) -> Chunkwise | str:
    """A tile no side of which is longer than its axis, or a block that is a power of two."""
    tile, block, axes = settings.tile, settings.block, problem.axes
    if axes is None:
        if tile is not None or block is None:
            return _misread(problem, {})
        if block < 1 or block & (block - 1):
            return f"the nodes in a block are a power of two, not {block}"
        return settings
    if block is not None or tile is None or len(tile) != len(axes):
        return _misread(problem, {})
    sides = tile_within(axes, tile)
    return sides if isinstance(sides, str) else Chunkwise(tile=sides)


def _odd(problem: Problem) -> Iterator[Chunkwise]:
    if problem.axes is not None:
        yield from (Chunkwise(tile=tile) for tile in odd_tiles(problem.axes))
    else:
        yield from (Chunkwise(block=block) for block in (1, 2, 1 << problem.counts.nodes.bit_length()))


def _pieces(problem: Problem, settings: Chunkwise) -> Pieces:
    if settings.tile is not None and problem.axes is not None:
        cut = tiling(problem.axes, settings.tile)
        steps = sum(cut.tiles) - len(cut.tiles) + 1
        merges = tuple(by_track(regular_merges(cut.tile), problem.track))
        return Pieces(cut.count, cut.nodes, cut.edges, steps, widest_wavefront(cut.tiles), merges, shared_merges=False)
    assert settings.block is not None
    blocks, boundary = settings.blocks(problem.counts.nodes), problem.cut(settings.block).boundary
    merges = tuple(by_track(ragged_merges(problem, settings.block), problem.track))
    # One block after the other.
    return Pieces(blocks, settings.block, boundary, steps=blocks, width=1, merges=merges, shared_merges=True)


def _cost(problem: Problem, settings: Chunkwise, target: Target) -> Candidate:
    pieces = _pieces(problem, settings)
    merge, largest = merge_stage(problem, target, pieces.merges, 1 if pieces.shared_merges else pieces.tiles)
    # A tile's states belong to one direction, and so does the attention inside it.
    blocks = problem.batch * problem.heads * problem.directions * pieces.tiles
    attention = attention_stages(problem, target, blocks, pieces.nodes, pieces.nodes)
    between, states = _boundary_stages(problem, pieces, target)
    pairs = problem.lanes * pieces.tiles * pieces.nodes**2 * problem.accumulator
    stages = (merge, *attention, *between)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=problem.io_bytes + 2 * largest + 2 * pairs + 2 * states,
        memory_backward=2 * problem.io_bytes + 4 * largest + 4 * pairs + 8 * states,
        terms={"loops": 1 if problem.axes is not None else problem.directions, **merge_terms(problem, pieces.merges)},
    )


def _boundary_stages(problem: Problem, pieces: Pieces, target: Target) -> tuple[tuple[Stage, ...], int]:
    """What crosses tiles: summaries `S^T (K x V)` on leaving edges, the recurrence, and marks read from entering edges; and the
    bytes of all entering states."""
    lanes, state, item = problem.lanes, problem.state, problem.accumulator
    every = lanes * pieces.tiles * pieces.edges * state
    padded = lanes * pieces.steps * pieces.width * pieces.edges * state
    products, flops, held = lanes * pieces.tiles, 2 * every * pieces.nodes, every * item
    summaries = array_stage(target, "tile summaries", "matmul", flops, held, held, products=products)
    reading = array_stage(target, "boundary reads", "matmul", flops, held, held, products=products)
    sweep = array_stage(
        target,
        "tile sweep",
        "matmul",
        2 * padded * pieces.edges * problem.track,
        padded * item,
        held,
        steps=pieces.steps,
        products=lanes * pieces.steps * pieces.width,
    )
    return (summaries, sweep, reading), held


STRATEGY = Strategy(
    NAME,
    "tiles merged inside, a recurrence between them",
    Chunkwise,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
)
