"""A grid as a chain of rows: runs of rows meet in the few edges between them, and no gating matrix is ever whole.

Work `4 N^2 d` for attention and `2 N^2 width` for each direction; a number for each pair of nodes is held for one level of the
hierarchy of runs, or for a part of its targets. The gates may be any scalars: edges are not collapsed to nodes, as a row's
matrices are of one size with and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import (
    DISPATCHED,
    TRAINING_OPS,
    adjoint,
    gate_ops,
    gates_stage,
    needs_scalar_gates,
    over_sources,
    shared_passes,
)
from stmlang.strategies.base import Offers, Strategy
from stmlang.strategies.rows.settings import Cut, Rows

NAME = "rows"
LONGEST = 8
"""Rows of a proposed first run at most: they are joined one by one, each in a program of its own."""
TARGETS = 256
"""How many targets of a block are worked on at a time where they are streamed."""
MOST_PAIRS = 46_340**2
"""Of one block: beyond, one head's scores have 2^31 entries."""
PAIR_PASSES = 6
"""How often a number of a block's scores and mask is written or read."""
LAYOUT_PASSES = 7
"""What it costs to lay out queries, keys and values for a level, in passes over inputs and outputs: measured on a CPU, where
such copies run far below the bandwidth."""
FRESH, FRESH_PASSES = 8 * 2**20, 8
"""Arrays of pairs beyond so many bytes are taken from the system anew in every call, which costs as much as so many passes."""
TABLE_PASSES = 8
"""How often a number of a row's matrices is written or read while they are made."""


def _axes(problem: Problem) -> tuple[int, ...]:
    assert problem.axes is not None
    return problem.axes


def _propose(problem: Problem) -> Sequence[Rows] | str:
    """Rows across the longest axis; first runs of up to `LONGEST` rows; whole blocks and streamed ones."""
    axes = _axes(problem)
    axis, nodes = axes.index(max(axes)), prod(axes)
    listed = [Rows(axis, rows, targets) for rows in _lengths(axes[axis]) for targets in (nodes, TARGETS)]
    settings = [entry for entry in listed if entry.targets == nodes or _streams(entry.cut(axes))]
    return [entry for entry in settings if _fits(entry.cut(axes))] or "no block of its pairs can be numbered"


def _streams(cut: Cut) -> bool:
    """Whether the blocks of any level are worked on part by part."""
    return any(cut.streams(level) for level in range(cut.levels))


def _lengths(size: int) -> Iterator[int]:
    """Lengths of first runs: as short as doubling from them reaches the size, those first that fill up the least."""
    found = {-(-size // 2**level) for level in range(size.bit_length())}
    yield from sorted(length for length in found if length <= LONGEST)


def _fits(cut: Cut) -> bool:
    largest = max([cut.run**2, *(cut.tile(level) * (cut.run << level) for level in range(cut.levels))])
    return largest <= MOST_PAIRS


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its settings are the numbers `axis`, `rows` and `targets`"


def _fitted(problem: Problem, settings: Rows) -> Rows | str:
    """First runs of as many rows as the axis has at most."""
    axes, axis = _axes(problem), settings.axis
    if not 0 <= axis < len(axes):
        return f"the axis is one of 0 to {len(axes) - 1}, not {axis}"
    if settings.rows < 1 or settings.targets < 1:
        return f"`rows` and `targets` are positive, not {settings.rows} and {settings.targets}"
    fitting = Rows(axis, min(settings.rows, axes[axis]), settings.targets)
    cut = fitting.cut(axes)
    return fitting if _fits(cut) else f"blocks of {cut.run:,} nodes with {cut.targets:,} targets are too large to number"


def _odd(problem: Problem) -> Iterator[Rows]:
    axes = _axes(problem)
    yield Rows(axis=0, rows=1, targets=1)
    yield Rows(axis=len(axes) - 1, rows=odd_length(max(axes)), targets=3)


def _refuses(problem: Problem) -> str | None:
    if reason := needs_scalar_gates(problem):
        return reason
    if problem.axes is None or len(problem.axes) < 2:
        return "it needs a grid of two axes or more"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    return None


def _cost(problem: Problem, settings: Rows, _: Target) -> Candidate:
    cut = settings.cut(_axes(problem))
    gates, tables, attention = gates_stage(problem), _table_stage(problem, cut), _attention_stage(problem, cut)
    laid = Stage("layouts", "vector", 0, (2 + LAYOUT_PASSES * cut.levels) * problem.io_bytes)
    fresh = _fresh_stage(problem, cut)
    # Streamed, the backward pass makes scores and masks again.
    backward = adjoint(attention, flops=3.0 if _streams(cut) else 2.0, moved=2.5 if _streams(cut) else 2.0)
    held, kept = _pair_bytes(problem, cut)
    table_bytes = _table_numbers(problem, cut) * problem.accumulator
    ops = gate_ops(problem) + _ops(problem, cut)
    return Candidate(
        NAME,
        settings,
        (gates, tables, laid, attention, fresh),
        (backward, adjoint(fresh), adjoint(laid), adjoint(tables), adjoint(gates)),
        memory_forward=2 * problem.io_bytes + 2 * table_bytes + held,
        memory_backward=3 * problem.io_bytes + (3 + cut.levels) * table_bytes + max(2 * held, kept),
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _table_numbers(problem: Problem, cut: Cut) -> int:
    """`S` and `M` of all nodes and `T` of the first runs."""
    return problem.lanes * cut.width * (2 * cut.nodes + cut.runs * cut.width)


def _table_stage(problem: Problem, cut: Cut) -> Stage:
    """Rows, first runs, and runs twice as long level by level: `T`, half of `S` and half of `M` are multiplied by a `T`."""
    lanes, width = problem.lanes, cut.width
    joined = 2 * lanes * cut.nodes * width * width * (cut.rows + 3)
    doubled = 2 * lanes * width * width * sum(cut.nodes + (cut.runs >> level) * width for level in range(1, cut.levels))
    numbers = _table_numbers(problem, cut)
    seen = lanes * cut.nodes * cut.run
    products = lanes * (cut.runs * (cut.rows - 1) + sum(2 * cut.runs >> level for level in range(1, cut.levels)))
    return Stage(
        "rows and runs",
        "matmul",
        joined + doubled,
        (TABLE_PASSES * numbers + 2 * cut.levels * numbers + 4 * seen) * problem.accumulator,
        ops=_ops(problem, cut) // DISPATCHED,
        products=products,
    )


def _attention_stage(problem: Problem, cut: Cut) -> Stage:
    """Scores, mask and values of every pair of nodes once."""
    scans = problem.batch * problem.heads
    pairs = scans * shared_passes(problem) * cut.nodes**2
    crossed = pairs * (cut.runs - 1) // cut.runs
    senses = problem.directions / (2 if problem.scan.combine == "sum" and problem.directions > 1 else problem.directions)
    flops = pairs * (2 * problem.key + 2 * problem.value + 1) + int(crossed * 2 * senses * cut.width)
    flops = flops // cut.nodes * over_sources(cut.nodes)
    blocks = cut.runs + sum(cut.runs >> level for level in range(cut.levels))
    steps = sum((cut.run << level) // cut.tile(level) for level in range(cut.levels) if cut.streams(level))
    return Stage(
        "attention between runs",
        "matmul",
        flops,
        PAIR_PASSES * pairs * problem.accumulator,
        steps=steps,
        ops=8 * (1 + cut.levels),
        products=3 * scans * blocks,
    )


def _fresh_stage(problem: Problem, cut: Cut) -> Stage:
    """What is lost where scores and masks of a level are so large that their memory is taken from the system anew."""
    scans = problem.batch * problem.heads * shared_passes(problem)
    blocks = [scans * cut.nodes * cut.tile(level) * problem.accumulator for level in range(cut.levels)]
    large = sum(block for level, block in enumerate(blocks) if block > FRESH and not cut.streams(level))
    return Stage("fresh memory for pairs", "vector", 0, FRESH_PASSES * large)


def _pair_bytes(problem: Problem, cut: Cut) -> tuple[int, int]:
    """Bytes of scores and masks held at a time, and of those that a backward pass keeps of levels that are not streamed."""
    lanes = problem.batch * problem.heads * shared_passes(problem) * problem.accumulator
    blocks = [cut.nodes * cut.tile(level) for level in range(cut.levels)]
    held = max([cut.nodes * cut.run, *blocks])
    whole = [cut.nodes * cut.run, *(n for level, n in enumerate(blocks) if not cut.streams(level))]
    return 3 * lanes * held, 3 * lanes * sum(whole)


def _ops(problem: Problem, cut: Cut) -> int:
    return 60 + 20 * problem.directions + 25 * cut.rows + 90 * cut.levels


STRATEGY = Strategy(
    NAME,
    "rows of a grid, joined to runs that meet in the edges between them",
    Rows,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    offers=Offers(gating=True),
)
"""Any two axes or more, and no facts but that gates are scalars."""
