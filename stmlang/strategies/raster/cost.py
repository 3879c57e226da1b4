"""A grid's tiles one after the other in raster order, with states on the edges between them.

With tiles of `n` nodes and `e` entering edges the work is `(4 e + 2 e^2 / n) N d^2`, linear in the number of nodes, and about
half of it where transitions between axes are structurally zero, as they are in a multitree. Memory holds a state for every
line of the grid; training keeps those along the first axis once for each slab of tiles, or for each segment of slabs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isqrt, prod
from typing import cast

import numpy as np

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.tiles import Tiling, odd_tiles, tile_within
from stmlang.cost.work import adjoint, array_stage, boundary, costed, needs_scalar_gates
from stmlang.strategies.base import Strategy
from stmlang.strategies.raster.settings import Raster

NAME = "raster"
SIDES = (2, 4, 8)
"""Tiles are about so long along every axis."""
MANY_SLABS = 32
"""From here on there are segments, which take a seventh longer: below, they save too little."""


def _axes(problem: Problem) -> tuple[int, ...]:
    assert problem.axes is not None
    return problem.axes


def _propose(problem: Problem) -> Sequence[Raster]:
    """Cubes, as nearly as equal parts of every axis allow; of many slabs about as many segments as slabs in each."""
    axes = _axes(problem)
    tiles = dict.fromkeys(tuple(_equal_part(size, side) for size in axes) for side in SIDES)
    slabs = [-(-axes[0] // tile[0]) for tile in tiles]
    return [Raster(tile, isqrt(count) if count >= MANY_SLABS else 1) for tile, count in zip(tiles, slabs, strict=True)]


def _kept(cut: Tiling, segments: int) -> int:
    """How many times over a backward pass holds the states that move along the first axis."""
    return cut.tiles[0] if segments == 1 else segments + cut.tiles[0] // segments


def _equal_part(size: int, largest: int) -> int:
    """The side of parts of an axis that are at most so long, as equal as can be."""
    return -(-size // -(-size // largest))


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    axes, tile = _axes(problem), values.get("tile")
    if (
        {"tile"} <= set(values) <= {"tile", "segments"}
        and isinstance(tile, tuple)
        and len(cast(tuple[object, ...], tile)) == len(axes)
    ):
        return _wrong_segments(axes)
    return f"its settings are `tile`, with {len(axes)} sides, and `segments`"


def _wrong_segments(axes: tuple[int, ...]) -> str:
    return f"there is at least one segment, and at most {axes[0]}, one for each place on the first axis"


def _fitted(problem: Problem, settings: Raster) -> Raster | str:
    """A tile no side of which is longer than its axis."""
    axes, segments = _axes(problem), settings.segments
    if len(settings.tile) != len(axes):
        return _misread(problem, {})
    if not 1 <= segments <= axes[0]:
        return _wrong_segments(axes)
    sides = tile_within(axes, settings.tile)
    return sides if isinstance(sides, str) else Raster(sides, segments)


def _odd(problem: Problem) -> Iterator[Raster]:
    axes = _axes(problem)
    single, odd = odd_tiles(axes)
    yield from (Raster(single), Raster(odd, min(2, axes[0])))


def unturned(problem: Problem) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """For each axis whether what moves along it never turns into another one, and whether nothing turns into it from another
    one, as the transition's structural zeros tell. Directions flip axes, and so change nothing of this."""
    rank = len(problem.axes or ())
    turns = ~np.eye(rank, dtype=np.bool_)
    if problem.facts is not None:
        turns = turns & problem.facts.bounds.allowed
    straight, pure = (tuple(not any(line) for line in table) for table in (turns.T.tolist(), turns.tolist()))
    return straight, pure


def _refuses(problem: Problem) -> str | None:
    """Why the scan cannot be swept."""
    if problem.axes is None:
        return "it needs a grid, whose lines all have states of their own"
    if len(problem.axes) < 2:
        return f"it needs a grid of two axes or more, and this one has {len(problem.axes)}"
    if problem.counts.nodes == 0:
        return "there are no nodes to sweep over"
    return needs_scalar_gates(problem)


def _cost(problem: Problem, settings: Raster, target: Target) -> Candidate:
    cut, segments = settings.cut(_axes(problem)), settings.segments
    matrices, states, inside = _matrices(problem, cut), _border(problem, cut, target), _inside(problem, cut)
    # A slab's states are made again, but nothing is read of them; and those of a segment once more.
    again = replace(states, name="border states, again")
    repeated = (replace(matrices, name="tile matrices, again"), again, again) if segments > 1 else (again,)
    swept = (adjoint(inside), adjoint(states))
    forward, training = _memory(problem, cut, segments)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(matrices, states, inside),
        backward=(*repeated, *swept, adjoint(matrices)),
        memory_forward=forward,
        memory_backward=training,
    )


def _memory(problem: Problem, cut: Tiling, segments: int) -> tuple[int, int]:
    """Peak bytes of inference and training: inputs in every direction's own order and again tile by tile, a segment's matrices,
    border states, and what the backward pass keeps of them."""
    lanes, item = problem.lanes, problem.accumulator
    filled = cut.sizes
    inputs = lanes * prod(filled) * (2 * problem.key + 2 * problem.value) * item
    matrices = lanes * cut.count // segments * (cut.nodes + cut.edges) ** 2 * item
    lines = lanes * boundary(filled) * problem.state * item
    slab = lanes * prod(cut.tiles[1:]) * cut.edges * problem.state * item
    kept_lines = lanes * prod(filled[1:]) * problem.state * item * _kept(cut, segments)
    forward = problem.io_bytes + 2 * inputs + 2 * matrices + 2 * lines
    return forward, 2 * problem.io_bytes + 3 * inputs + 5 * matrices + 3 * lines + slab + kept_lines


def _matrices(problem: Problem, cut: Tiling) -> Stage:
    """The recurrence inside tiles, every node with a row of numbers for the edges and nodes of its tile; all tiles at once."""
    rank = len(cut.tile)
    sources = problem.lanes * cut.count * (cut.nodes + cut.edges)
    flops = sources * cut.nodes * 2 * rank * (rank + 2)
    moved = sources * (cut.nodes + cut.edges) * problem.accumulator
    return Stage("tile matrices", "vector", flops, moved, steps=cut.nodes)


def _border(problem: Problem, cut: Tiling, target: Target) -> Stage:
    """Reading, writing and passing on the border states, tile by tile.

    A node reads one state of a straight axis and those of all lines of another, and so on: see `tile.py` beside this.
    """
    tiles, state, sides = problem.lanes * cut.count, problem.state, cut.tile
    lines = [cut.nodes // side for side in sides]
    turning, joined = ([count for count, keeps in zip(lines, kept, strict=True) if not keeps] for kept in unturned(problem))
    touched = sum(turning) + sum(joined) + 2 * len(sides) - len(turning) - len(joined)
    flops = 2 * tiles * state * (cut.nodes * touched + sum(turning) * sum(joined))
    moved = tiles * cut.edges * state * problem.accumulator
    held = problem.lanes * boundary(cut.sizes) * state * problem.accumulator
    products = tiles * (1 + 2 * sum(lines) - sum(turning) - sum(joined))
    return array_stage(target, "border states", "matmul", flops, moved, held, steps=cut.count, products=products)


def _inside(problem: Problem, cut: Tiling) -> Stage:
    """Attention inside tiles."""
    tiles, columns = problem.lanes * cut.count, problem.key + problem.value
    flops, numbers = 2 * tiles * cut.nodes**2 * columns, tiles * cut.nodes * (cut.nodes + 2 * columns)
    return Stage("attention in tiles", "matmul", flops, numbers * problem.accumulator, products=2 * tiles)


STRATEGY = Strategy(
    NAME,
    "tiles in raster order, states between them",
    Raster,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
)
