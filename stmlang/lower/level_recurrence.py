"""The recurrence level by level over any DAG, with its own adjoint.

A step adds up the arcs of `stmlang.graph.steps`: it gathers the states that they read, applies their gates, sums what belongs
to one edge, adds the edge's source, reads it, and puts it where it goes. On *edge states* arcs are line edges, with the
transition as their gate. On *node states*, for `transition[out, in] = f[out] g[in]`, arcs are edges,

    C[e] = f[e] s[tail e] + source[e] outer(k, v)          s[n] = sum over e into n of g[e] C[e]

and there is no line graph. The adjoint is the sweep over the reversed graph. It keeps one state an item (nodes, or edges) and
makes everything else again; the forward sweep by itself holds only the states that are still to be read.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from stmlang.cost.sweeps import StepShape
from stmlang.graph.dag import DAG
from stmlang.graph.line import reversed_line_edges
from stmlang.graph.steps import NONE, Arcs, edge_arcs, node_arcs, steps
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.gates import apply_gate, read_state, straight, write_state
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import Factors, Operands
from stmlang.lower.tables import PAD, Indices, take


class Rows(NamedTuple):
    """The tables of `stmlang.graph.steps.Steps` that have a row for each step."""

    read: Int[Indices, "T W"]
    number: Int[Indices, "T W"]
    part_of: Int[Indices, "T W"]
    edge: Int[Indices, "T U"]
    opening: Int[Indices, "T U"]
    added_to: Int[Indices, "T U"]
    write: Int[Indices, "T I"]
    resumed: Bool[Indices, " T"]


class Walk(NamedTuple):
    """One sense of a sweep. `slot` is where items are when only those still to be read are held, `slots` numbers the slots."""

    rows: Rows
    slot: Int[Indices, " items_and_pads"]
    slots: Int[Indices, " slots"]
    initial: Int[Indices, " initial"]
    final: Int[Indices, " final"]


class Levels(NamedTuple):
    """`origin` is the item that holds an edge's state (its tail's, for node states) on the way ahead. Open ends are
    `PAD`."""

    ahead: Walk
    back: Walk
    tail: Int[Indices, " edge"]
    head: Int[Indices, " edge"]
    origin: Int[Indices, " edge"]


def node_levels_tables(dag: DAG, shape: StepShape) -> Levels:
    """Tables for node states, in steps of that shape."""
    arcs = node_arcs(dag)
    return _tables(dag, arcs, node_arcs(dag.reversed()), arcs.read, shape)


def edge_levels_tables(dag: DAG, shape: StepShape) -> Levels:
    """Tables for edge states; likewise."""
    back = edge_arcs(dag.reversed())
    number = np.append(reversed_line_edges(dag), NONE)[back.number]
    return _tables(dag, edge_arcs(dag), replace(back, number=number), np.arange(dag.edge_count), shape)


def _tables(dag: DAG, ahead: Arcs, back: Arcs, origin: np.ndarray, shape: StepShape) -> Levels:
    tail, head = (np.where(end < 0, PAD, end).astype(np.int32) for end in (dag.tail, dag.head))
    return Levels(_walk(ahead, shape), _walk(back, shape), tail, head, origin.astype(np.int32))


def _walk(arcs: Arcs, shape: StepShape) -> Walk:
    made = steps(arcs, shape.width, shape.room)
    rows = Rows(*(getattr(made, name) for name in Rows._fields))
    return Walk(rows, made.slot, np.arange(made.slot_count, dtype=np.int32), made.initial, made.final)


# --- the sweep -------------------------------------------------------------------------------------------------------


class Gates(NamedTuple):
    """Gates and inputs with their sites in front and one axis of lanes. `passed` are the arcs' gates: transitions of line
    edges, or f of edges; `spread` is g of edges, None for edge states."""

    passed: Float[Array, "number lane *state"]
    spread: Float[Array, "edge lane *state"] | None
    source: Float[Array, "edge lane *write *state"]
    mark: Float[Array, "edge lane *read *state"]
    query: Float[Array, "node lane *read key"]
    key: Float[Array, "node lane *write key"]
    value: Float[Array, "node lane *write value"]


States = Float[Array, "item lane track key value"]


def run_levels(tables: Levels, operands: Operands, factors: Factors | None, initial: Array) -> tuple[Array, Array]:
    """Outputs `(direction, head, node, [read], value)` and final states of a bundle of directions; on node states where there
    are factors."""
    lead = initial.shape[:2]
    if tables.tail.shape[0] == 0:  # without edges there is nothing to read
        return jnp.zeros((*operands.query.shape[:-1], operands.value.shape[-1]), operands.value.dtype), initial

    def sites_first(array: Array) -> Array:
        return jnp.moveaxis(array.reshape(lead[0] * lead[1], *array.shape[2:]), 0, 1)

    # What arrays hold on edges where nothing is written or read may be anything.
    source = _zero(tables.tail == PAD, sites_first(operands.source))
    mark = _zero(tables.head == PAD, sites_first(operands.mark))
    inner = (source, mark, *map(sites_first, operands.inputs))
    if factors is None:
        gates = Gates(sites_first(operands.transition), None, *inner)
    else:
        # Open edges lead from and to items of their own, which hold the edge's state and not a node's.
        out, into = sites_first(factors.out), sites_first(factors.into)
        passed, spread = straight(tables.tail == PAD, out), straight(tables.head == PAD, into)
        gates = Gates(passed, spread, *inner)
    outputs, final = sweep(tables, gates, sites_first(initial))

    def lanes_first(array: Array) -> Array:
        return jnp.moveaxis(array, 1, 0).reshape(*lead, array.shape[0], *array.shape[2:])

    return lanes_first(outputs), lanes_first(final)


def _zero(where: Bool[Array, " site"], gate: Array) -> Array:
    return jnp.where(where.reshape(-1, *(1,) * (gate.ndim - 1)), 0, gate)


def _sum_to(array: Array, places: Indices, count: int) -> Array:
    return jax.ops.segment_sum(array, places, count, indices_are_sorted=True)


def _by_step(tables: Levels, rows: Rows, gates: Gates, sourced: Indices, marked: Indices) -> Gates:
    """Everything a step needs, gathered beforehand: a loop body that gathers from outside costs the whole size per step when it
    is differentiated. Edges bring their source, key and value to the rows `sourced`, their mark and query to `marked`."""

    def ends(edges: Indices, end: Indices) -> Indices:
        return jnp.take(end, edges, mode="fill", fill_value=PAD)

    taken = take(gates.passed, rows.number, 0)
    passed = jax.vmap(straight)(rows.number == PAD, taken)
    return Gates(
        passed,
        None if gates.spread is None else take(gates.spread, rows.number, 0),
        take(gates.source, sourced, 0),
        take(gates.mark, marked, 0),
        take(gates.query, ends(marked, tables.head), 0),
        take(gates.key, ends(sourced, tables.tail), 0),
        take(gates.value, ends(sourced, tables.tail), 0),
    )


def _heads(tables: Levels, edges: Indices) -> Indices:
    return jnp.take(tables.head, edges.reshape(-1), mode="fill", fill_value=PAD)


def _walked(tables: Levels, gates: Gates, initial: States, held: bool) -> tuple[Array, Array, States]:
    """Outputs, final states, and the buffer after the last step, which holds every item's state if `held`."""
    walk, rows = tables.ahead, tables.ahead.rows
    items = walk.slot.shape[0] - rows.write.shape[1]

    def at(item: Indices) -> Indices:
        return item if held else jnp.take(walk.slot, item, mode="clip")

    buffer = jnp.zeros((items if held else walk.slots.shape[0], *initial.shape[1:]), initial.dtype)
    buffer = alike(buffer, gates, initial).at[at(walk.initial)].set(initial, mode="drop", unique_indices=True)
    by_step = _by_step(tables, rows, gates, rows.opening, rows.edge)

    def step(state: States, xs: tuple[Gates, Rows]) -> tuple[States, Array]:
        gates, row = xs
        edge = apply_gate(gates.passed, take(state, at(row.read), 0))
        if gates.spread is None:
            edge = _sum_to(edge, row.part_of, row.edge.shape[0])
        edge = edge + write_state(gates.source, gates.key, gates.value, edge.shape[2])
        outputs = read_state(gates.mark, gates.query, edge)
        if gates.spread is not None:
            edge = _sum_to(apply_gate(gates.spread, edge), row.added_to, row.write.shape[0])
        return _put(state, at(row.write), edge, row.resumed), outputs

    buffer, outputs = jax.lax.scan(step, buffer, (by_step, rows))
    flat = outputs.reshape(-1, *outputs.shape[2:])
    h = jax.ops.segment_sum(flat, _heads(tables, rows.edge), gates.query.shape[0])
    return h, take(buffer, at(walk.final), 0), buffer


def _put(state: States, places: Indices, added: States, resumed: Indices) -> States:
    """What a step adds up, written; the first item may have been begun by the step before."""
    begun = jnp.where(resumed, take(state, places[:1], 0), 0)
    return state.at[places].set(added.at[:1].add(begun), mode="drop", unique_indices=True)


def _plain(tables: Levels, gates: Gates, initial: States) -> tuple[Array, Array]:
    return _walked(tables, gates, initial, False)[:2]


def _forward(tables: Levels, gates: Gates, initial: States) -> tuple[tuple[Array, Array], States]:
    h, final, buffer = _walked(tables, gates, initial, True)
    return (h, final), buffer


def _backward(
    arguments: tuple[Levels, Gates, States], held: States, cotangent: tuple[Array, Array]
) -> tuple[None, Gates, States]:
    """The sweep over the reversed graph: the cotangent of a state enters where the state leaves, and is passed back through the
    gates; along the way it meets the state itself, which gives the gates' own."""
    tables, gates, _ = arguments
    walk, rows = tables.back, tables.back.rows
    at_heads, of_final = cotangent

    def gathered(gates: Gates) -> Gates:
        return _by_step(tables, rows, gates, rows.edge, rows.opening)

    by_step, transposed = jax.vjp(gathered, gates)
    outputs = take(at_heads, _heads(tables, rows.opening), 0).reshape(*rows.opening.shape, *at_heads.shape[1:])
    origin = jnp.take(tables.origin, rows.edge, mode="fill", fill_value=PAD)
    buffer = jnp.zeros((walk.slots.shape[0], *of_final.shape[1:]), of_final.dtype)
    buffer = alike(buffer, of_final).at[jnp.take(walk.slot, walk.initial)].set(of_final, mode="drop", unique_indices=True)

    def step(state: States, xs: tuple[Gates, Rows, Array, Array]) -> tuple[States, Gates]:
        gates, row, output, places = xs
        arriving = take(state, jnp.take(walk.slot, row.read, mode="clip"), 0)
        added, gate_cotangents = _step_back(gates, row, take(held, places, 0), arriving, output)
        return _put(state, jnp.take(walk.slot, row.write, mode="clip"), added, row.resumed), gate_cotangents

    buffer, gate_cotangents = jax.lax.scan(step, buffer, (by_step, rows, outputs, origin))
    (back,) = transposed(gate_cotangents)
    return None, back, take(buffer, jnp.take(walk.slot, walk.final), 0)


def _step_back(gates: Gates, row: Rows, held: States, arriving: States, output: Array) -> tuple[States, Gates]:
    """One step of the adjoint: what is added to the cotangents of items, and the cotangents of the step's gates."""
    track = held.shape[2]
    if gates.spread is None:
        edge = held
        of_gate, back = jax.vjp(apply_gate, gates.passed, take(edge, row.part_of, 0))[1](arriving)
        back = _sum_to(back, row.part_of, row.edge.shape[0])
    else:
        edge = apply_gate(gates.passed, held) + write_state(gates.source, gates.key, gates.value, track)
        of_gate, back = jax.vjp(apply_gate, gates.spread, edge)[1](arriving)
    mark, query, read = jax.vjp(read_state, gates.mark, gates.query, edge)[1](output)
    back = back + read
    source, key, value = jax.vjp(partial(write_state, track=track), gates.source, gates.key, gates.value)[1](back)
    if gates.spread is None:
        return back, Gates(of_gate, None, source, mark, query, key, value)
    passed, back = jax.vjp(apply_gate, gates.passed, held)[1](back)
    back = _sum_to(back, row.added_to, row.write.shape[0])
    return back, Gates(passed, of_gate, source, mark, query, key, value)


sweep = with_adjoint(_plain, _forward, _backward)
"""`(tables, gates, initial) -> (outputs, final)`: `(node, lane, *read, value)` and `(leaving, lane, track, key, value)`."""
