"""Costs that several strategies share. Leading terms only: a prediction has to rank, not to be right to the percent.

Everything counts the batch, the heads and, where it says so, the directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from stmlang.cost.candidate import Stage
from stmlang.cost.problem import Problem
from stmlang.scan.expression import inside

DISPATCHED = 4
"""So many instructions of a program become one dispatched operation, the others being fused into it."""


@dataclass(frozen=True, slots=True)
class Merge:
    """`count` merges, all at once, of a block of `a` nodes and `a_edges` entering (leaving) edges with one of `b` nodes and
    `b_edges`, over `shared` edges. The result has `nodes` and `edges`; `ops` instructions do it."""

    count: int
    a: int
    a_edges: int
    b: int
    b_edges: int
    shared: int
    nodes: int
    edges: int
    ops: int

    @property
    def flops(self) -> int:
        """`S_a T_b`, `T_a T_b`, `T_a M_b`, `S_a M_b` over the shared edges: together a product of two matrices."""
        return 2 * self.count * self.shared * (self.a + self.a_edges) * (self.b + self.b_edges)

    @property
    def numbers(self) -> int:
        """Numbers in all results' S, T, M and G, which are the four blocks of one square."""
        return self.count * (self.nodes + self.edges) ** 2


def regular_merges(sides: tuple[int, ...]) -> Iterator[Merge]:
    """The merges that build one box of a grid from its nodes, axis by axis from the last to the first.

    Along an axis blocks are merged in pairs; where one is left over it waits, and is joined with the next one that is.
    """
    pair_ops, join_ops = (56, 30) if len(sides) == 1 else (110, 90)
    shape = [1] * len(sides)
    for axis in reversed(range(len(sides))):
        lines, count, extent, rest = prod(sides[:axis]), sides[axis], 1, 0
        while count >= 1:
            if count % 2:
                if rest:
                    yield _box_merge(lines, tuple(shape), axis, extent, rest, join_ops)
                rest += extent
            if count > 1:
                yield _box_merge(lines * (count // 2), tuple(shape), axis, extent, extent, pair_ops)
            count, extent = count // 2, 2 * extent
        shape[axis] = sides[axis]


def _box_merge(count: int, shape: tuple[int, ...], axis: int, a: int, b: int, ops: int) -> Merge:
    """Boxes of `shape` except that they are `a` and `b` long along an axis."""

    def box(length: int) -> tuple[int, ...]:
        return (*shape[:axis], length, *shape[axis + 1 :])

    first, second, both = box(a), box(b), box(a + b)
    shared = prod(box(1))
    return Merge(count, prod(first), boundary(first), prod(second), boundary(second), shared, prod(both), boundary(both), ops)


def boundary(sides: tuple[int, ...]) -> int:
    """Edges that enter (as many leave) a box of a grid: one for each line through it, along every axis."""
    return sum(prod(sides[:axis] + sides[axis + 1 :]) for axis in range(len(sides)))


RAGGED_OPS = 160
"""Instructions of merging all pairs of a level by index tables."""


def ragged_merges(problem: Problem, size: int) -> Iterator[Merge]:
    """The merges that build all interval blocks of `size` nodes of a ragged DAG, padded to the widest block of a level."""
    nodes = problem.counts.nodes
    now, small = 1, problem.cut(1)
    while now < min(size, nodes):
        after = min(2 * now, nodes)
        large = problem.cut(after)
        shared = min(small.boundary, max(1, 2 * small.boundary - large.boundary))
        yield Merge(large.blocks, now, small.boundary, now, small.boundary, shared, after, large.boundary, RAGGED_OPS)
        now, small = after, large


def merge_stage(problem: Problem, merges: Iterable[Merge], tiles: int = 1) -> tuple[Stage, int]:
    """Building blocks' matrices for every direction, `tiles` times; and the bytes of the largest result."""
    steps = list(merges)
    lanes, item = problem.lanes * tiles, problem.accumulator
    # Each merge reads both operands and writes the result once for the products and once for putting them together.
    traffic = sum(3 * step.numbers for step in steps)
    stage = Stage(
        "build gating matrix",
        "matmul",
        lanes * sum(step.flops for step in steps),
        lanes * item * traffic,
        ops=merge_ops(problem, steps) // DISPATCHED,
        # Over one shared edge a product is an outer one, and no matrix kernel is called.
        products=lanes * sum(4 * step.count for step in steps if step.shared > 1),
    )
    return stage, lanes * item * max((step.numbers for step in steps), default=0)


def merge_ops(problem: Problem, merges: Iterable[Merge]) -> int:
    """Instructions of all merges: the directions of a ragged topology have tables and so programs of their own."""
    return sum(step.ops for step in merges) * (1 if problem.axes is not None else problem.directions)


def gate_ops(problem: Problem) -> int:
    """Instructions that evaluate the gates and lay them out."""
    count = sum(1 for _ in inside(*(clause.value for gate in problem.scan.gates for clause in gate.clauses)))
    return 10 * (count + problem.directions)


def gates_stage(problem: Problem) -> Stage:
    """Evaluating the gates: a handful of elementwise operations on every number that goes in."""
    # Elementwise operations fuse: about one is dispatched for each leaf, and one to lay each gate out.
    ops = len(problem.scan.leaves) + len(problem.scan.gates)
    return Stage("gates", "vector", 8 * problem.io_bytes // problem.item, 2 * problem.io_bytes, ops=ops)


def attention_stage(problem: Problem, blocks: int, n: int, passes: int) -> Stage:
    """Masked attention inside `blocks` blocks of `n` nodes, `passes` times: once for the sum of directions, else once each."""
    products = problem.batch * problem.heads * passes * blocks
    pairs = products * n * n
    flops = pairs * (2 * problem.key + 2 * problem.value + 1)
    moved = 4 * pairs * problem.accumulator
    return Stage("masked attention", "matmul", flops, moved + problem.io_bytes, ops=4, products=2 * products)


def shared_passes(problem: Problem) -> int:
    """Attention passes where the whole topology is one block: gating matrices of directions that are summed add up."""
    return problem.directions if problem.scan.combine == "concat" else 1


TRAINING_OPS = 2.3
"""Instructions of a forward and a backward pass together, for each of a forward pass."""


def adjoint(stage: Stage, flops: float = 2.0, moved: float = 2.0) -> Stage:
    """The reverse of a stage: a product's adjoint is two products, and its operands are read again."""
    return replace(
        stage,
        name=f"{stage.name}, adjoint",
        flops=int(flops * stage.flops),
        bytes=int(moved * stage.bytes),
        ops=2 * stage.ops,
        products=2 * stage.products,
    )


LARGE, SHORT = 0.6, 200
"""Products over many sources take so much less a flop than the target's rate says, those over so few twice that."""


def over_sources(count: int) -> int:
    """So many sources of attention, weighted by what a product over them takes: measured on a CPU."""
    return int(LARGE * (count + SHORT))


def needs_scalar_gates(problem: Problem) -> str | None:
    """Why a strategy that multiplies scalar path weights cannot take this scan; None where it can."""
    if problem.state_indices:
        names = ", ".join(sorted(problem.state_indices))
        return f"it needs one number per head for every gate, and here gates act on the state ({names})"
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    return None
