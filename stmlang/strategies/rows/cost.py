"""A grid as a chain of rows: runs of rows meet in the few edges between them, and no gating matrix is ever whole.

Work `4 N^2 d` for attention and `2 N^2 width` for each direction; a number for each pair of nodes is held for one level of the
hierarchy of runs, or for a part of its targets. The gates may be any numbers, or matrices on tracks: edges are not collapsed to
nodes, as a row's matrices are of one size with and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.problem import Problem
from stmlang.cost.runs import Cut, edges_between, run_lengths, run_tables
from stmlang.cost.target import Target
from stmlang.cost.work import (
    adjoint,
    adjoints,
    attention_stages,
    costed,
    needs_path_weights,
    shared_passes,
)
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.rows.settings import Rows

NAME = "rows"
TARGETS = 256
"""How many targets of a block are worked on at a time where they are streamed."""
MOST_PAIRS = 46_340**2
"""Of one block: beyond, one head's scores have 2^31 entries."""


def _axes(problem: Problem) -> tuple[int, ...]:
    assert problem.axes is not None
    return problem.axes


def _propose(problem: Problem) -> Sequence[Rows] | str:
    """Rows across the longest axis; first runs of up to `LONGEST` rows; whole blocks and streamed ones."""
    axes = _axes(problem)
    axis, nodes = axes.index(max(axes)), prod(axes)
    listed = [Rows(axis, rows, targets) for rows in run_lengths(axes[axis]) for targets in (nodes, TARGETS)]
    settings = [entry for entry in listed if entry.targets == nodes or _streams(entry.cut(axes))]
    return [entry for entry in settings if _fits(entry.cut(axes))] or "no block of its pairs can be numbered"


def _streams(cut: Cut) -> bool:
    """Whether the blocks of any level are worked on part by part."""
    return any(cut.streams(level) for level in range(cut.levels))


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
    if reason := needs_path_weights(problem):
        return reason
    if problem.axes is None or len(problem.axes) < 2:
        return "it needs a grid of two axes or more"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    return None


def _cost(problem: Problem, settings: Rows, target: Target) -> Candidate:
    cut = settings.cut(_axes(problem))
    (tables, table_bytes), attention = run_tables(problem, cut, target), _attention_stages(problem, cut, target)
    laid = Stage("layouts", "vector", 0, (1 + cut.levels) * problem.io_bytes)
    held, kept = _pair_bytes(problem, cut)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(tables, laid, *attention),
        backward=(*adjoints(*attention), adjoint(laid), adjoint(tables)),
        memory_forward=2 * problem.io_bytes + 2 * table_bytes + held,
        memory_backward=3 * problem.io_bytes + (3 + cut.levels) * table_bytes + max(2 * held, kept),
        terms={"rows": cut.rows, "levels": cut.levels, "streamed": sum(cut.streams(level) for level in range(cut.levels))},
    )


def _attention_stages(problem: Problem, cut: Cut, target: Target) -> tuple[Stage, ...]:
    """Scores, mask and values of every pair of nodes once: those in first runs, those in two halves of a longer run level by
    level, whose mask is itself a product over the edges between the halves."""
    scans = problem.batch * problem.heads * shared_passes(problem)
    stages = attention_stages(problem, target, scans * cut.runs, cut.run, cut.run, name="attention in runs")
    senses = 2 * problem.directions if shared_passes(problem) > 1 else min(2, problem.directions)
    for level in range(cut.levels):
        sources, targets = cut.run << level, cut.tile(level)
        blocks = scans * (cut.runs >> level)
        squares = sources // targets
        streamed = cut.streams(level)
        name = "streamed attention" if streamed else "attention between runs"
        stages += attention_stages(
            problem,
            target,
            blocks * squares,
            targets,
            sources,
            name=name,
            at_once=blocks,
            terms=senses,
            steps=squares if streamed else 0,
        )
        edges = edges_between(problem, cut)
        crossed = 2 * blocks * sources * sources * senses * edges
        operands = blocks * squares * (targets + sources) * edges * problem.accumulator
        stages += (Stage(f"{name}, masks", "matmul", crossed, operands, products=blocks * squares),)
    return stages


def _pair_bytes(problem: Problem, cut: Cut) -> tuple[int, int]:
    """Bytes of scores and masks held at a time, and of those that a backward pass keeps of levels that are not streamed."""
    lanes = problem.batch * problem.heads * shared_passes(problem) * problem.accumulator
    blocks = [cut.nodes * cut.tile(level) for level in range(cut.levels)]
    held = max([cut.nodes * cut.run, *blocks])
    whole = [cut.nodes * cut.run, *(n for level, n in enumerate(blocks) if not cut.streams(level))]
    return 3 * lanes * held, 3 * lanes * sum(whole)


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
    needs=Needs(direct=True),
)
"""Any two axes or more, and no facts but that gates are numbers, or act on tracks alone."""
