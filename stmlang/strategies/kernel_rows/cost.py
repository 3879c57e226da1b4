"""P-mode grids by kernels of our own: runs of rows meet in the edges between them, scores and gates tile by tile on chip.

A kernel works on one tile of 64 nodes and goes over the tiles of its own first run and of the runs beside it, level by level: a
product over keys for the scores, one over edges for the gates, one for the values. The adjoint is such a kernel for targets and
one for sources. What is counted here is what they do; what they take was never measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.on_chip import ON_CHIP, STAGES, attended, parts, products_of_parts, unfit
from stmlang.cost.problem import Problem
from stmlang.cost.runs import LONGEST, run_lengths, run_tables
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, costed, needs_scalar_gates, shared_passes
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.kernel_rows.settings import TILE, KernelRows, RunTiles, padded

NAME = "kernel_rows"
MOST_EDGES = 128
"""Between two runs, of all directions in one sense: what is due to more does not fit in registers."""


def _axes(problem: Problem) -> tuple[int, ...]:
    assert problem.axes is not None
    return problem.axes


def _refuses(problem: Problem) -> str | None:
    if reason := needs_scalar_gates(problem):
        return reason
    if problem.axes is None or len(problem.axes) < 2:
        return "it needs a grid of two axes or more"
    if reason := unfit(problem):
        return reason
    return "there are no nodes" if problem.counts.nodes == 0 else None


def _propose(problem: Problem) -> Sequence[KernelRows] | str:
    """Rows across the longest axis; first runs of up to `LONGEST` rows that fill their tiles about as well as any."""
    axes = _axes(problem)
    axis = axes.index(max(axes))
    if reason := _too_large(problem, axis):
        return reason
    tiles = {rows: RunTiles.of(KernelRows(axis, rows).cut(axes)).tiles for rows in run_lengths(axes[axis])}
    return [KernelRows(axis, rows) for rows, count in tiles.items() if 2 * count < 3 * min(tiles.values())]


def _fitted(problem: Problem, settings: KernelRows) -> KernelRows | str:
    """First runs of as many rows as the axis has, and as are joined, at most."""
    axes, axis = _axes(problem), settings.axis
    if not 0 <= axis < len(axes):
        return f"the axis is one of 0 to {len(axes) - 1}, not {axis}"
    if settings.rows < 1:
        return f"`rows` is positive, not {settings.rows}"
    return _too_large(problem, axis) or KernelRows(axis, min(settings.rows, axes[axis], LONGEST))


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its settings are the numbers `axis` and `rows`"


def _odd(problem: Problem) -> Iterator[KernelRows]:
    axes = _axes(problem)
    yield KernelRows(0, 1)
    yield KernelRows(len(axes) - 1, odd_length(max(axes)))


def _too_large(problem: Problem, axis: int) -> str | None:
    """Why rows across an axis do not fit on chip."""
    edges = _edges(problem, axis)
    if edges > MOST_EDGES:
        return f"at most {MOST_EDGES} edges in one sense fit on chip, and here {edges} lie between two rows of axis {axis}"
    need = _bytes_on_chip(problem, axis)
    return None if need <= ON_CHIP else f"tiles of keys, values and {edges} edges need {need:,} bytes on chip of {ON_CHIP:,}"


def _edges(problem: Problem, axis: int) -> int:
    """Between two runs, of all directions that add up."""
    senses = Counter(direction.senses[axis] for direction in problem.scan.directions)
    together = max(senses.values()) if shared_passes(problem) == 1 else 1
    return together * KernelRows(axis, 1).cut(_axes(problem)).width


def _depth(problem: Problem, axis: int) -> int:
    """Numbers in a node's rows of all three tables."""
    return sum(map(padded, (problem.key, problem.value, _edges(problem, axis))))


def _bytes_on_chip(problem: Problem, axis: int) -> int:
    """Of the kernel that needs most: the adjoint for sources, or without one attention."""
    widths = [padded(size) for size in (problem.key, problem.value, _edges(problem, axis))]
    held = sum(set(widths)) if problem.mode == "training" else widths[1]
    return (1 + STAGES) * TILE * sum(widths) * 2 * parts(problem) + 4 * TILE * (TILE + held)


def _cost(problem: Problem, settings: KernelRows, target: Target) -> Candidate:
    cut = settings.cut(_axes(problem))
    runs, (tables, stored) = RunTiles.of(cut), run_tables(problem, cut, target)
    moved, inside = _tile_bytes(problem, settings, runs)
    laid_out = Stage("tiles", "vector", (moved + inside) // 4, 2 * (moved + inside))
    attention = _attention(problem, settings, runs)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(tables, laid_out, attention),
        backward=(adjoint(attention), adjoint(laid_out), adjoint(tables)),
        memory_forward=problem.io_bytes + (2 + cut.levels) * stored + moved + inside,
        memory_backward=3 * problem.io_bytes + (3 + 2 * cut.levels) * stored + 3 * (moved + inside),
        terms={"rows": cut.rows, "levels": cut.levels},
    )


def _tile_bytes(problem: Problem, settings: KernelRows, runs: RunTiles) -> tuple[int, int]:
    """Of inputs and of the rows of S and M as tiles, and of the gates inside of runs."""
    nodes = attended(problem) * runs.tiles * TILE
    edges = padded(_edges(problem, settings.axis))
    inputs = 2 * (padded(problem.key) + padded(problem.value))
    return nodes * (inputs + 2 * max(runs.levels, 1) * edges) * 2 * parts(problem), 4 * nodes * runs.blocks * TILE


def _attention(problem: Problem, settings: KernelRows, runs: RunTiles) -> Stage:
    """Every tile of targets with every one of sources: products of all parts, and what is fetched for it."""
    depth = _depth(problem, settings.axis)
    pairs = attended(problem) * runs.tiles**2
    products = products_of_parts(problem)
    return Stage(
        "attention on chip", "matmul", pairs * TILE**2 * 2 * depth * products, pairs * TILE * depth * 2 * parts(problem)
    )


STRATEGY = Strategy(
    NAME,
    "a kernel: runs of rows that meet in the edges between them, scores and gates on chip",
    KernelRows,
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
