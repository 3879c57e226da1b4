"""Costs that several strategies share. Leading terms only: a prediction has to rank, not to be right to the percent.

Everything counts the batch, the heads and, where it says so, the directions, and each number once. How often a platform reads
it, and by how much it falls behind its rates, is not written here but in its record: `stmlang.cost.coefficients`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.problem import Problem
from stmlang.cost.settings import Settings
from stmlang.cost.target import Target
from stmlang.scan.expression import PORT_INDICES, SQUARINGS, Index, Spectral, inside
from stmlang.scan.sizes import dense_size

SHARED = "shared"
"""Where the record has the stages that all strategies begin with."""


@dataclass(frozen=True, slots=True)
class Merge:
    """`count` merges, all at once, of a block of `a` nodes and `a_edges` entering (leaving) edges with one of `b` nodes and
    `b_edges`, over `shared` edges. The result has `nodes` and `edges`, and each node so many `rows` that write and `columns`
    that read. What is left `over` of an axis is joined alone."""

    count: int
    a: int
    a_edges: int
    b: int
    b_edges: int
    shared: int
    nodes: int
    edges: int
    over: bool = False
    rows: int = 1
    columns: int = 1

    @property
    def flops(self) -> int:
        """`S_a T_b`, `T_a T_b`, `T_a M_b`, `S_a M_b` over the shared edges: together a product of two matrices."""
        return 2 * self.count * self.shared * (self.rows * self.a + self.a_edges) * (self.columns * self.b + self.b_edges)

    @property
    def numbers(self) -> int:
        """Numbers in all results' S, T, M and G, which are the four blocks of one matrix."""
        return self.count * (self.rows * self.nodes + self.edges) * (self.columns * self.nodes + self.edges)


def by_track(merges: Iterable[Merge], tracks: int) -> Iterator[Merge]:
    """The same of blocks that have an edge for each track."""
    for merge in merges:
        edges = {name: tracks * getattr(merge, name) for name in ("a_edges", "b_edges", "shared", "edges")}
        yield replace(merge, **edges)


def regular_merges(sides: tuple[int, ...]) -> Iterator[Merge]:
    """The merges that build one box of a grid from its nodes, axis by axis from the last to the first.

    Along an axis blocks are merged in pairs; where one is left over it waits, and is joined with the next one that is.
    """
    shape = [1] * len(sides)
    for axis in reversed(range(len(sides))):
        lines, count, extent, rest = prod(sides[:axis]), sides[axis], 1, 0
        while count >= 1:
            if count % 2:
                if rest:
                    yield _box_merge(lines, tuple(shape), axis, extent, rest, over=True)
                rest += extent
            if count > 1:
                yield _box_merge(lines * (count // 2), tuple(shape), axis, extent, extent)
            count, extent = count // 2, 2 * extent
        shape[axis] = sides[axis]


def _box_merge(count: int, shape: tuple[int, ...], axis: int, a: int, b: int, over: bool = False) -> Merge:
    """Boxes of `shape` except that they are `a` and `b` long along an axis."""

    def box(length: int) -> tuple[int, ...]:
        return (*shape[:axis], length, *shape[axis + 1 :])

    first, second, both = box(a), box(b), box(a + b)
    shared = prod(box(1))
    return Merge(count, prod(first), boundary(first), prod(second), boundary(second), shared, prod(both), boundary(both), over)


def boundary(sides: tuple[int, ...]) -> int:
    """Edges that enter (as many leave) a box of a grid: one for each line through it, along every axis."""
    return sum(prod(sides[:axis] + sides[axis + 1 :]) for axis in range(len(sides)))


def ragged_merges(problem: Problem, size: int) -> Iterator[Merge]:
    """The merges that build all interval blocks of `size` nodes of a ragged DAG, padded to the widest block of a level."""
    nodes = problem.counts.nodes
    now, small = 1, problem.cut(1)
    while now < min(size, nodes):
        after = min(2 * now, nodes)
        large = problem.cut(after)
        shared = min(small.boundary, max(1, 2 * small.boundary - large.boundary))
        yield Merge(large.blocks, now, small.boundary, now, small.boundary, shared, after, large.boundary)
        now, small = after, large


def merge_stage(problem: Problem, target: Target, merges: Iterable[Merge], tiles: int = 1) -> tuple[Stage, int]:
    """Building blocks' matrices for every direction, `tiles` times; and the bytes of the largest result."""
    steps = list(merges)
    lanes, item = problem.lanes * tiles, problem.accumulator
    largest = lanes * item * max((step.numbers for step in steps), default=0)
    stage = array_stage(
        target,
        "build gating matrix",
        "matmul",
        lanes * sum(step.flops for step in steps),
        lanes * item * sum(step.numbers for step in steps),
        largest,
        # Over one shared edge a product is an outer one, and no matrix kernel is called.
        products=lanes * sum(4 * step.count for step in steps if step.shared > 1),
    )
    return stage, largest


def merge_terms(problem: Problem, merges: Iterable[Merge]) -> dict[str, int]:
    """What the instructions of merges grow with: along the first axis, along others, with what is left over, and by tables. The
    directions of a ragged topology have tables and so programs of their own."""
    steps = list(merges)
    if problem.axes is None:
        return {"table merges": len(steps) * problem.directions}
    kind = "chain" if len(problem.axes) == 1 else "grid"
    over = sum(step.over for step in steps)
    return {f"{kind} merges": len(steps) - over, f"{kind} joins": over}


def gate_instructions(problem: Problem) -> int:
    """Operations in the gates' equations."""
    return sum(1 for _ in inside(*(clause.value for gate in problem.scan.gates for clause in gate.clauses)))


def gate_stages(problem: Problem) -> tuple[Stage, ...]:
    """Evaluating the gates: elementwise operations on every number that goes in, and what norms of matrices take."""
    gates = Stage("gates", "vector", problem.io_bytes // problem.item, problem.io_bytes)
    norms = spectral_stage(problem)
    return (gates,) if norms is None else (gates, norms)


def spectral_stage(problem: Problem) -> Stage | None:
    """The spectral norms that the stabilizer wrote into gates, by products of matrices alone: for each of them `G = A^T A`, its
    squares one after the other, and one product more (`stmlang.program.spectral`). None where there are none."""
    flops, numbers, products = 0, 0, 0
    for gate in problem.scan.gates:
        for clause in gate.clauses:
            for node in inside(clause.value):
                if isinstance(node, Spectral):
                    count, side = _matrices(problem, gate.indices, node), _side(problem, node)
                    products += (SQUARINGS + 2) * count
                    flops += 2 * (SQUARINGS + 2) * count * side**3
                    numbers += (SQUARINGS + 2) * count * side**2
    if not products:
        return None
    steps = SQUARINGS * (flops > 0)
    return Stage("spectral norms", "matmul", flops, numbers * problem.accumulator, steps=steps, products=products)


def _side(problem: Problem, node: Spectral) -> int:
    """Rows of a matrix whose norm is taken."""
    return prod(_size(problem, first) for first, _ in node.pairs)


def _matrices(problem: Problem, indices: Iterable[Index], node: Spectral) -> int:
    """How many norms of a gate there are: one at every node of every scan, and for every port and entry that is not a row or a
    column."""
    inner = {index for pair in node.pairs for index in pair}
    return problem.lanes * problem.counts.nodes * prod(_size(problem, index) for index in indices if index not in inner)


def _size(problem: Problem, index: Index) -> int:
    """How many values an index takes; of ports of a ragged topology, about how many there are at a node."""
    if index in PORT_INDICES:
        return len(problem.axes) if problem.axes is not None else 1
    return problem.value if index in ("value", "value'") else dense_size(problem.scan, index)


def array_stage(
    target: Target,
    name: str,
    kind: Literal["matmul", "vector"],
    flops: int,
    moved: int,
    held: int,
    *,
    steps: int = 0,
    products: int = 0,
) -> Stage:
    """A stage that moves so many bytes of arrays of `held` bytes each, which may be more than stay in the target's cache."""
    record = target.coefficients
    return Stage(
        name,
        kind,
        flops,
        moved,
        spilled=moved if held > record.cache else 0,
        fresh=moved if held > record.fresh else 0,
        steps=steps,
        products=products,
    )


def attention_stages(
    problem: Problem,
    target: Target,
    products: int,
    targets: int,
    sources: int,
    *,
    name: str = "masked attention",
    at_once: int | None = None,
    terms: int = 1,
    steps: int = 0,
) -> tuple[Stage, Stage]:
    """Masked attention of `products` blocks, each of so many targets and sources, `at_once` of them at a time: the products
    over keys and values, and what is done to each pair, with `terms` numbers that make its mask."""
    pairs, item = products * targets * sources, problem.accumulator
    columns = problem.key + problem.value
    operands = products * (targets + sources) * columns * item
    held = (products if at_once is None else at_once) * targets * sources * item
    return (
        Stage(name, "matmul", 2 * pairs * columns, operands, products=2 * products, steps=steps),
        array_stage(target, f"{name}, pairs", "vector", pairs * (1 + terms), pairs * item, held),
    )


def shared_passes(problem: Problem) -> int:
    """Attention passes where the whole topology is one block: gating matrices of directions that are summed add up."""
    return problem.directions if problem.scan.combine == "concat" else 1


def adjoint(stage: Stage) -> Stage:
    """The reverse of a stage: a product's adjoint is two products, elementwise work is done on values and on their cotangents.
    What it takes beside that, the record says."""
    return replace(stage, name=f"{stage.name}, adjoint", flops=2 * stage.flops, ops=2 * stage.ops, products=2 * stage.products)


def adjoints(*stages: Stage) -> tuple[Stage, ...]:
    """Those of all stages, the last one first."""
    return tuple(adjoint(stage) for stage in reversed(stages))


def costed(
    name: str,
    settings: Settings,
    problem: Problem,
    target: Target,
    *,
    forward: Iterable[Stage],
    backward: Iterable[Stage],
    memory_forward: int,
    memory_backward: int,
    terms: Mapping[str, int] | None = None,
) -> Candidate:
    """A candidate whose stages are counted and not weighed yet: with what all candidates have, the gates and the dispatch of
    the program's operations, everything weighed by the target's coefficients. `terms` counts what a program's length grows
    with, beside the gates' equations and the directions."""
    record = target.coefficients
    counted = {"once": 1, "gates": gate_instructions(problem), "directions": problem.directions, **(terms or {})}
    ops = max(1, record.instruction_count(name, "inference", counted))
    both = max(ops + 1, record.instruction_count(name, "training", counted))
    gates = gate_stages(problem)
    dispatch = Stage("dispatch", "vector", 0, 0, ops=ops)
    later = Stage("dispatch, adjoint", "vector", 0, 0, ops=both - ops)

    def weighed(group: str, stages: Iterable[Stage]) -> tuple[Stage, ...]:
        return tuple(replace(stage, weights=record.weights(group, stage.name)) for stage in stages)

    return Candidate(
        name,
        settings,
        (*weighed(SHARED, gates), *weighed(name, (dispatch, *forward))),
        (*weighed(name, (*backward, later)), *weighed(SHARED, adjoints(*gates))),
        memory_forward=memory_forward,
        memory_backward=memory_backward,
        op_count=ops,
        op_count_backward=both,
        terms=counted,
    )


def needs_path_weights(problem: Problem) -> str | None:
    """Why a strategy that multiplies the weights of paths between tracks of edges cannot take this scan; None where it can."""
    others = problem.state_indices - {"track", "track'"}
    if others:
        names = ", ".join(sorted(others))
        return f"it needs one number per head for every gate, or one for each track, and here gates act on the state ({names})"
    return None


def needs_scalar_gates(problem: Problem) -> str | None:
    """Why a strategy that multiplies scalar path weights cannot take this scan; None where it can."""
    if problem.state_indices:
        names = ", ".join(sorted(problem.state_indices))
        return f"it needs one number per head for every gate, and here gates act on the state ({names})"
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    return None
