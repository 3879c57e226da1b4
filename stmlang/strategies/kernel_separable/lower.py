"""Separable grids by kernels: attention whose mask is made of two tables tile by tile, on chip (see `kernels`).

Scores and mask are never in memory, forward or backward; what is there beside inputs and results are the tables and what they
are due, each laid out as tiles. Second derivatives, and platforms that know no such kernels, take XLA's operations, a line of
targets at a time (`walked_attention`).
"""

from __future__ import annotations

from typing import Any, cast

import jax
from jaxtyping import Array

from stmlang.cost.lines import lines_in
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.kernels import kernel_or, parts_of
from stmlang.lower.line_grid import by_lines
from stmlang.lower.one_turn import Walks
from stmlang.lower.strategy import LoweringContext
from stmlang.lower.walked_attention import attend
from stmlang.strategies.kernel_separable import kernels
from stmlang.strategies.kernel_separable.settings import GridTiles, KernelSeparable
from stmlang.strategies.kernel_separable.tiles import masks, of_between, of_sources, of_targets, of_within, sources, targets

Inputs = tuple[Array, Array, Array, Walks]
"""Queries, keys and values, `(head, node, index)`, and the tables."""


def _attend(context: LoweringContext, *inputs: Any) -> Array:
    grid = GridTiles.of(lines_in(context.problem), cast(KernelSeparable, context.settings))
    count = parts_of(context.problem.dtype)

    def plain(*inputs: Any) -> Array:
        return attend(1, *inputs)

    def forward(*inputs: Any) -> Array:
        return _forward(grid, count, inputs)

    def backward(cotangent: Array, *inputs: Any) -> Inputs:
        return _backward(grid, count, inputs, cotangent)

    def plain_backward(cotangent: Array, *inputs: Any) -> Any:
        return cast(Any, jax.vjp(plain, *inputs)[1](cotangent))

    value, adjoint = kernel_or(forward, plain), kernel_or(backward, plain_backward)

    def pull(inputs: Any, saved: tuple[()], cotangent: Array) -> Any:
        del saved
        return adjoint(cotangent, *inputs)

    def along(inputs: Any, tangents: Any) -> Array:
        return jax.jvp(plain, inputs, tangents)[1]

    return with_adjoint(value, lambda *inputs: (value(*inputs), ()), pull, along=along)(*inputs)


def _forward(grid: GridTiles, count: int, inputs: Inputs) -> Array:
    query, key, value, gates = inputs
    tiled = targets(grid, query, count), sources(grid, key, count), sources(grid, value, count), masks(grid, gates)
    h = kernels.attention(grid, *tiled)
    return of_targets(grid, h, value.shape[-1]).astype(value.dtype)


def _backward(grid: GridTiles, count: int, inputs: Inputs, cotangent: Array) -> Inputs:
    query, key, value, gates = inputs
    tiled = (
        targets(grid, query, count),
        targets(grid, cotangent, count),
        sources(grid, key, count),
        sources(grid, value, count),
        masks(grid, gates),
    )
    due_query, between = kernels.due_targets(grid, *tiled)
    due_key, due_value, within = kernels.due_sources(grid, *tiled)
    turned, level = of_within(grid, within, gates)
    return (
        of_targets(grid, due_query, query.shape[-1]).astype(query.dtype),
        of_sources(grid, due_key, key.shape[-1]).astype(key.dtype),
        of_sources(grid, due_value, value.shape[-1]).astype(value.dtype),
        Walks(
            turned.astype(gates.turned.dtype),
            level.astype(gates.level.dtype),
            of_between(grid, between).astype(gates.across.dtype),
        ),
    )


LOWERING = by_lines(_attend)
