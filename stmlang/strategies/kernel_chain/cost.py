"""Chains by kernels of our own: quadratic inside a chunk of 64 nodes, one state between two.

One kernel hands states from chunk to chunk, lane by lane. Another has a program for every chunk, which reads its state and
makes scores and weights on chip; the adjoint is the first backwards and one more program a chunk. What is counted here is what
they do; what they take was never measured.
"""

from __future__ import annotations

from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.chains import needs_chain
from stmlang.cost.on_chip import parts, products_of_parts, unfit
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings
from stmlang.cost.target import Target
from stmlang.cost.work import adjoint, costed, needs_scalar_gates
from stmlang.strategies.base import plain_strategy

NAME = "kernel_chain"
TILE = 64
"""Nodes in a chunk, and the most that keys and values can have."""


def _refuses(problem: Problem) -> str | None:
    if reason := needs_chain(problem) or needs_scalar_gates(problem):
        return reason
    return unfit(problem, TILE)


def _cost(problem: Problem, target: Target) -> Candidate:
    chunks = -(-problem.counts.nodes // TILE)
    tiles, tile = problem.lanes * chunks, TILE * TILE
    product, state = 2 * TILE * tile * products_of_parts(problem), 4 * tiles * tile
    operands = 2 * parts(problem) * tiles * tile
    laid_out = Stage("tiles", "vector", 8 * tiles * tile, 5 * operands + 2 * state)
    handed_on = Stage("states on chip", "matmul", tiles * product, 2 * operands + state, steps=chunks)
    attention = Stage("chunks on chip", "matmul", 3 * tiles * product, 4 * operands + 3 * state)
    return costed(
        NAME,
        NoSettings(),
        problem,
        target,
        forward=(laid_out, handed_on, attention),
        backward=(adjoint(attention), handed_on, adjoint(laid_out)),
        memory_forward=problem.io_bytes + 5 * operands + 8 * state,
        memory_backward=2 * (problem.io_bytes + 6 * operands + 8 * state),
    )


STRATEGY = plain_strategy(
    NAME,
    "kernels: chunks of a chain on chip, one state between them",
    _refuses,
    _cost,
    kernel=True,
)
