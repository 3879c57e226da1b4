"""The gating matrix of a grid of two axes on which paths turn once, as a product of two tables of decays along lines.

Where one turn is structurally zero (D-mode) a path walks along one axis, turns, and walks along the other. An entry of the
gating matrix is then one product of two numbers for each sense along the first axis, made where it is used: all pairs of nodes
at once, or those of a few lines of targets at a time, and then memory is `N (X + Y)` for the tables and one block of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.lines import Lines, lines_in, needs_one_turn, too_many_pairs, walk_tables
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, attention_stages, costed, needs_scalar_gates, shared_passes
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.separable.settings import Separable

NAME = "separable"
BLOCKS = (1, 2, 4, 8)
"""How many lines of targets the proposed blocks have."""


def _propose(problem: Problem) -> Sequence[Separable] | str:
    """All pairs at once, and blocks of a few lines of targets."""
    lines = lines_in(problem)
    rows = [rows for rows in (*BLOCKS, lines.count) if rows <= lines.count and too_many_pairs(lines, rows) is None]
    return too_many_pairs(lines, 1) or [Separable(count) for count in dict.fromkeys(rows)]


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `rows`, the lines of targets in a block"


def _fitted(problem: Problem, settings: Separable) -> Separable | str:
    """Blocks of as many lines of targets as there are at most."""
    if settings.rows < 1:
        return f"a block has a positive number of lines, not {settings.rows}"
    lines = lines_in(problem)
    rows = min(settings.rows, lines.count)
    return too_many_pairs(lines, rows) or Separable(rows)


def _odd(problem: Problem) -> Iterator[Separable]:
    yield from (Separable(1), Separable(odd_length(max(problem.axes or (1,)))))


def _refuses(problem: Problem) -> str | None:
    """Why the gating matrix is no product of two tables."""
    if reason := needs_scalar_gates(problem):
        return reason
    return needs_one_turn(problem)


def _cost(problem: Problem, settings: Separable, target: Target) -> Candidate:
    lines = lines_in(problem)
    (tables, stored), count = walk_tables(problem, lines), settings.blocks(lines)
    attention = _attention(problem, lines, settings, target)
    pairs = settings.rows * lines.size * lines.nodes
    block = problem.batch * problem.heads * shared_passes(problem) * pairs * problem.accumulator
    # Every block adds to what sources are due.
    due = problem.io_bytes // 2 + stored // 2
    added = (Stage("sums over blocks", "vector", 0, due * count),) if count > 1 else ()
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(tables, *attention),
        backward=(*adjoints(*attention), *added, *adjoints(tables)),
        memory_forward=problem.io_bytes + stored + 2 * block,
        memory_backward=2 * problem.io_bytes + 3 * stored + 4 * block,
        terms={"streamed": int(count > 1)},
    )


def _attention(problem: Problem, lines: Lines, settings: Separable, target: Target) -> tuple[Stage, Stage]:
    """Attention block by block, an entry of the gating matrix being a product for each sense along the first axis."""
    passes, count = shared_passes(problem), settings.blocks(lines)
    scans = problem.batch * problem.heads * passes
    return attention_stages(
        problem,
        target,
        scans * count,
        settings.rows * lines.size,
        lines.nodes,
        name="streamed attention" if count > 1 else "masked attention",
        at_once=scans,
        terms=1 if passes > 1 else len({direction.senses[0] for direction in problem.scan.directions}),
        steps=count if count > 1 else 0,
    )


STRATEGY = Strategy(
    NAME,
    "gating matrix as a product of decays along two axes",
    Separable,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    offers=Offers(gating=True),
    needs=Needs(direct=True),
)
