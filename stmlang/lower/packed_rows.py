"""Many graphs at once: gating matrices row by row, then attention in blocks.

Nodes lie in cells of `w` places, which small graphs share and of which large ones take several. What an edge (in `packed_nodes`
a node) holds of the nodes of a cell is a row of `w` numbers, path weights and no states; there is one for each cell that its
graph is in. With `s` the rows of an item, arcs `a` between items, their weights `W`, and `b` what starts at an item,

    s[i] = b[i] + sum over arcs a into i of W[a] s[origin a].

The rows are found level by level; everything before and after is one pass over all graphs. The adjoint of the sweep is the same
sweep over the reversed graph, a weight's cotangent the product of two rows, summed over cells. The rows of the nodes in a
cell, as a matrix over the places of two cells that share a graph, are a block of the gating matrix: what is left is attention,
for all blocks at once.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from stmlang.graph.capacity import Capacity
from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.packed_attention import Graphs, Vectors, attended
from stmlang.lower.packed_tables import Packed, Steps, Sweep
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.tables import PAD, Indices, take

Rows = Float[Array, "row lane place"]

Outputs = Callable[[Sequence[LoweringContext], Sequence[Tables], Sequence[Operands], bool], Array]
"""As `stmlang.lower.adapters.without_states` takes them."""

# --- the sweep -------------------------------------------------------------------------------------------------------


def _swept(table: Steps, weights: Float[Array, "number lane"], start: Rows) -> Rows:
    weights = jnp.concatenate([weights, jnp.zeros_like(weights[:1])])

    def step(rows: Rows, row: Steps) -> tuple[Rows, None]:
        passed = _there(rows, row.read) * _there(weights, row.number)[..., None]
        return rows.at[row.write].add(passed, mode="drop", wrap_negative_indices=False), None

    return jax.lax.scan(step, alike(start, weights).at[-1].set(0), table)[0]


def _there(array: Array, places: Indices) -> Array:
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
    products = jnp.sum(_there(back, sweep.goal) * _there(rows, sweep.origin), axis=-1)
    return None, jax.ops.segment_sum(products, sweep.weight, len(weights)), back


propagated = with_adjoint(_plain, _forward, _backward)
"""`(sweep, weights, start) -> rows`, where `start` has one row more than there are items: zero, whatever it holds."""


# --- all directions --------------------------------------------------------------------------------------------------


class Joined(NamedTuple):
    """The rows of all directions side by side: row `i` of direction `k` is row `k rows + i`, and so with edges and weights.
    What a row adds to is of one gating matrix for all directions."""

    sweep: Sweep
    start: Int[Array, " edge"]
    own: Int[Array, " edge"]
    column: Int[Array, " edge"]
    edge: Int[Array, " edge_row"]
    read: Int[Array, " edge_row"]
    write: Int[Array, " edge_row"]


def joined(directions: Sequence[Packed], rows: int, weights: int) -> Joined:
    """`rows` of items, and `weights`, of each direction."""
    edges, edge_rows = len(directions[0].column), len(directions[0].edge)

    def beside(tables: Sequence[Indices], size: int, axis: int = 0) -> Array:
        """What is past the end is one past the last of all."""
        moved = (jnp.where(table < size, table + k * size, len(directions) * size) for k, table in enumerate(tables))
        return jnp.concatenate(list(moved), axis=axis)

    def senses(tables: Sequence[Steps]) -> Steps:
        read, number, write = zip(*tables, strict=True)
        # What is written past the end must be dropped there, where a row of zeros is kept.
        written = beside(write, rows, 1)
        written = jnp.where(written < len(directions) * rows, written, PAD)
        return Steps(beside(read, rows, 1), beside(number, weights, 1), written)

    sweeps = [direction.sweep for direction in directions]
    sweep = Sweep(
        senses([sweep.ahead for sweep in sweeps]),
        senses([sweep.back for sweep in sweeps]),
        beside([sweep.origin for sweep in sweeps], rows),
        beside([sweep.goal for sweep in sweeps], rows),
        beside([sweep.weight for sweep in sweeps], weights),
    )
    return Joined(
        sweep,
        beside([direction.start for direction in directions], rows),
        beside([direction.own for direction in directions], edge_rows),
        jnp.concatenate([direction.column for direction in directions]),
        beside([direction.edge for direction in directions], edges),
        beside([direction.read for direction in directions], rows),
        jnp.concatenate([direction.write for direction in directions]),
    )


# --- attention -------------------------------------------------------------------------------------------------------


def outputs_by(reading: Callable[[Capacity, Sequence[Packed], Sequence[Operands]], tuple[Joined, Rows]]) -> Outputs:
    """Attention once for the sum of all directions, whose inputs are the same, or for each. `reading` says what every row of
    edges, of all directions side by side, brings the head of its edge."""

    def outputs(
        contexts: Sequence[LoweringContext], tables: Sequence[Tables], operands: Sequence[Operands], summed: bool
    ) -> Array:
        room = contexts[0].problem.room
        assert room is not None
        made, brought = reading(room, tables, operands)
        inputs = [array[0] for array in operands[0].inputs]
        ends, rows = ([made.write], [brought]) if summed else (jnp.split(array, len(tables)) for array in (made.write, brought))
        size = tables[0].target.size
        blocks = (jax.ops.segment_sum(row, end, size) for row, end in zip(rows, ends, strict=True))
        return jnp.stack([_attended(tables[0], gating, *inputs) for gating in blocks])

    return outputs


def scalar(gates: Sequence[Array]) -> Float[Array, "number lane"]:
    """A gate of one number for each site and head, of all directions side by side."""
    assert all(gate.shape[-STATE_AXES:] == (1,) * STATE_AXES for gate in gates)
    return jnp.concatenate([gate.reshape(gate.shape[1], -1).T for gate in gates])


def placed(rows: Rows, at: Array, column: Array, values: Float[Array, "edge lane"]) -> Rows:
    """Rows with the values of edges added in a column each."""
    return rows.at[at[:, None], jnp.arange(values.shape[1]), column[:, None]].add(values, mode="drop")


def _attended(
    made: Packed,
    gating: Float[Array, "block_and_place lane place"],
    query: Float[Array, "lane node key"],
    key: Float[Array, "lane node key"],
    value: Float[Array, "lane node value"],
) -> Float[Array, "lane node value"]:
    """`((Q K^T) o G^T) V` block by block, graphs that share one kept apart; padding is in no cell and reads zero."""
    (blocks, width), lanes = made.target.shape, query.shape[0]
    cells = blocks - len(made.across)

    def at(array: Array, nodes: Indices) -> Vectors:
        return jnp.moveaxis(take(jnp.moveaxis(array, 1, 0), nodes, 0), 2, 1)

    graphs = Graphs(jnp.asarray(made.target_graph), jnp.asarray(made.source_graph))
    gates = jnp.moveaxis(gating.reshape(blocks, width, lanes, width), 2, 1)
    read = attended(graphs, gates, at(query, made.target), at(key, made.source), at(value, made.source))
    read = read[:cells].at[made.across].add(read[cells:], mode="drop")
    return jnp.moveaxis(take(jnp.moveaxis(read, 1, 2).reshape(cells * width, lanes, -1), made.place, 0), 1, 0)
