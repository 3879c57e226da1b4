"""Costs that several strategies share. Leading terms only: a prediction has to rank, not to be right to the percent.

Everything counts the batch, the heads and, where it says so, the directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from stmlang.plan.candidate import Stage
from stmlang.plan.problem import Problem

MERGE_OPS = 24
"""Instructions of one merge: four products and the slices and concatenations around them."""


@dataclass(frozen=True, slots=True)
class Merge:
    """`count` merges of a block of `n` nodes and `e` entering (leaving) edges with another like it that it shares `shared`
    edges with; `n_after`, `e_after` of the result."""

    count: int
    n: int
    e: int
    shared: int
    n_after: int
    e_after: int

    @property
    def flops(self) -> int:
        """`S_a T_b`, `T_a T_b`, `T_a M_b`, `S_a M_b` over the shared edges: together `2 shared (n + e)^2`."""
        return 2 * self.count * self.shared * (self.n + self.e) ** 2

    @property
    def numbers(self) -> int:
        """Numbers in all results' S, T, M and G, which are the four blocks of one square."""
        return self.count * (self.n_after + self.e_after) ** 2


def regular_merges(sides: tuple[int, ...]) -> Iterator[Merge]:
    """The merges that build one box of a grid from its nodes: doubling along the last axis first, then the one before."""
    shape = [1] * len(sides)
    for axis in reversed(range(len(sides))):
        while shape[axis] < sides[axis]:
            before = tuple(shape)
            shape[axis] = min(2 * shape[axis], sides[axis])
            count = prod(-(-side // size) for side, size in zip(sides, shape, strict=True))
            shared = prod(before) // before[axis]
            yield Merge(count, prod(before), boundary(before), shared, prod(shape), boundary(tuple(shape)))


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
        yield Merge(large.blocks, now, small.boundary, shared, after, large.boundary)
        now, small = after, large


def merge_stage(problem: Problem, merges: Iterable[Merge], tiles: int = 1) -> tuple[Stage, int]:
    """Building blocks' matrices for every direction, `tiles` times; and the bytes of the last result with its operands."""
    steps = list(merges)
    lanes, item = problem.lanes * tiles, problem.accumulator
    flops = sum(step.flops for step in steps)
    # Each merge reads both operands and writes the result once for the products and once for putting them together.
    traffic = sum(3 * step.numbers for step in steps)
    largest = max((step.numbers for step in steps), default=0)
    stage = Stage("build gating matrix", "matmul", lanes * flops, lanes * item * traffic, ops=MERGE_OPS * len(steps) // 2)
    return stage, lanes * item * largest


def gates_stage(problem: Problem) -> Stage:
    """Evaluating the gates: a handful of elementwise operations on every number that goes in."""
    return Stage("gates", "vector", 8 * problem.io_bytes // problem.item, 2 * problem.io_bytes, ops=8)


def attention_stage(problem: Problem, blocks: int, n: int, passes: int) -> Stage:
    """Masked attention inside `blocks` blocks of `n` nodes, `passes` times: once for the sum of directions, else once each."""
    pairs = problem.batch * problem.heads * passes * blocks * n * n
    flops = pairs * (2 * problem.key + 2 * problem.value + 1)
    moved = 4 * pairs * problem.accumulator
    return Stage("masked attention", "matmul", flops, moved + problem.io_bytes, ops=4)


def shared_passes(problem: Problem) -> int:
    """Attention passes where the whole topology is one block: gating matrices of directions that are summed add up."""
    return problem.directions if problem.scan.combine == "concat" else 1


def adjoint(stage: Stage, flops: float = 2.0, moved: float = 2.0) -> Stage:
    """The reverse of a stage: a product's adjoint is two products, and its operands are read again."""
    return replace(
        stage,
        name=f"{stage.name}, adjoint",
        flops=int(flops * stage.flops),
        bytes=int(moved * stage.bytes),
        ops=2 * stage.ops,
    )


def needs_scalar_gates(problem: Problem) -> str | None:
    """Why a strategy that multiplies scalar path weights cannot take this scan; None where it can."""
    if problem.state_indices:
        names = ", ".join(sorted(problem.state_indices))
        return f"it needs one number per head for every gate, and here gates act on the state ({names})"
    if problem.track > 1:
        return f"it needs states without a tracking axis, and here track = {problem.track}"
    if problem.scan.normalize == "mlstm":
        return "it has no running maximum, which `normalize mlstm` needs"
    return None
