"""Many small graphs at once: gating matrices row by row, then attention in tiles that several graphs share.

A tile has room for `w` nodes, and no graph is in two. What an edge (in `packed_nodes` a node) holds of every node of its tile
is a row of `w` numbers, path weights and no states: with `s` the row of an item, arcs `a` between items, their weights `W`, and
`b` what starts at an item,

    s[i] = b[i] + sum over arcs a into i of W[a] s[origin a].

The rows are found level by level; everything before and after is one pass over all graphs. The adjoint of the sweep is the same
sweep over the reversed graph, and a weight's cotangent is the product of two rows. The rows of nodes, as matrices over the
places of a tile, are the gating matrices: what is left is attention, for all tiles at once.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stmlang.graph.buckets import Room
from stmlang.graph.dag import DAG
from stmlang.graph.line import reversed_line_edges
from stmlang.graph.packing import packed
from stmlang.graph.steps import NONE, Arcs, edge_arcs, steps
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.block import contract
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.strategy import Closed, Outputs, Setup, Tables
from stmlang.lower.tables import ABSENT, Places, take
from stmlang.plan.levels import Profile, StepShape, edge_profile, step_shape

Rows = Float[Array, "item lane place"]


class Steps(NamedTuple):
    """A step reads rows, weighs them and adds them to the rows `write`. What is read or weighs nothing is one past the last."""

    read: Int[Places, "T W"]
    number: Int[Places, "T W"]
    write: Int[Places, "T W"]


class Sweep(NamedTuple):
    """Both senses, and for each weight the items that its arc leads from and to."""

    ahead: Steps
    back: Steps
    origin: Int[Places, " number"]
    goal: Int[Places, " number"]


class Packed(NamedTuple):
    """`tail`, `head` are the nodes of every edge; `place` is where each node stands in the tiles laid end to end, `node` the
    node at each place, `column` its place in its own tile."""

    sweep: Sweep
    tail: Int[Places, " edge"]
    head: Int[Places, " edge"]
    place: Int[Places, " node"]
    column: Int[Places, " node"]
    node: Int[Places, "tile place"]


# --- tables ----------------------------------------------------------------------------------------------------------


def packed_tables(setup: Setup, profile: Profile, sweep: Callable[[DAG, StepShape], Sweep]) -> Packed:
    """The tables of a direction; `sweep` makes those of a sweep over its items, whose levels have the arcs of `profile`."""
    room = setup.problem.room
    assert room is not None
    return _laid_out(setup.dag, room, step_shape(setup.problem, profile, room.tile), sweep)


@lru_cache(maxsize=8)  # the scans of a model are put on the same batch, one after the other
def _laid_out(dag: DAG, room: Room, shape: StepShape, sweep: Callable[[DAG, StepShape], Sweep]) -> Packed:
    counts = [part.node_count for part in dag.parts]
    places = packed(counts, room.tile).places(counts)
    place, column = np.full(dag.node_count, ABSENT), np.full(dag.node_count, ABSENT)
    place[: len(places)], column[: len(places)] = places, places % room.tile
    node = np.full(room.tiles * room.tile, ABSENT)
    node[places] = np.arange(len(places))
    ends = (part.astype(np.int32) for part in (dag.tail, dag.head, place, column, node.reshape(room.tiles, room.tile)))
    return Packed(sweep(dag, shape), *ends)


def _tables(setup: Setup) -> Tables:
    return packed_tables(setup, edge_profile(setup.problem, setup.dag), _edge_sweep)


def _edge_sweep(dag: DAG, shape: StepShape) -> Sweep:
    back = edge_arcs(dag.reversed())
    back = replace(back, number=np.append(reversed_line_edges(dag), NONE)[back.number])
    line = np.concatenate([dag.line_edges, np.full((dag.spare_line_edges, 2), ABSENT)]).astype(np.int32)
    return Sweep(steps_of(edge_arcs(dag), shape), steps_of(back, shape), line[:, 0], line[:, 1])


def steps_of(arcs: Arcs, shape: StepShape) -> Steps:
    """The tables of one sense."""
    made = steps(arcs, shape.width, shape.room)
    pads = np.full((len(made.write), 1), ABSENT)
    item = np.take_along_axis(np.concatenate([made.write, pads], axis=1), made.added_to, axis=1)  # of each edge
    write = np.take_along_axis(np.concatenate([item, pads], axis=1), made.part_of, axis=1)
    return Steps(made.read, made.number, write.astype(np.int32))


# --- the sweep -------------------------------------------------------------------------------------------------------


def _swept(table: Steps, weights: Float[Array, "number lane"], start: Rows) -> Rows:
    weights = jnp.concatenate([weights, jnp.zeros_like(weights[:1])])

    def step(rows: Rows, row: Steps) -> tuple[Rows, None]:
        passed = _there(rows, row.read) * _there(weights, row.number)[..., None]
        return rows.at[row.write].add(passed, mode="drop", wrap_negative_indices=False), None

    return jax.lax.scan(step, start.at[-1].set(0), table)[0]


def _there(array: Array, places: Places) -> Array:
    """Rows that are all there."""
    return array.at[places].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _plain(sweep: Sweep, weights: Array, start: Rows) -> Rows:
    return _swept(sweep.ahead, weights, start)


def _forward(sweep: Sweep, weights: Array, start: Rows) -> tuple[Rows, Rows]:
    rows = _plain(sweep, weights, start)
    return rows, rows


def _backward(arguments: tuple[Sweep, Array, Rows], rows: Rows, cotangent: Rows) -> tuple[None, Array, Rows]:
    sweep, weights, _ = arguments
    back = _swept(sweep.back, weights, cotangent)
    return None, jnp.sum(_there(back, sweep.goal) * _there(rows, sweep.origin), axis=-1), back


propagated = with_adjoint(_plain, _forward, _backward)
"""`(sweep, weights, start) -> rows`, where `start` has one row more than there are items: zero, whatever it holds."""


# --- all directions --------------------------------------------------------------------------------------------------


class Joined(NamedTuple):
    """The graphs of all directions side by side: item `i` of direction `k` is item `k items + i`, and so with weights. Of every
    edge `tail` and `head` are nodes of the one graph that all are directions of."""

    sweep: Sweep
    tail: Int[Array, " edge"]
    head: Int[Array, " edge"]
    place: Int[Places, " node"]
    column: Int[Places, " node"]


def joined(parts: Sequence[Packed], items: int) -> Joined:
    numbers = parts[0].sweep.origin.shape[0]

    def beside(tables: Sequence[Places], size: int, axis: int) -> Array:
        """What is past the end is one past the last of all."""
        moved = (jnp.where(table < size, table + k * size, len(parts) * size) for k, table in enumerate(tables))
        return jnp.concatenate(list(moved), axis=axis)

    def senses(tables: Sequence[Steps]) -> Steps:
        read, number, write = zip(*tables, strict=True)
        # What is written past the end must be dropped there, where a row of zeros is kept.
        written = beside(write, items, 1)
        written = jnp.where(written < len(parts) * items, written, ABSENT)
        return Steps(beside(read, items, 1), beside(number, numbers, 1), written)

    sweeps = [part.sweep for part in parts]
    sweep = Sweep(
        senses([sweep.ahead for sweep in sweeps]),
        senses([sweep.back for sweep in sweeps]),
        beside([sweep.origin for sweep in sweeps], items, 0),
        beside([sweep.goal for sweep in sweeps], items, 0),
    )
    tail, head = (jnp.concatenate(ends) for ends in ([part.tail for part in parts], [part.head for part in parts]))
    return Joined(sweep, tail, head, parts[0].place, parts[0].column)


# --- attention -------------------------------------------------------------------------------------------------------


def outputs_by(reading: Callable[[Sequence[Packed], Sequence[Operands]], tuple[Joined, Rows]]) -> Outputs:
    """Attention once for the sum of all directions, whose inputs are the same, or for each. `reading` says what every edge, of
    all directions side by side, brings its head of each node of their tile."""

    def outputs(setups: Sequence[Setup], tables: Sequence[Tables], operands: Sequence[Operands], summed: bool) -> Array:
        del setups
        made, brought = reading(tables, operands)
        inputs = [part[0] for part in operands[0].inputs]
        ends, rows = ([made.head], [brought]) if summed else (jnp.split(array, len(tables)) for array in (made.head, brought))
        size = tables[0].node.size
        at_heads = (jax.ops.segment_sum(one, _places(made.place, end), size) for one, end in zip(rows, ends, strict=True))
        return jnp.stack([_attended(tables[0], gating, *inputs) for gating in at_heads])

    return outputs


# --- a direction -----------------------------------------------------------------------------------------------------


def scalar(gates: Sequence[Array]) -> Float[Array, "number lane"]:
    """A gate of one number for each site and head, of all directions side by side."""
    assert all(gate.shape[-STATE_AXES:] == (1,) * STATE_AXES for gate in gates)
    return jnp.concatenate([gate.reshape(gate.shape[1], -1).T for gate in gates])


def _reading(tables: Sequence[Packed], operands: Sequence[Operands]) -> tuple[Joined, Rows]:
    edges = tables[0].tail.shape[0]
    made = joined(tables, edges)
    every = jnp.arange(len(made.tail))
    width = tables[0].node.shape[1]
    source, mark = scalar([part.source for part in operands]), scalar([part.mark for part in operands])
    start = jnp.zeros((len(every) + 1, source.shape[1], width), source.dtype)
    weights = scalar([part.transition for part in operands])
    rows = propagated(made.sweep, weights, placed(made, start, every, source))
    return made, mark[..., None] * rows[:-1]


def placed(made: Joined, rows: Rows, item: Array, values: Float[Array, "edge lane"]) -> Rows:
    """Rows of items with the values of edges added at the places of the edges' tails."""
    column = _places(made.column, made.tail)
    return rows.at[item[:, None], jnp.arange(values.shape[1]), column[:, None]].add(values, mode="drop")


def _places(table: Places, at: Places) -> Array:
    """Entries of a table of places, absent ones for what is not there."""
    return jnp.take(jnp.asarray(table), at, mode="fill", fill_value=ABSENT)


def _attended(
    made: Packed,
    gating: Float[Array, "tile_and_place lane place"],
    query: Float[Array, "lane node key"],
    key: Float[Array, "lane node key"],
    value: Float[Array, "lane node value"],
) -> Float[Array, "lane node value"]:
    """`((Q K^T) o G^T) V` tile by tile; padding is in no tile and reads zero."""
    (tiles, width), lanes = made.node.shape, query.shape[0]

    def in_tiles(array: Array) -> Array:
        """`(tile, place, lane, index)` as `(tile, lane, place, index)`, tile and lane as one."""
        return jnp.moveaxis(array, 2, 1).reshape(tiles * lanes, width, -1)

    queries, keys, values = (in_tiles(take(jnp.moveaxis(array, 1, 0), made.node, 0)) for array in (query, key, value))
    weights = in_tiles(gating.reshape(tiles, width, lanes, width))
    scores = contract("btk,bsk->bts", queries, keys) * weights
    read = contract("bts,bsv->btv", scores, values)
    by_place = jnp.moveaxis(read.reshape(tiles, lanes, width, -1), 1, 2).reshape(tiles * width, lanes, -1)
    return jnp.moveaxis(take(by_place, made.place, 0), 1, 0)


LOWERING = Closed(_tables, outputs_by(_reading))
