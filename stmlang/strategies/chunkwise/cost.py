"""Tiles: merged inside, the recurrence over tile wavefronts between them.

With tile side `c` on a 2-D grid the work is `4 c^2 N d + ~8 c N d^2`, memory `N c^2` and the boundary states, and there are
`(rows + cols) / c` sequential steps. On a ragged DAG the tiles are intervals of one topological order, `2^l` nodes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from stmlang.cost.candidate import Candidate, Config, ConfigValue, Rejection, Stage, Strategy, freeze
from stmlang.cost.counts import widest_wavefront
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import needs_line_edges
from stmlang.cost.tiles import tile_within
from stmlang.cost.work import (
    TRAINING_OPS,
    Merge,
    adjoint,
    attention_stage,
    boundary,
    gate_ops,
    gates_stage,
    merge_ops,
    merge_stage,
    needs_scalar_gates,
    ragged_merges,
    regular_merges,
)
from stmlang.source.wording import count

NAME = "chunkwise"
LARGEST_BLOCK = 512
"""Interval blocks beyond this are not proposed: their gating matrices alone outweigh the rest."""


@dataclass(frozen=True)
class Tiling:
    """`tiles` tiles of `nodes` nodes and `edges` entering (leaving) edges, worked off in `steps` wavefronts of at most `width`
    tiles; `merges` build one tile (regular) or all of them (`shared_merges`)."""

    config: Config
    tiles: int
    nodes: int
    edges: int
    steps: int
    width: int
    merges: tuple[Merge, ...]
    shared_merges: bool


def propose(problem: Problem) -> Iterable[Candidate | Rejection]:
    """A few tilings at every depth between single nodes and the whole."""
    if reason := needs_scalar_gates(problem) or needs_line_edges(problem):
        return [Rejection(NAME, reason)]
    configs: Iterable[Mapping[str, ConfigValue]]
    if problem.axes is not None:
        configs = [{"tile": tile} for tile in proposed_tiles(problem.axes)]
    else:
        configs = [{"block": block} for block in proposed_blocks(problem.counts.nodes)]
    found = [build(problem, config) for config in configs]
    return found or [Rejection(NAME, "the topology is too small to cut")]


def proposed_tiles(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Cubes with sides near each power of two, once the power itself and once the divisor of the axis nearest to it, and slabs
    that span every axis but the first; without single nodes and the whole grid."""
    found: dict[tuple[int, ...], None] = {}
    scale = 2
    while axes and scale < max(axes):
        powers = tuple(min(scale, size) for size in axes)
        divisors = tuple(_nearest_divisor(size, scale) for size in axes)
        for sides in (powers, divisors, (divisors[0], *axes[1:])):
            found[sides] = None
        scale *= 2
    whole = {axes, (1,) * len(axes)}
    return [sides for sides in found if sides not in whole]


def proposed_blocks(nodes: int) -> Iterator[int]:
    """Powers of two below the number of nodes."""
    block = 2
    while block < min(nodes, LARGEST_BLOCK + 1):
        yield block
        block *= 2


def _nearest_divisor(size: int, wanted: int) -> int:
    """The divisor of `size` nearest to `wanted` in ratio; the larger of two equally near."""
    divisors = {d for d in range(1, int(size**0.5) + 1) if size % d == 0}
    divisors |= {size // d for d in divisors}
    return max(divisors, key=lambda d: (min(d, wanted) / max(d, wanted), d)) if divisors else 1


def build(problem: Problem, config: Mapping[str, ConfigValue]) -> Candidate | Rejection:
    """The costs of a tiling: `{"tile": (c1, c2, ...)}`, a side for each axis of a regular topology, or `{"block": 2^l}`."""
    if reason := needs_scalar_gates(problem) or needs_line_edges(problem):
        return Rejection(NAME, reason)
    if problem.counts.nodes == 0:
        return Rejection(NAME, "there are no nodes to cut into tiles")
    tiling = _regular_tiling(problem, config) if problem.axes is not None else _ragged_tiling(problem, config)
    return tiling if isinstance(tiling, Rejection) else _cost(problem, tiling)


def _regular_tiling(problem: Problem, config: Mapping[str, ConfigValue]) -> Tiling | Rejection:
    axes = problem.axes
    assert axes is not None
    tile = config.get("tile")
    if set(config) != {"tile"} or not isinstance(tile, tuple) or len(tile) != len(axes):
        return Rejection(NAME, f"on this topology its setting is `tile`, with {count(len(axes), 'side')}")
    sides = tile_within(axes, tile)
    if isinstance(sides, str):
        return Rejection(NAME, sides)
    grid = tuple(-(-size // side) for size, side in zip(axes, sides, strict=True))
    steps = sum(grid) - len(grid) + 1
    return Tiling(
        freeze({"tile": sides}),
        tiles=prod(grid),
        nodes=prod(sides),
        edges=boundary(sides),
        steps=steps,
        width=widest_wavefront(grid),
        merges=tuple(regular_merges(sides)),
        shared_merges=False,
    )


def _ragged_tiling(problem: Problem, config: Mapping[str, ConfigValue]) -> Tiling | Rejection:
    block = config.get("block")
    if set(config) != {"block"} or not isinstance(block, int):
        return Rejection(NAME, "on this topology its setting is `block`, the number of nodes in a block")
    if block < 1 or block & (block - 1):
        return Rejection(NAME, f"the nodes in a block are a power of two, not {block}")
    cut = problem.cut(block)
    return Tiling(
        freeze({"block": block}),
        tiles=cut.blocks,
        nodes=block,
        edges=cut.boundary,
        steps=cut.blocks,  # one block after the other
        width=1,
        merges=tuple(ragged_merges(problem, block)),
        shared_merges=True,
    )


def _cost(problem: Problem, tiling: Tiling) -> Candidate:
    merge, largest = merge_stage(problem, tiling.merges, 1 if tiling.shared_merges else tiling.tiles)
    # A tile's states belong to one direction, and so does the attention inside it.
    attention = attention_stage(problem, tiling.tiles, tiling.nodes, problem.directions)
    between, states = _boundary_stages(problem, tiling)
    gates = gates_stage(problem)
    pairs = problem.lanes * tiling.tiles * tiling.nodes**2 * problem.accumulator
    sweep_ops = 300 * (1 if problem.axes is not None else problem.directions)
    ops = gate_ops(problem) + sweep_ops + merge_ops(problem, tiling.merges)
    return Candidate(
        NAME,
        tiling.config,
        (gates, merge, attention, *between),
        (*(adjoint(stage) for stage in reversed(between)), adjoint(attention), adjoint(merge), adjoint(gates)),
        memory_forward=problem.io_bytes + 2 * largest + 2 * pairs + 2 * states,
        memory_backward=2 * problem.io_bytes + 4 * largest + 4 * pairs + 8 * states,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _boundary_stages(problem: Problem, tiling: Tiling) -> tuple[tuple[Stage, ...], int]:
    """What crosses tiles: summaries `S^T (K x V)` on leaving edges, the recurrence, and marks read from entering edges; and the
    bytes of all entering states."""
    lanes, state, item = problem.lanes, problem.state, problem.accumulator
    every = lanes * tiling.tiles * tiling.edges * state
    padded = lanes * tiling.steps * tiling.width * tiling.edges * state
    products = lanes * tiling.tiles
    summaries = Stage("tile summaries", "matmul", 2 * every * tiling.nodes, 9 * every * item, ops=6, products=products)
    reading = Stage("boundary reads", "matmul", 2 * every * tiling.nodes, 9 * every * item, ops=6, products=products)
    sweep = Stage(
        "tile sweep",
        "matmul",
        2 * padded * tiling.edges,
        15 * padded * item,
        steps=tiling.steps,
        ops=10,
        products=lanes * tiling.steps * tiling.width,
    )
    return (summaries, sweep, reading), every * item


STRATEGY = Strategy(NAME, "tiles merged inside, a recurrence between them", propose, build)
