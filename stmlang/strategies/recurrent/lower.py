"""Recurrent: the recurrence itself, all nodes of a level at once, one level after the other.

On a grid the levels are its wavefronts. Any transition will do: scalar, elementwise on state axes, or matrices on them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.sweeps import edge_profile, step_shape
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.block_recurrence import grid_sweep, run_sweep
from stmlang.lower.contractions import contract, matmul
from stmlang.lower.gates import squeezed, varies
from stmlang.lower.level_recurrence import edge_levels_tables, run_levels
from stmlang.lower.merge import node_border
from stmlang.lower.operands import STATE_AXES, Operands, lanes_of
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


# --- gates with state axes -------------------------------------------------------------------------------------------


def apply_gate(gate: Array, state: Array) -> Array:
    """A gate `(*sites, *state axes)` applied to states `(*sites, track, key, value)`; sites broadcast.

    On an axis with its primed twin it acts as a matrix, on the others elementwise.
    """
    if any(size > 1 for size in gate.shape[gate.ndim - STATE_AXES + 1 :: 2]):
        return _apply_matrix(gate, state)
    return _elementwise(gate) * state


def _elementwise(gate: Array) -> Array:
    """A gate that acts elementwise as `(*sites, track, key, value)`."""
    key, _, value, _, track, _ = gate.shape[gate.ndim - STATE_AXES :]
    gate = gate.reshape(*gate.shape[: gate.ndim - STATE_AXES], key, value, track)
    return jnp.moveaxis(gate, -1, -3)


def _apply_matrix(gate: Array, state: Array) -> Array:
    """A gate that is a matrix on some state axis, and elementwise or a matrix on the others."""
    letters = varies(gate)
    sites = jnp.broadcast_shapes(gate.shape[: gate.ndim - STATE_AXES], state.shape[:-3])
    gate = jnp.broadcast_to(gate, (*sites, *gate.shape[gate.ndim - STATE_AXES :]))
    gate, state = squeezed(gate), jnp.broadcast_to(state, (*sites, *state.shape[-3:]))
    inner = "".join(letter.upper() if letter.upper() in letters else letter for letter in "tkv")
    flat = (part.reshape(-1, *part.shape[len(sites) :]) for part in (gate, state))
    return contract(f"s{letters},s{inner}->stkv", *flat).reshape(*sites, *state.shape[-3:])


def inject(source: Array, key: Array, value: Array, track: int) -> Array:
    """`source * outer(k, v)` as `(*sites, track, key, value)`; the sites of key and value broadcast."""
    outer = key[..., None, :, None] * value[..., None, None, :]
    spread = _elementwise(source) * outer
    return jnp.broadcast_to(spread, (*spread.shape[:-3], track, *spread.shape[-2:]))


def read_out(query: Array, state: Array) -> Array:
    """`sum over track and key of q[k] C[track, k, v]`."""
    return jnp.squeeze(matmul(query[..., None, :], state.sum(-3)), -2)


# --- grids -----------------------------------------------------------------------------------------------------------


def _run_grid(tables: Tables, operands: Operands, initial: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    rank = len(axes)

    def flattened(part: Array) -> Array:
        return part.reshape(*part.shape[:2], -1, *part.shape[2 + rank :])

    flat = jax.tree.map(flattened, operands)
    track = initial.shape[3]

    def step(parts: Operands, entering: Array) -> tuple[Array, Array]:
        leaving = _port_sum(apply_gate(parts.transition, entering[:, None]), 2)
        leaving = leaving + inject(parts.source, parts.key[:, None], parts.value[:, None], track)
        marked = _port_sum(apply_gate(parts.mark, entering), 1)
        return leaving, read_out(parts.query, marked)

    def one(blocks: Operands, slots: Array) -> tuple[Array, Array]:
        return run_sweep(tables, blocks, step, slots)

    outputs, final = jax.vmap(one)(*jax.tree.map(lanes_of, (flat, initial)))
    return outputs.reshape(*initial.shape[:2], *axes, outputs.shape[-1]), final.reshape(initial.shape)


def _port_sum(array: Array, axis: int) -> Array:
    """The sum over an axis of ports, of which there are few."""
    parts = [jax.lax.index_in_dim(array, k, axis, keepdims=False) for k in range(array.shape[axis])]
    return sum(parts[1:], start=parts[0])


LOWERING = direction_by_direction(_tables, _run)
