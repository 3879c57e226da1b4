"""How level sweeps over ragged graphs are cut into steps, and when states can live on nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stmlang.cost.candidate import Candidate
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, array_stage, costed
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.limits import LARGEST
from stmlang.graph.steps import edge_level_sizes, most_steps, node_arcs, step_count

if TYPE_CHECKING:
    from jaxtyping import Int64

STEP_BYTES = 2**15
"""A step costs about as much, however narrow, as arcs with so many bytes of states."""
LARGEST_STEP = 2**20
"""Bytes of states in a step: what it goes over again and again should stay in the cache."""
ALWAYS_TRIED = 16
"""Steps of so many arcs are tried whatever their states take."""


@dataclass(frozen=True, eq=False)
class Profile:
    """How many arcs the levels of a sweep have. Of graphs that come at run time that is not known (`sizes` is None), but that
    `arcs` are in at most `levels` levels."""

    arcs: int
    levels: int
    sizes: Int64[np.ndarray, " levels"] | None = None

    @property
    def widest(self) -> int:
        """The most arcs that a level may have."""
        return self.arcs if self.sizes is None else int(self.sizes.max(initial=1))

    def steps(self, width: int) -> int:
        """How many steps of `width` arcs there are, or what there is room for."""
        return most_steps(self.arcs, self.levels, width) if self.sizes is None else step_count(self.sizes, width)


class StepShape(NamedTuple):
    """The arcs in a step of a sweep; of graphs that come at run time, the steps that there is room for, else None."""

    width: int
    room: int | None


def step_shape(problem: Problem, profile: Profile, state: int | None = None) -> StepShape:
    """How a sweep is cut into steps: wide ones are few, narrow ones pad less. `state` is how many numbers an arc takes from one
    item to another, those of the scan's states unless it says otherwise."""
    each = problem.batch * problem.heads * (problem.state if state is None else state) * problem.accumulator
    fixed = max(1, STEP_BYTES // max(1, each))
    widest = max(1, profile.widest)
    best, width = (float("inf"), 1), 8
    while True:
        arcs = min(width, widest)
        best = min(best, (profile.steps(arcs) * (arcs + fixed), arcs))
        width *= 2
        if width >= 2 * widest or width * each > max(LARGEST_STEP, ALWAYS_TRIED * each):
            return StepShape(best[1], profile.steps(best[1]) if profile.sizes is None else None)


def node_profile(problem: Problem, dag: DAG | None) -> Profile:
    """The arcs of each level of a sweep over node states; of graphs given at run time, what their room says of them."""
    if problem.room is not None or dag is None:
        return Profile(problem.counts.edges, max(problem.counts.levels - 1, 1))
    sizes = np.bincount(node_arcs(dag).level, minlength=1)
    return Profile(int(sizes.sum()), len(sizes), sizes)


def edge_profile(problem: Problem, dag: DAG | None) -> Profile:
    """The same for edge states: a level of arcs leads from one level of nodes to a higher one, so there is one less of them."""
    if problem.room is not None or dag is None:
        return Profile(problem.counts.line_edges, max(problem.counts.levels - 1, 1))
    sizes = edge_level_sizes(dag)
    return Profile(int(sizes.sum()), len(sizes), sizes)


def row_profile(profile: Profile, room: Capacity) -> Profile:
    """The arcs of a sweep over rows of packed graphs, of the arcs of one over their items."""
    return Profile(room.rows(profile.arcs), profile.levels)


def branchless(dag: DAG) -> bool:
    """Whether every node has at most one incoming or at most one outgoing edge: then any transition is of rank one, with the
    transition itself as one factor."""
    ends = (np.bincount(end[end >= 0], minlength=dag.node_count) for end in (dag.head, dag.tail))
    return bool((np.minimum(*ends) <= 1).all())


def needs_node_states(problem: Problem) -> str | None:
    """Why states cannot live on nodes; None where they can."""
    if problem.facts is not None and problem.facts.rank_one is not None:
        return None
    if problem.dag is not None and problem.axes is None and branchless(problem.dag):
        return None
    return "it needs a rank-one transition, f[out] * g[in], or nodes with at most one incoming or one outgoing edge each"


def needs_line_edges(problem: Problem) -> str | None:
    """Why a strategy that numbers the pairs of edges that meet at a node cannot take this graph; None where it can."""
    if problem.counts.line_edges > LARGEST:
        return f"it numbers pairs of edges that meet, and here are {problem.counts.line_edges:,} (at most {LARGEST:,})"
    return None


def doublings(size: int, depth: int) -> int | None:
    """How many factors `(I + T)(I + T^2)(I + T^4)...` make `(I - T)^-1` for a matrix of paths of at most `depth` edges, where
    that is cheaper than putting the inverse together from halves; None where it is not."""
    factors = max(1, depth.bit_length())
    side = 1 << max(size - 1, 0).bit_length()
    by_halves = 2 * side**3 // 3 + 2 * side * SMALL_PRODUCT
    return factors if 4 * (factors - 1) * size**3 <= by_halves else None


SMALL_PRODUCT = 40_000
"""What calling one small matrix product costs, in flops."""


def inverse_cost(size: int, depth: int) -> tuple[int, int, int]:
    """Flops, numbers moved and products of one inverse: by doubling, or by halves, where each level writes its inverses once as
    products and once put together, and reads them for the next."""
    factors = doublings(size, depth)
    if factors is not None:
        return 4 * (factors - 1) * size**3, (8 * (factors - 1) + 2) * size * size, 2 * (factors - 1)
    side = 1 << max(size - 1, 0).bit_length()
    return 2 * side * (side * side - 1) // 3, 6 * side * side, 2 * side


def level_sweep(name: str, problem: Problem, target: Target, profile: Profile, held: int, alive: int) -> Candidate:
    """The costs of a sweep over arcs: per arc one gate or two applied, a source and a mark; each direction of a ragged topology
    is a loop of its own. Training keeps `held` states, a forward sweep `alive` ones. An arc of node states does what a line
    edge does and what an edge does."""
    lanes, state, item = problem.lanes, problem.state, problem.accumulator
    width = step_shape(problem, profile).width
    count = profile.steps(width)
    arcs = lanes * count * width
    # Directions follow each other, and a step's own arrays are as wide as the step.
    lane = lanes // problem.directions
    step = lane * width * state * item
    live = lane * alive * state * item
    sweep = array_stage(
        target,
        "level sweep",
        "vector",
        arcs * state * (2 * (problem.writes + problem.reads) + 2 * matrix_width(problem)),
        arcs * state * item,
        live,
        steps=count * problem.directions,
    )
    inputs = problem.key * (problem.writes + problem.reads) + 2 * problem.value * problem.writes
    gathered = arcs * (inputs + 4 * matrix_width(problem) ** 2) * item
    return costed(
        name,
        NoSettings(),
        problem,
        target,
        forward=(sweep,),
        backward=(adjoint(sweep),),
        memory_forward=problem.io_bytes + live + 4 * step + gathered,
        memory_backward=2 * problem.io_bytes + lanes * held * state * item + live + 8 * step + 3 * gathered,
        terms={"loops": problem.directions},
    )


def matrix_width(problem: Problem) -> int:
    """How many numbers of a column a transition reads for one of its results: the sizes of the axes it mixes."""
    sizes = {"key'": problem.key, "value'": problem.value, "track'": problem.track}
    indices = set(problem.scan.gate("transition").indices)
    return max(1, sum(size for index, size in sizes.items() if index in indices))


TRIANGLES = 8
SHORTEST_TRIANGLE = 32


def triangle_rows(size: int) -> int:
    """How many rows the blocks have in which a triangular system of so many rows is solved: at most `TRIANGLES` blocks, short
    ones not without need."""
    return max(1, min(size, max(SHORTEST_TRIANGLE, -(-size // TRIANGLES))))
