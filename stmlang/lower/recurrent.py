"""Recurrent: the recurrence itself, all nodes of a level at once, one level after the other.

On a grid the levels are its wavefronts. Any transition will do: scalar, elementwise on state axes, or matrices on them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.graph.slots import schedule
from stmlang.lower.block import contract, matmul
from stmlang.lower.merge import node_border
from stmlang.lower.operands import STATE_AXES, Operands, lanes_of
from stmlang.lower.strategy import Setup, Stepwise, Tables
from stmlang.lower.sweep import grid_sweep, run_sweep
from stmlang.lower.tables import Places

LETTERS = "kKvVtT"
"""One for each state axis of a gate, in their order: key, key', value, value', track, track'."""


class Steps(NamedTuple):
    """The tables of `graph.slots.Schedule` that the device needs; `slots` numbers the slots."""

    nodes: Places
    line_id: Places
    line_in_slot: Places
    line_out_local: Places
    out_edge: Places
    out_slot: Places
    out_node_local: Places
    in_edge: Places
    in_slot: Places
    in_node_local: Places
    entering_slot: Places
    leaving_slot: Places
    node_at: Places
    slots: Places


def _tables(setup: Setup) -> Tables:
    if setup.axes is not None:
        ones = (1,) * len(setup.axes)
        return grid_sweep(setup.axes, ones, node_border(len(setup.axes)))
    steps = schedule(setup.dag, eager=True)
    tables = {name: getattr(steps, name) for name in Steps._fields if name != "slots"}
    return Steps(**tables, slots=np.arange(steps.slot_count, dtype=np.int32))


def _run(setup: Setup, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    if setup.axes is not None:
        return _run_grid(tables, operands, initial, setup.axes)

    def one(operands: Operands, initial: Array) -> tuple[Array, Array]:
        return _run_steps(tables, operands, initial)

    outputs, final = jax.vmap(one)(*jax.tree.map(lanes_of, (operands, initial)))
    lead = initial.shape[:2]
    return outputs.reshape(*lead, *outputs.shape[1:]), final.reshape(*lead, *final.shape[1:])


# --- gates with state axes -------------------------------------------------------------------------------------------


def varies(gate: Array) -> str:
    """The letters of the state axes along which a gate varies."""
    return "".join(letter for letter, size in zip(LETTERS, gate.shape[gate.ndim - STATE_AXES :], strict=True) if size > 1)


def squeezed(gate: Array) -> Array:
    """A gate without the state axes along which it is the same."""
    first = gate.ndim - STATE_AXES
    return gate.reshape(*gate.shape[:first], *(size for size in gate.shape[first:] if size > 1))


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


# --- ragged topologies -----------------------------------------------------------------------------------------------


def _take(array: Array, table: Places) -> Array:
    return jnp.take(array, table, axis=0, mode="fill", fill_value=0)


def _run_steps(tables: Steps, operands: Operands, initial: Array) -> tuple[Array, Array]:
    """One direction and head of a ragged topology: gates by edge and line edge."""
    track = initial.shape[1]
    slots = jnp.zeros((len(tables.slots), *initial.shape[1:]), initial.dtype).at[tables.entering_slot].set(initial)
    # Gathered before the loop: what a loop body gathers from outside costs its whole size per step in the backward pass.
    places = (tables.out_edge, tables.line_id, tables.in_edge, tables.nodes, tables.nodes, tables.nodes)
    gates = (operands.source, operands.transition, operands.mark)
    taken = [_take(part, place) for part, place in zip((*gates, *operands.inputs), places, strict=True)]
    by_step = Operands(taken[0], taken[1], taken[2], taken[3], taken[4], taken[5])

    def step(state: Array, xs: tuple[Operands, Steps]) -> tuple[Array, Array]:
        parts, at = xs
        passed = apply_gate(parts.transition, _take(state, at.line_in_slot))
        leaving = jax.ops.segment_sum(passed, at.line_out_local, len(at.out_edge), indices_are_sorted=True)
        key, value = (_take(part, at.out_node_local) for part in (parts.key, parts.value))
        leaving = leaving + inject(parts.source, key, value, track)
        marked = apply_gate(parts.mark, _take(state, at.in_slot))
        outputs = read_out(_take(parts.query, at.in_node_local), marked)
        outputs = jax.ops.segment_sum(outputs, at.in_node_local, len(at.nodes), indices_are_sorted=True)
        return state.at[at.out_slot].set(leaving, mode="drop"), outputs

    looped = tables._replace(entering_slot=None, leaving_slot=None, node_at=None, slots=None)
    final, outputs = jax.lax.scan(step, slots, (by_step, looped))
    outputs = outputs.reshape(-1, outputs.shape[-1])
    return jnp.take(outputs, tables.node_at, axis=0), jnp.take(final, tables.leaving_slot, axis=0)


LOWERING = Stepwise(_tables, _run)
