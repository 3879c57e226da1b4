"""Separable grids by kernels of our own: attention with two tables, in which scores and mask stay on chip.

A kernel works on one tile of 64 targets and goes over tiles of sources, each of some places of one line: it fetches keys,
values and the tables between the two, and makes scores and mask in registers. The adjoint is two such kernels, one for what
targets are due and one for what sources are. What is counted here is what they do; what they take was never measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.lines import lines_in, needs_one_turn, too_many_pairs, walk_tables
from stmlang.cost.on_chip import ON_CHIP, STAGES, attended, parts, products_of_parts, unfit
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, costed, needs_scalar_gates, shared_passes
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.kernel_separable.settings import TILE, WIDTHS, GridTiles, KernelSeparable

NAME = "kernel_separable"


def _refuses(problem: Problem) -> str | None:
    if reason := needs_scalar_gates(problem) or needs_one_turn(problem):
        return reason
    if reason := unfit(problem):
        return reason
    return too_many_pairs(lines_in(problem), 1)


def _propose(problem: Problem) -> Sequence[KernelSeparable] | str:
    """Widths that lines fill by half at least."""
    size = lines_in(problem).size
    wanted = [width for width in WIDTHS if width == WIDTHS[0] or width < 2 * size]
    return [KernelSeparable(width) for width in wanted if _bytes_on_chip(problem, width) <= ON_CHIP]


def _fitted(problem: Problem, settings: KernelSeparable) -> KernelSeparable | str:
    if settings.width not in WIDTHS:
        return f"a tile is {', '.join(map(str, WIDTHS[:-1]))} or {WIDTHS[-1]} wide, not {settings.width}"
    need = _bytes_on_chip(problem, settings.width)
    return settings if need <= ON_CHIP else f"tiles of width {settings.width} need {need:,} bytes on chip of {ON_CHIP:,}"


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `width`, the places of a line in a tile"


def _odd(problem: Problem) -> Iterator[KernelSeparable]:
    del problem
    yield from map(KernelSeparable, WIDTHS)


def _padded(size: int) -> int:
    return -(-size // TILE) * TILE


def _terms(problem: Problem) -> int:
    """Of the mask: walks to later lines and to earlier ones, for each sense along a line, and those within one."""
    first = lines_in(problem).first
    senses = len({direction.senses[first] for direction in problem.scan.directions}) if shared_passes(problem) == 1 else 1
    return 2 * senses + 1


def _bytes_on_chip(problem: Problem, width: int) -> int:
    """Of the kernel of the three that needs most."""
    depth, terms, number = _padded(problem.key) + _padded(problem.value), _terms(problem), 2 * parts(problem)
    column, table = 4 * STAGES * terms * TILE, 4 * terms * TILE * width
    targets = number * (TILE + STAGES * width) * depth + STAGES * table + 2 * column + 4 * TILE * depth // 2
    sources = number * ((STAGES * TILE + width) * depth + 2 * TILE * width) + table + column + 4 * depth * width
    return max(targets, sources) if problem.mode == "training" else targets


def _cost(problem: Problem, settings: KernelSeparable, target: Target) -> Candidate:
    lines = lines_in(problem)
    (tables, stored), grid = walk_tables(problem, lines), GridTiles.of(lines, settings)
    laid_out, moved = _tiles_stage(problem, grid)
    attention = _attention(problem, grid)
    due = _tables_bytes(problem, grid) * (1 + grid.rows)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(tables, laid_out, attention),
        backward=(adjoint(attention), adjoint(laid_out), adjoint(tables)),
        memory_forward=problem.io_bytes + stored + moved,
        memory_backward=2 * problem.io_bytes + 2 * stored + 2 * moved + due,
    )


def _tables_bytes(problem: Problem, grid: GridTiles) -> int:
    """Of the tables as tiles."""
    within = grid.sources * grid.blocks * grid.width**2
    return 4 * attended(problem) * _terms(problem) * (within + grid.lines * grid.targets * TILE)


def _tiles_stage(problem: Problem, grid: GridTiles) -> tuple[Stage, int]:
    """Laying inputs and tables out as tiles, and the bytes that these hold."""
    depth = _padded(problem.key) + _padded(problem.value)
    nodes = grid.targets * TILE + grid.sources * grid.width
    held = attended(problem) * nodes * depth * 2 * parts(problem) + _tables_bytes(problem, grid)
    return Stage("tiles", "vector", held // 4, 2 * held), held


def _attention(problem: Problem, grid: GridTiles) -> Stage:
    """Every tile of targets with every one of sources: products of all parts, and what is fetched for it."""
    depth, terms, numbers = _padded(problem.key) + _padded(problem.value), _terms(problem), 2 * parts(problem)
    tiles = attended(problem) * grid.targets * grid.sources
    products = products_of_parts(problem)
    fetched = grid.width * depth * numbers + 4 * terms * TILE * (grid.width + 1)
    return Stage("attention on chip", "matmul", tiles * TILE * grid.width * 2 * depth * products, tiles * fetched)


STRATEGY = Strategy(
    NAME,
    "a kernel: gating matrix as a product of decays along two axes, on chip",
    KernelSeparable,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    offers=Offers(gating=True),
    needs=Needs(direct=True),
    kernel=True,
)
