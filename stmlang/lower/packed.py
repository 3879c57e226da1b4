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
    """A step reads rows, weighs them, adds up those of one `target` and adds that to the rows `write`."""

    read: Int[Places, "T W"]
    number: Int[Places, "T W"]
    target: Int[Places, "T W"]
    write: Int[Places, "T W"]


class Sweep(NamedTuple):
    """Both senses, and for each weight the items that its arc leads from and to."""

    ahead: Steps
    back: Steps
    origin: Int[Places, " number"]
    goal: Int[Places, " number"]


class Packed(NamedTuple):
    """`tail`, `head` are the nodes of every edge, `order` the edges sorted by head; `place` is where each node stands in the
    tiles laid end to end, `node` the node at each place, `column` its place in its own tile, of which there are as many as
    `columns`."""

    sweep: Sweep
    tail: Int[Places, " edge"]
    head: Int[Places, " edge"]
    order: Int[Places, " edge"]
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
    order = np.argsort(dag.head, kind="stable")
    ends = (part.astype(np.int32) for part in (dag.tail, dag.head, order, place, column, node.reshape(room.tiles, room.tile)))
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
    added_to = np.concatenate([made.added_to, np.full((len(made.added_to), 1), shape.width, np.int32)], axis=1)
    return Steps(made.read, made.number, np.take_along_axis(added_to, made.part_of, axis=1), made.write)


# --- the sweep -------------------------------------------------------------------------------------------------------


def _swept(table: Steps, weights: Float[Array, "number lane"], start: Rows) -> Rows:
    def step(rows: Rows, row: Steps) -> tuple[Rows, None]:
        passed = take(rows, row.read, 0) * take(weights, row.number, 0)[..., None]
        added = jax.ops.segment_sum(passed, row.target, row.write.shape[0], indices_are_sorted=True)
        return rows.at[row.write].add(added, mode="drop", unique_indices=True), None

    return jax.lax.scan(step, start, table)[0]


def _plain(sweep: Sweep, weights: Array, start: Rows) -> Rows:
    return _swept(sweep.ahead, weights, start)


def _forward(sweep: Sweep, weights: Array, start: Rows) -> tuple[Rows, Rows]:
    rows = _plain(sweep, weights, start)
    return rows, rows


def _backward(arguments: tuple[Sweep, Array, Rows], rows: Rows, cotangent: Rows) -> tuple[None, Array, Rows]:
    sweep, weights, _ = arguments
    back = _swept(sweep.back, weights, cotangent)
    return None, jnp.sum(take(back, sweep.goal, 0) * take(rows, sweep.origin, 0), axis=-1), back


propagated = with_adjoint(_plain, _forward, _backward)
"""`(sweep, weights, start) -> rows`."""


# --- a direction -----------------------------------------------------------------------------------------------------


def outputs_by(gating: Callable[[Packed, Operands], Rows]) -> Outputs:
    """Attention once for the sum of all directions, whose inputs are the same, or for each. `gating` says what the nodes read
    of each node of their tile in one direction."""

    def outputs(setups: Sequence[Setup], tables: Sequence[Tables], operands: Sequence[Operands], summed: bool) -> Array:
        del setups
        rows = [gating(*parts) for parts in zip(tables, operands, strict=True)]
        together = [sum(rows[1:], rows[0])] if summed else rows
        inputs = [part[0] for part in operands[0].inputs]
        return jnp.stack([_attended(tables[0], one, *inputs) for one in together])

    return outputs


def scalar(gate: Array) -> Float[Array, "number lane"]:
    """A gate of one number for each site and head."""
    assert gate.shape[-STATE_AXES:] == (1,) * STATE_AXES
    return gate.reshape(gate.shape[1], -1).T


def _gating(made: Packed, operands: Operands) -> Rows:
    edges = made.tail.shape[0]
    start = placed(made, scalar(operands.source), jnp.arange(edges), edges)
    return at_heads(made, scalar(operands.mark)[..., None] * propagated(made.sweep, scalar(operands.transition), start))


def placed(made: Packed, values: Float[Array, "edge lane"], item: Places, items: int) -> Rows:
    """Rows of items with the values of edges at the places of the edges' tails."""
    columns, lanes = made.node.shape[1], values.shape[1]
    column = _places(made.column, made.tail)
    rows = jnp.zeros((items, lanes, columns), values.dtype)
    return rows.at[item[:, None], jnp.arange(lanes), column[:, None]].add(values, mode="drop")


def _places(table: Places, at: Places) -> Array:
    """Entries of a table of places, absent ones for what is not there."""
    return jnp.take(jnp.asarray(table), at, mode="fill", fill_value=ABSENT)


def at_heads(made: Packed, rows: Float[Array, "edge lane place"]) -> Rows:
    """What the edges bring to each node."""
    nodes = made.place.shape[0]
    return jax.ops.segment_sum(take(rows, made.order, 0), _places(made.head, made.order), nodes, indices_are_sorted=True)


def _attended(
    made: Packed,
    gating: Rows,
    query: Float[Array, "lane node key"],
    key: Float[Array, "lane node key"],
    value: Float[Array, "lane node value"],
) -> Float[Array, "lane node value"]:
    """`((Q K^T) o G^T) V` tile by tile; padding is in no tile and reads zero."""

    def tiles(array: Array) -> Array:
        """`(lane, node, index)` as `(tile, lane, place, index)`, tile and lane as one."""
        found = jnp.moveaxis(take(array, made.node, 1), 1, 0)
        return found.reshape(-1, *found.shape[2:])

    weights = jnp.moveaxis(take(gating, made.node, 0), 2, 1)
    weights = weights.reshape(-1, *weights.shape[2:])
    scores = contract("btk,bsk->bts", tiles(query), tiles(key)) * weights
    read = contract("bts,bsv->btv", scores, tiles(value))
    lanes, count = query.shape[0], made.node.shape[0]
    by_place = jnp.moveaxis(read.reshape(count, lanes, *read.shape[1:]), 1, 0).reshape(lanes, -1, read.shape[-1])
    return take(by_place, made.place, 1)


LOWERING = Closed(_tables, outputs_by(_gating))
