"""The delta rule on grids of two axes on which paths turn once: systems along lines, and two attention passes between lines.

Between lines the work is `4 N^2 d` for scores, once for all directions, and `4 N^2 d` for each direction, of which blocks of
lines leave out up to half; memory that of a block's masked scores, all of them when training. Along lines it is linear in `N`
times the length of a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.delta_rule import delta_gates
from stmlang.cost.lines import lines_in, needs_one_turn, too_many_pairs
from stmlang.cost.problem import Problem
from stmlang.cost.sweeps import inverse_cost
from stmlang.cost.target import Target
from stmlang.cost.work import adjoints, array_stage, costed
from stmlang.facts.overwriting import is_key
from stmlang.scan.expression import PORT_INDICES
from stmlang.strategies.base import Needs, Strategy
from stmlang.strategies.delta_separable.settings import LineBlocks

NAME = "delta_separable"
MOST_BLOCKS = 8
"""Each is a program of its own."""
BLOCKS = (1, 2, 4)
"""How many blocks are proposed."""


def _refuses(problem: Problem) -> str | None:
    rule = delta_gates(problem)
    if isinstance(rule, str):
        return rule
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    for name in ("source", "mark"):
        if not set(problem.scan.gate(name).indices) <= set(PORT_INDICES):
            return f"it needs a {name} that is one number for each edge"
    if not is_key(problem.scan, rule.transition.u):
        return "it needs what is erased to be what is under the key, `k`"
    return needs_one_turn(problem)


def _propose(problem: Problem) -> Sequence[LineBlocks] | str:
    lines = lines_in(problem)
    sizes = dict.fromkeys(-(-lines.count // blocks) for blocks in BLOCKS)
    return too_many_pairs(lines, 1) or [LineBlocks(rows) for rows in sizes if too_many_pairs(lines, rows) is None]


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `rows`, the lines of targets in a block"


def _fitted(problem: Problem, settings: LineBlocks) -> LineBlocks | str:
    """Blocks of as many lines of targets as there are at most, and of so many that there are at most `MOST_BLOCKS`."""
    if settings.rows < 1:
        return f"a block has a positive number of lines, not {settings.rows}"
    lines = lines_in(problem)
    rows = min(max(settings.rows, -(-lines.count // MOST_BLOCKS)), lines.count)
    return too_many_pairs(lines, rows) or LineBlocks(rows)


def _odd(problem: Problem) -> Iterator[LineBlocks]:
    yield from (LineBlocks(1), LineBlocks(odd_length(max(problem.axes or (1,)))))


def _cost(problem: Problem, settings: LineBlocks, target: Target) -> Candidate:
    lines, lanes, item = lines_in(problem), problem.lanes, problem.accumulator
    met, held = _pairs(problem, settings)
    between = _between(problem, target, settings)
    along = (
        *_along(problem, lines.count, lines.size, "along lines"),
        *_along(problem, lines.size, lines.count, "across lines"),
    )
    tables = 4 * lanes * lines.nodes * (lines.size + lines.count)
    decays = Stage("tables of decays", "vector", tables, tables * item)
    laid = Stage("operands", "vector", 0, 2 * problem.io_bytes)
    stages = (decays, laid, *along, *between)
    copies = problem.io_bytes * (1 + problem.directions)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=stages,
        backward=adjoints(*stages),
        memory_forward=2 * copies + tables * item + 2 * held * item,
        memory_backward=4 * copies + 3 * tables * item + 2 * met * item,
        terms={"blocks": len(settings.blocks(lines))},
    )


def _pairs(problem: Problem, settings: LineBlocks) -> tuple[int, int]:
    """Pairs of sources and targets that meet, of all directions and of both passes, and the most of one block."""
    lines = lines_in(problem)
    senses = [direction.senses[1 - lines.first] for direction in problem.scan.directions]
    each = list[int]()
    for block in settings.blocks(lines):
        sources = sum(block.stop if sense > 0 else lines.count - block.start for sense in senses)
        each.append(2 * sources * (block.stop - block.start) * lines.size**2)
    scans = problem.batch * problem.heads
    return scans * sum(each), scans * max(each)


def _between(problem: Problem, target: Target, settings: LineBlocks) -> tuple[Stage, ...]:
    """Scores of keys and of queries with keys, what is done to each pair, and the products with what is written."""
    lines, item = lines_in(problem), problem.accumulator
    met, held = _pairs(problem, settings)
    scans, nodes, blocks = problem.batch * problem.heads, lines.nodes, len(settings.blocks(lines))
    scores = 2 * scans * nodes * nodes
    return (
        Stage("scores", "matmul", 2 * scores * problem.key, scores * item, products=2 * scans * blocks),
        array_stage(target, "pairs", "vector", 2 * met, met * item, held * item),
        Stage(
            "written between lines",
            "matmul",
            2 * met * problem.value,
            2 * problem.lanes * nodes * (blocks + 1) * problem.value * item,
            products=2 * problem.lanes * blocks,
        ),
    )


def _along(problem: Problem, count: int, size: int, name: str) -> tuple[Stage, ...]:
    """So many systems of a line's size in each direction, and what is read of them."""
    systems, item = problem.lanes * count, problem.accumulator
    flops, numbers, products = inverse_cost(size, size)
    columns = problem.key + problem.value
    return (
        Stage(f"{name}, inverses", "matmul", systems * flops, systems * numbers * item, products=systems * products),
        Stage(
            name,
            "matmul",
            2 * systems * size * size * (problem.value + columns),
            4 * systems * size * columns * item,
            products=3 * systems,
        ),
        Stage(f"{name}, pairs", "vector", 4 * systems * size * size, 4 * systems * size * size * item),
    )


STRATEGY = Strategy(
    NAME,
    "systems along the lines of a grid, attention between them",
    LineBlocks,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    needs=Needs(deltas=True),
)
