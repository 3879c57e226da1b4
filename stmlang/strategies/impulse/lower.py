"""Constant gates: one impulse response for each direction and head, which no batch of inputs multiplies, then attention."""

from __future__ import annotations

from math import prod
from typing import cast

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower.adapters import by_block
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.merge_tree import whole_block
from stmlang.lower.operands import Operands, flip, lanes_of, scalars
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary
from stmlang.scan.scan import Direction
from stmlang.strategies.impulse.response import Gates, impulse_response
from stmlang.strategies.impulse.settings import Impulse
from stmlang.strategies.impulse.toeplitz import attend_tiles, attend_whole, profile, tile_tables, toeplitz


def _settings(context: LoweringContext) -> Impulse:
    return cast(Impulse, context.settings)


def _axes(context: LoweringContext) -> tuple[int, ...]:
    assert context.axes is not None
    return context.axes


def _tables(context: LoweringContext) -> Tables:
    axes, settings = _axes(context), _settings(context)
    return None if settings.whole(axes) else tile_tables(axes, settings.tile)


def _responses(context: LoweringContext, operands: Operands) -> Array:
    """`(direction, head, *axes)`: every direction's response in its own coordinates."""
    axes = _axes(context)
    first = (slice(None), slice(None), *(0 for _ in axes))
    gates = Gates(*(lanes_of(gate[first]) for gate in scalars(operands)))
    return impulse_response(gates, axes).reshape(*operands.source.shape[:2], *axes)


def _outputs(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
    """Directions that are summed are one profile before the single attention pass."""
    axes, settings, scan = _axes(context), _settings(context), context.problem.scan
    profiles = profile(_responses(context, operands), scan.directions)
    if scan.combine == "sum":
        profiles = _summed(profiles)
    senses = scan.directions[0].senses
    query, key, value = (flip(array[0], senses, 1) for array in operands.inputs)
    if settings.whole(axes):
        return attend_whole(profiles, query, key, value)
    return attend_tiles(tables, settings.tile, profiles, query, key, value)


def _summed(profiles: Array) -> Array:
    """The sum over directions as a product with ones, which XLA computes once: a sum it would fold into the mask, and flip, pad
    and add up all directions again for each entry."""
    flat = profiles.reshape(profiles.shape[0], -1)
    return matmul(jnp.ones((1, len(flat)), flat.dtype), flat).reshape(1, *profiles.shape[1:])


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    """The gating matrix from the response; what crosses the border by merging."""
    del tables
    axes = _axes(context)
    forward = [Direction((1,) * len(axes))] * operands.source.shape[0]
    matrix = toeplitz(profile(_responses(context, operands), forward), axes, axes)
    matrix = matrix.reshape(*matrix.shape[:2], prod(axes), prod(axes))
    return whole_block(context, (), operands)._replace(gating=transposed(matrix))


LOWERING = by_block(_tables, _block, _outputs)
