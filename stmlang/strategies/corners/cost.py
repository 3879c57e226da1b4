"""Attention on grids of two axes where a path turns at most once (D-mode) and decays are one for each entry of the key, or of
the value.

The scores of a corner, of the sources in its line with the targets in its column, are a product of matrices over decayed keys
and decayed queries. Of the two senses along x, and of the two along y, half of what is made is used. Work `2 N^2 d` for each
direction and `2 N^2 d` once; memory `N c d` for the decayed operands of `c` columns at a time, and `N log(X Y) d`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.lines import Lines, lines_in, needs_one_turn
from stmlang.cost.problem import CORE_GATES, Problem
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, array_stage, costed
from stmlang.strategies.base import Needs, Strategy
from stmlang.strategies.corners.settings import Columns

NAME = "corners"
MOST_PAIRS = 2**31
"""Of all targets with all sources of a head."""
COLUMNS = (1, 2, 4)
"""How many columns at a time are proposed, beside all of them."""


def _refuses(problem: Problem) -> str | None:
    """Why scores are no products over decayed keys, or values."""
    if reason := needs_one_turn(problem):
        return reason
    nodes = problem.counts.nodes
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    state = {index for name in CORE_GATES for index in problem.scan.gate(name).indices} - {"out", "in"}
    if state not in ({"key"}, {"value"}):
        named = ", ".join(sorted(state)) or "one number a head"
        return f"it needs gates that are one per entry of the key, or all of them of the value, not ({named})"
    if 4 * nodes**2 >= MOST_PAIRS:
        return f"four times {nodes:,} targets times {nodes:,} nodes are too many pairs to number"
    return None


def _propose(problem: Problem) -> Sequence[Columns]:
    """All columns at once, or a few."""
    size = lines_in(problem).size
    return [Columns(columns) for columns in COLUMNS if columns < size] + [Columns(size)]


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `columns`, the columns of corners that are worked on at a time"


def _fitted(problem: Problem, settings: Columns) -> Columns | str:
    if settings.columns < 1:
        return f"a positive number of columns is worked on at a time, not {settings.columns}"
    return Columns(min(settings.columns, lines_in(problem).size))


def _odd(problem: Problem) -> Iterator[Columns]:
    yield from (Columns(1), Columns(odd_length(max(problem.axes or (1,)))), Columns(max(problem.axes or (1,))))


def _cost(problem: Problem, settings: Columns, target: Target) -> Candidate:
    lines, item, blocks = lines_in(problem), problem.accumulator, settings.blocks(lines_in(problem))
    factors, decayed, pairs = _numbers(problem, lines)
    stages = _stages(problem, settings, target)
    again = stages if blocks > 1 else ()
    held = item * (factors + decayed // blocks + 2 * pairs // blocks)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=(*again, *adjoints(*stages)),
        memory_forward=problem.io_bytes + held,
        memory_backward=2 * problem.io_bytes + 2 * held,
        terms={"blocks": min(blocks, 2)},
    )


def _senses(problem: Problem, lines: Lines) -> tuple[int, int]:
    """How many senses of y and of x are made at once, of directions that are summed."""
    if problem.scan.combine == "concat":
        return (1, 1)
    senses = [(direction.senses[1 - lines.first], direction.senses[lines.first]) for direction in problem.scan.directions]
    return len({down for down, _ in senses}), len({along for _, along in senses})


def _numbers(problem: Problem, lines: Lines) -> tuple[int, int, int]:
    """Numbers in all: the factors of decays level by level, decayed operands, and pairs of which scores are made."""
    down, along = _senses(problem, lines)
    lanes = problem.lanes // (down * along) or 1
    columns = problem.value if "value" in problem.state_indices else problem.key
    depth = (lines.size - 1).bit_length() + (lines.count - 1).bit_length()
    factors = 3 * problem.lanes * lines.nodes * columns * depth
    decayed = lanes * lines.nodes * columns * (down * lines.size + along * lines.count)
    return factors, decayed, lanes * down * along * lines.nodes**2


def _stages(problem: Problem, settings: Columns, target: Target) -> tuple[Stage, ...]:
    """The factors of decays; what is made of them; the scores of each corner, and the values that they weigh."""
    lines, item, blocks = lines_in(problem), problem.accumulator, settings.blocks(lines_in(problem))
    factors, decayed, pairs = _numbers(problem, lines)
    by_value = "value" in problem.state_indices
    down, along = _senses(problem, lines)
    width, other = (problem.value, problem.key) if by_value else (problem.key, problem.value)
    levels = 1 + max(1, (max(lines.size, lines.count) - 1).bit_length()) // 2
    products = pairs // (lines.nodes * down * along * lines.count)
    # Half of the factors are laid out block by block: read, and written.
    laid = array_stage(target, "blocks of columns", "vector", 0, factors * item, factors * item // 8)
    return (
        *((laid,) if blocks > 1 else ()),
        array_stage(target, "factors of decays", "vector", 2 * factors, factors * item, factors * item // 8),
        array_stage(
            target, "decayed operands", "vector", levels * decayed, decayed * item, decayed * item // (2 * blocks), steps=blocks
        ),
        Stage("corners", "matmul", 2 * pairs * width, decayed * item, products=products),
        Stage(
            "attention",
            "matmul",
            2 * pairs // (down * along) * other,
            2 * problem.lanes * lines.nodes * problem.value * item,
            products=products // lines.size,
        ),
        array_stage(target, "pairs", "vector", 2 * pairs, 2 * pairs * item, pairs * item // blocks),
    )


STRATEGY = Strategy(
    NAME,
    "attention with keys decayed to corners",
    Columns,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    needs=Needs(local=True),
)
