"""Chains and grids node by node, gates evaluated where they are used: the recurrence as a loop, with an adjoint of its own.

Work `N d^2` for a few multiplications, states in cache, as many sequential steps as nodes. Training keeps the states that cross
some lines of the first axis. It takes every kind of gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import odd_length
from stmlang.cost.late_gates import Erasing, LateGates, late_gates
from stmlang.cost.problem import CORE_GATES, Problem
from stmlang.cost.sweeps import matrix_width
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, array_stage, costed
from stmlang.scan.expression import STATE_INDICES, Expr, LeafRef, free_indices, inside
from stmlang.strategies.base import Needs, Offers, Strategy
from stmlang.strategies.walk.settings import Walk

NAME = "walk"
STRETCHES = (1, 4, 16, 64, 256)
"""Stretches that are proposed: shorter ones keep more states, longer ones make more of them again at once."""
LEAST = 2
"""So many stretches at least; with one, training holds every state."""


def _refuses(problem: Problem) -> str | None:
    """Why a scan is not walked."""
    if problem.axes is None:
        return "it needs a chain or a grid"
    if problem.counts.nodes == 0:
        return "there are no nodes"
    if problem.scan.writes > 1 or problem.scan.reads > 1:
        return "it takes one write and one read a node"
    plain = all(set(problem.scan.gate(name).indices) <= {"out", "in"} for name in CORE_GATES)
    if problem.scan.normalize != "none" and len(problem.axes) == 1 and plain:
        return "it evaluates gates node by node, and those of a normalized chain are brought to one scale first"
    return None


def _propose(problem: Problem) -> Sequence[Walk]:
    """Stretches of a few sizes; one where nothing is kept."""
    assert problem.axes is not None
    if not problem.training:
        return (Walk(problem.axes[0]),)
    return [Walk(every) for every in STRETCHES if LEAST * every <= problem.axes[0]] or [Walk(problem.axes[0])]


def _misread(problem: Problem, values: Mapping[str, object]) -> str:
    del problem, values
    return "its setting is `every`, the places of the first axis between two whose states are kept"


def _fitted(problem: Problem, settings: Walk) -> Walk | str:
    assert problem.axes is not None
    if settings.every < 1:
        return f"states are kept at every so many places, a positive number, not {settings.every}"
    return settings.resized(problem.axes)


def _odd(problem: Problem) -> Iterator[Walk]:
    assert problem.axes is not None
    yield from (Walk(1), Walk(odd_length(problem.axes[0])), Walk(problem.axes[0]))


def _cost(problem: Problem, settings: Walk, target: Target) -> Candidate:
    axes, lanes, item = problem.axes, problem.lanes, problem.accumulator
    assert axes is not None
    late = late_gates(problem)
    state = lanes * problem.state * item
    # The states that cross a line of the first axis, and all that are made within a stretch.
    crossing, stretch = prod(axes[1:]) * state, settings.every * prod(axes[1:]) * len(axes) * state
    kept, early = settings.kept(axes) * crossing, lanes * late.held * item
    nodes = _nodes(problem, target, late, crossing if len(axes) > 1 else state)
    made = array_stage(target, _named("states of a stretch", axes), "vector", 0, 2 * prod(axes) * len(axes) * state, stretch)
    return costed(
        NAME,
        settings,
        problem,
        target,
        forward=(nodes, *_copied(problem, target, late, state)),
        backward=(
            adjoint(nodes),
            *(() if len(axes) == 1 and settings.every == 1 else (_again(nodes, axes), made)),
            array_stage(target, "kept states", "vector", 0, kept, kept if len(axes) == 1 else 0),
        ),
        memory_forward=problem.io_bytes + early + 2 * crossing,
        memory_backward=2 * (problem.io_bytes + early) + kept + 2 * crossing + stretch,
        terms={"loops": len(axes)},
    )


def _nodes(problem: Problem, target: Target, late: LateGates, held: int) -> Stage:
    """A node: what is left of its gates, each gate applied to the states that enter, a source for each that leaves, and the
    query's products. Each state is read and written once, those of each head and direction by themselves."""
    lanes, nodes, state = problem.lanes, problem.counts.nodes, problem.state
    turns = [gate for row in late.transition for gate in row if gate is not None]
    sources = [gate for gate in late.source if gate is not None]
    applied = 2 * sum(_width(problem, gate) for gate in turns) + 2 * len(sources) + 2 * (_read(problem, late) or 1)
    numbers = state * applied + sum(_evaluated(problem, value) for value in (*late.late.values(), *late.distinct))
    moved = 2 * lanes * nodes * len(late.source) * state * problem.accumulator
    name = _named("nodes", problem.axes or ())
    counted = lanes * nodes
    return array_stage(target, name, "vector", counted * numbers, moved, held, steps=nodes, products=counted)


def _copied(problem: Problem, target: Target, late: LateGates, held: int) -> tuple[Stage, ...]:
    """A chain's state where a node reads what enters it: XLA copies what is read before it is overwritten. On grids states are
    written to where others are read from."""
    if len(problem.axes or ()) > 1 or not _read(problem, late):
        return ()
    moved = 2 * problem.lanes * problem.counts.nodes * problem.state * problem.accumulator
    return (array_stage(target, "copies of states", "vector", 0, moved, held),)


def _read(problem: Problem, late: LateGates) -> int:
    """How often the states that enter a node are multiplied to be read, 0 if it reads what leaves it: once each, and by their
    marks where these do not go to the query or the result."""
    leaves = zip(late.transition, late.source, strict=True)
    if any((row, source) == (late.mark, late.direct) for row, source in leaves):
        return 0
    marks = [gate for gate in late.mark if gate is not None]
    return sum(1 + (0 if _goes_aside(gate) else _width(problem, gate)) for gate in marks)


def _goes_aside(gate: Expr | Erasing) -> bool:
    """Whether a mark acts along rows or along columns alone."""
    if isinstance(gate, Erasing):
        return False
    along = set(free_indices(gate)) & set(STATE_INDICES)
    return along <= {"key", "track"} or along == {"value"}


def _width(problem: Problem, gate: Expr | Erasing) -> int:
    """How many numbers of a column an applied gate reads for one of its results: of what is erased a state is read with the
    vector once, and the vector taken away once."""
    return 2 if isinstance(gate, Erasing) else matrix_width(problem)


def _named(stage: str, axes: Sequence[int]) -> str:
    """A chain's one state stays where it is, a grid's lines of them do not: they are fitted apart."""
    return stage if len(axes) == 1 else f"{stage} of lines"


def _evaluated(problem: Problem, value: Expr) -> int:
    """Numbers that a node makes of other values."""
    sizes = {"key": problem.key, "value": problem.value, "track": problem.track}
    made = (expr for expr in inside(value) if not isinstance(expr, LeafRef))
    return sum(prod(sizes.get(index.rstrip("'"), 1) for index in free_indices(expr)) for expr in made)


def _again(nodes: Stage, axes: Sequence[int]) -> Stage:
    """The states of a stretch, made once more."""
    return replace(nodes, name=_named("states again", axes))


STRATEGY = Strategy(
    NAME,
    "node by node, states in cache",
    Walk,
    _refuses,
    _propose,
    _fitted,
    _misread,
    _cost,
    _odd,
    offers=Offers(several=True),
    needs=Needs(local=True),
)
