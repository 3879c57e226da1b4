"""Constant gates: one impulse response for each direction and head, which no batch of inputs multiplies, then attention."""

from __future__ import annotations

from math import prod

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.lower import parallel
from stmlang.lower.block import Block, matmul, transposed
from stmlang.lower.operands import Operands, flip, lanes_of, scalars
from stmlang.lower.response import Gates, impulse_response
from stmlang.lower.strategy import Setup, Tables, Whole
from stmlang.lower.toeplitz import attend_tiles, attend_whole, profile, tile_tables, toeplitz
from stmlang.scan.scan import Direction


def _tile(setup: Setup) -> tuple[int, ...]:
    tile = setup.config["tile"]
    assert isinstance(tile, tuple)
    return tile


def _axes(setup: Setup) -> tuple[int, ...]:
    assert setup.axes is not None
    return setup.axes


def _tables(setup: Setup) -> Tables:
    axes, tile = _axes(setup), _tile(setup)
    return () if tile == axes else tile_tables(axes, tile)


def _responses(setup: Setup, operands: Operands) -> Array:
    """`(direction, head, *axes)`: every direction's response in its own coordinates."""
    axes = _axes(setup)
    first = (slice(None), slice(None), *(0 for _ in axes))
    gates = Gates(*(lanes_of(gate[first]) for gate in scalars(operands)))
    return impulse_response(gates, axes).reshape(*operands.source.shape[:2], *axes)


def _outputs(setup: Setup, tables: Tables, operands: Operands) -> Array:
    """Directions that are summed are one profile before the single attention pass."""
    axes, tile, scan = _axes(setup), _tile(setup), setup.problem.scan
    seen = profile(_responses(setup, operands), scan.directions)
    if scan.combine == "sum":
        seen = _summed(seen)
    senses = scan.directions[0].senses
    query, key, value = (flip(part[0], senses, 1) for part in operands.inputs)
    if tile == axes:
        return attend_whole(seen, query, key, value)
    return attend_tiles(tables, tile, seen, query, key, value)


def _summed(profiles: Array) -> Array:
    """The sum over directions as a product with ones, which XLA computes once: a sum it would fold into the mask, and flip, pad
    and add up all directions again for each entry."""
    flat = profiles.reshape(profiles.shape[0], -1)
    return matmul(jnp.ones((1, len(flat)), flat.dtype), flat).reshape(1, *profiles.shape[1:])


def _block(setup: Setup, tables: Tables, operands: Operands) -> Block:
    """The gating matrix from the response; what crosses the border by merging."""
    del tables
    axes = _axes(setup)
    forward = [Direction((1,) * len(axes))] * operands.source.shape[0]
    matrix = toeplitz(profile(_responses(setup, operands), forward), axes, axes)
    matrix = matrix.reshape(*matrix.shape[:2], prod(axes), prod(axes))
    return parallel.LOWERING.block(setup, (), operands)._replace(gating=transposed(matrix))


LOWERING = Whole(_tables, _block, outputs=_outputs, uniform=True)
