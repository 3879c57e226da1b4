"""Recurrent: the recurrence itself, all nodes of a level at once, one level after the other.

On a grid the levels are its wavefronts. Any transition will do: scalar, elementwise on state axes, or matrices on them.
"""

from __future__ import annotations

import jax
from jaxtyping import Array

from stmlang.cost.sweeps import edge_profile, step_shape
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.block_recurrence import grid_sweep, run_sweep
from stmlang.lower.gates import apply_at_ports, port_sum, read_at_ports, write_at_ports
from stmlang.lower.level_recurrence import edge_levels_tables, run_levels
from stmlang.lower.merge import node_border
from stmlang.lower.operands import Operands, lanes_of
from stmlang.lower.strategy import LoweringContext, Tables


def _tables(context: LoweringContext) -> Tables:
    if context.axes is not None:
        ones = (1,) * len(context.axes)
        return grid_sweep(context.axes, ones, node_border(len(context.axes)))
    shape = step_shape(context.problem, edge_profile(context.problem, context.dag))
    return edge_levels_tables(context.dag, shape)


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    if context.axes is not None:
        return _run_grid(tables, operands, initial, context.axes)
    return run_levels(tables, operands, None, initial)


def _run_grid(tables: Tables, operands: Operands, initial: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    rank = len(axes)

    def flattened(array: Array) -> Array:
        return array.reshape(*array.shape[:2], -1, *array.shape[2 + rank :])

    flat = jax.tree.map(flattened, operands)
    track = initial.shape[3]

    def step(node: Operands, entering: Array) -> tuple[Array, Array]:
        leaving = port_sum(apply_at_ports(node.transition, entering[:, None]), 2)
        leaving = leaving + write_at_ports(node.source, node.key, node.value, track)
        return leaving, read_at_ports(node.mark, node.query, entering)

    def run_lane(blocks: Operands, slots: Array) -> tuple[Array, Array]:
        return run_sweep(tables, blocks, step, slots)

    outputs, final = jax.vmap(run_lane)(*jax.tree.map(lanes_of, (flat, initial)))
    return outputs.reshape(*initial.shape[:2], *axes, *outputs.shape[2:]), final.reshape(initial.shape)


LOWERING = direction_by_direction(_tables, _run)
