"""The gating matrix of a grid of two axes on which paths turn once, as a product of two tables of decays along lines.

Where one turn is structurally zero (D-mode) a path walks along one axis, turns, and walks along the other. An entry of the
gating matrix is then one product of two numbers for each sense along the first axis, made where it is used: all pairs of nodes
at once, or those of a few lines of targets at a time, and then memory is `N (X + Y)` for the tables and one block of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.problem import Problem
from stmlang.cost.target import Target
from stmlang.cost.work import TRAINING_OPS, adjoint, gate_ops, gates_stage, needs_scalar_gates, over_sources, shared_passes
from stmlang.strategies.base import Offers, Strategy
from stmlang.strategies.separable.settings import Lines, Separable, first_axis, lines_of

NAME = "separable"
MOST_PAIRS = 46_340**2
"""Of a block's targets with all sources: beyond, one head has 2^31 of them."""
BLOCKS = (1, 2, 4, 8)
"""How many lines of targets the proposed blocks have."""
TABLES = 8
"""Tables in all: for each sense along the first axis three of the first walk, one of the last, and their making."""
ENTRY_FLOPS = 2
"""Of an entry of the gating matrix, for each sense along the first axis, at the rate of elementwise work."""
NARROW = 24
"""Products with so many targets run at half the rate of wide ones: measured on a CPU."""
CACHE = 3 * 2**20
"""Bytes of a block's pairs that stay in a cache between the products that make and use them: measured on a CPU."""
ENTRY_PASSES = 3
"""How often a pair's number goes to memory or back where they do not."""
FRESH = 8 * 2**20
"""Arrays of pairs beyond so many bytes are taken from the system anew in every call."""
FRESH_PASSES = 8
"""The same for those: most of it is the making of their pages."""
CARRY_PASSES = 3
"""How often a number that all blocks add to is written or read for each."""


def _propose(problem: Problem) -> Sequence[Separable] | str:
    """All pairs at once, and blocks of a few lines of targets."""
    lines = _lines(problem)
    rows = [rows for rows in (*BLOCKS, lines.count) if rows <= lines.count and _pairs(lines, rows) <= MOST_PAIRS]
    return [Separable(count) for count in dict.fromkeys(rows)] or _too_many(lines, 1)


def _pairs(lines: Lines, rows: int) -> int:
    """Of a block's targets with all sources."""
    return rows * lines.size * lines.nodes


def _too_many(lines: Lines, rows: int) -> str:
    return f"{rows * lines.size:,} targets times {lines.nodes:,} nodes are too many pairs to number"


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `rows`, the lines of targets in a block"


def _fitted(problem: Problem, settings: Separable) -> Separable | str:
    """Blocks of as many lines of targets as there are at most."""
    if settings.rows < 1:
        return f"a block has a positive number of lines, not {settings.rows}"
    lines = _lines(problem)
    rows = min(settings.rows, lines.count)
    return _too_many(lines, rows) if _pairs(lines, rows) > MOST_PAIRS else Separable(rows)


def _odd(problem: Problem) -> Iterator[Separable]:
    yield from (Separable(1), Separable(odd_length(max(problem.axes or (1,)))))


def _refuses(problem: Problem) -> str | None:
    """Why the gating matrix is no product of two tables."""
    if reason := needs_scalar_gates(problem):
        return reason
    if problem.axes is None or len(problem.axes) != 2:
        return "it needs a grid of two axes"
    if problem.facts is None or first_axis(problem.facts) is None:
        return "it needs one of the two turns between the axes to be zero by the equations, so that a path turns at most once"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    return None


def _lines(problem: Problem) -> Lines:
    assert problem.facts is not None
    assert problem.axes is not None
    return lines_of(problem.facts, problem.axes)


def _cost(problem: Problem, settings: Separable, _: Target) -> Candidate:
    lines = _lines(problem)
    gates, (tables, stored), count = gates_stage(problem), _tables_stage(problem, lines), settings.blocks(lines)
    attention, entries = _attention(problem, lines, settings), _entries(problem, lines, settings)
    block = problem.batch * problem.heads * shared_passes(problem) * _pairs(lines, settings.rows) * problem.accumulator
    # The backward pass of a block starts with its scores; of the whole they were kept. Blocks add to what sources are due.
    backward = adjoint(attention, flops=2.0 if count == 1 else 2.5)
    due = problem.io_bytes // 2 + stored // 2
    added = Stage("sums over blocks", "vector", 0, CARRY_PASSES * due * count if count > 1 else 0)
    ops = gate_ops(problem) + 160 + (40 if count > 1 else 0)
    return Candidate(
        NAME,
        settings,
        (gates, tables, attention, entries),
        (backward, added, adjoint(entries, flops=3.0, moved=2.5), adjoint(tables), adjoint(gates)),
        memory_forward=problem.io_bytes + stored + 2 * block,
        memory_backward=2 * problem.io_bytes + 3 * stored + 4 * block,
        op_count=ops,
        op_count_backward=int(TRAINING_OPS * ops),
    )


def _tables_stage(problem: Problem, lines: Lines) -> tuple[Stage, int]:
    """The tables of all directions, and the bytes that they hold."""
    lanes = problem.batch * problem.heads * problem.directions
    numbers = lanes * lines.nodes * (lines.size + lines.count)
    held = TABLES * numbers // 2 * problem.accumulator
    return Stage("tables of decays", "vector", 6 * numbers, 2 * held, ops=24), held


def _attention(problem: Problem, lines: Lines, settings: Separable) -> Stage:
    """The products of attention, block by block."""
    count = settings.blocks(lines)
    products = problem.batch * problem.heads * shared_passes(problem) * count
    flops = 2 * products * (settings.rows * lines.size + NARROW) * over_sources(lines.nodes) * (problem.key + problem.value)
    moved = count * problem.io_bytes
    return Stage("streamed attention", "matmul", flops, moved, steps=count if count > 1 else 0, ops=2, products=2 * products)


def _entries(problem: Problem, lines: Lines, settings: Separable) -> Stage:
    """Entries of the gating matrix times scores: bytes where a block's pairs do not stay in a cache."""
    passes, count = shared_passes(problem), settings.blocks(lines)
    block = problem.batch * problem.heads * passes * _pairs(lines, settings.rows)
    terms = 1 if passes > 1 else len({direction.senses[0] for direction in problem.scan.directions})
    held = block * problem.accumulator
    moved = count * held * (0 if held <= CACHE else ENTRY_PASSES if held <= FRESH else FRESH_PASSES)
    return Stage("entries of the gating matrix", "vector", ENTRY_FLOPS * terms * count * block, moved, ops=2)


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
)
