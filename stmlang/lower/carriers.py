"""What the delta rule writes between nodes, and along which paths: carriers, and the scalar parts of what they reach.

A *carrier* is what adds one outer product `k w^T` to states, `w` unknown until what is erased is known. Carriers are the edges
that leave nodes, each with what is written on it, or, where transition and source share their dependence on outgoing edges,
`a[out, in] = f[out] g[in]` and `S[out] = f[out] s`, the nodes: what leaves a node is then one matrix times `f`.

A carrier reaches what erases it, the same set of carriers, and what reads it, the nodes. Both along paths of scalars,

    erased = A~ A  (edges)    or  f (I - a)^-1 g  (nodes)              marked = A~ M    or    f (I - a)^-1 M

with `A~ = (I - A)^-1` over edges. On a regular topology those of edges are made by merging and those of nodes by runs of planes
(`stmlang.lower.grid_paths`), on others by an inverse over edges or nodes.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stmlang.cost.sweeps import doublings
from stmlang.graph.levels import edge_levels, node_levels
from stmlang.lower.contractions import matmul, transposed
from stmlang.lower.grid_paths import grid_paths, read_before
from stmlang.lower.inverse import propagation
from stmlang.lower.merge import merge_grid
from stmlang.lower.merge_tree import arranged, slot_order
from stmlang.lower.operands import Shares
from stmlang.lower.strategy import LoweringContext
from stmlang.lower.summary import Summary
from stmlang.lower.tables import Indices


class Scalars(NamedTuple):
    """The scalar parts of a scan of the delta rule. With `shares` the carriers are nodes, without edges."""

    scale: Float[Array, "direction head *sites out in"]
    mark: Float[Array, "direction head *sites in"]
    shares: Shares | None


class Paths(NamedTuple):
    """Where what is written at carriers, and what enters, arrives: at carriers that erase it, at nodes that read it, and on the
    edges that leave."""

    erased: Float[Array, "direction head carrier carrier"]
    marked: Float[Array, "direction head carrier node"]
    left: Float[Array, "direction head carrier leaving"]
    erased_states: Float[Array, "direction head entering carrier"]
    marked_states: Float[Array, "direction head entering node"]
    passed: Float[Array, "direction head entering leaving"]


class EdgeCarriers(NamedTuple):
    """The edges of a ragged topology in an order in which each comes before every one that it reaches: `place[e]` is where edge
    e stands. The carriers are those that leave a node: `own` are their numbers, `stands` their places, `node` their nodes."""

    line_in: Int[Indices, " line_edge"]
    line_out: Int[Indices, " line_edge"]
    place: Int[Indices, " edge"]
    head: Int[Indices, " edge"]
    own: Int[Indices, " carrier"]
    stands: Int[Indices, " carrier"]
    node: Int[Indices, " carrier"]
    entering: Int[Indices, " entering"]
    leaving: Int[Indices, " leaving"]


class NodeCarriers(NamedTuple):
    """The nodes of a ragged topology in a topological order, `node` their numbers. `row[e]` and `column[e]` are the places of
    an edge's tail and head, `head[e]` the head's number; open ends are one past all nodes."""

    node: Int[Indices, " carrier"]
    row: Int[Indices, " edge"]
    column: Int[Indices, " edge"]
    head: Int[Indices, " edge"]
    entering: Int[Indices, " entering"]
    leaving: Int[Indices, " leaving"]


Carriers = Any
"""`EdgeCarriers` or `NodeCarriers`; on a regular topology, where carriers are nodes in C order, or their ports, nothing."""


def carrier_tables(context: LoweringContext, shared: bool) -> Carriers:
    """The tables of a graph: of its nodes where transition and source are `shared`, else of its edges."""
    dag = context.dag
    if context.axes is not None:
        return None
    head = np.where(dag.head < 0, dag.node_count, dag.head).astype(np.int32)
    if shared:
        order = np.argsort(node_levels(dag), kind="stable")
        place = np.full(dag.node_count + 1, dag.node_count, np.int64)
        place[order] = np.arange(dag.node_count)
        row, column = place[dag.tail], place[dag.head]
        tables = (order, row, column, head, dag.entering, dag.leaving)
        return NodeCarriers(*(table.astype(np.int32) for table in tables))
    order = np.argsort(edge_levels(dag), kind="stable")
    place = np.empty(dag.edge_count, np.int64)
    place[order] = np.arange(dag.edge_count)
    own, line = order[dag.tail[order] >= 0], dag.line_edges
    into, out = place[line[:, 0]], place[line[:, 1]]
    tables = (into, out, place, head, own, place[own], dag.tail[own], place[dag.entering], place[dag.leaving])
    return EdgeCarriers(*(table.astype(np.int32) for table in tables))


def at_carriers(context: LoweringContext, tables: Carriers, nodes: Array, shared: bool) -> Array:
    """What nodes hold, `(direction, head, *nodes, index)`, as what carriers do, `(direction, head, carrier, index)`."""
    flat = nodes.reshape(*nodes.shape[:2], context.dag.node_count, nodes.shape[-1])
    if context.axes is None:
        return jnp.take(flat, tables.node, axis=2)
    return flat if shared else jnp.repeat(flat, len(context.axes), axis=2)


def written(context: LoweringContext, tables: Carriers, source: Array | None, shares: Shares | None) -> Array | None:
    """How much of a node's value each carrier is given, `(direction, head, carrier)`; None where that is one."""
    if shares is not None:
        flat = shares.written.reshape(*shares.written.shape[:2], -1)
        return flat if context.axes is not None else jnp.take(flat, tables.node, axis=2)
    if source is None:
        return None
    flat = source.reshape(*source.shape[:2], -1)
    return flat if context.axes is not None else jnp.take(flat, tables.own, axis=2)


def carrier_paths(context: LoweringContext, tables: Carriers, gates: Scalars) -> Paths:
    """The paths of all carriers, `(direction, head, ., .)`: entering and leaving edges in the order of states, carriers in
    theirs, nodes in that of their numbers (regular: C order of the flipped grid)."""
    if context.axes is not None:
        if gates.shares is not None:
            return _by_grid_nodes(context.axes, gates.shares, gates.mark)
        return _merged(context.axes, gates.scale, gates.mark)
    depth = int((edge_levels if gates.shares is None else node_levels)(context.dag).max(initial=0))
    if gates.shares is None:

        def by_edges(scale: Array, mark: Array) -> Paths:
            return _by_edges(tables, scale, mark, context.dag.node_count, depth)

        return jax.vmap(jax.vmap(by_edges))(gates.scale, gates.mark)

    def by_nodes(out: Array, into: Array, mark: Array) -> Paths:
        return _by_nodes(tables, out, into, mark, depth)

    return jax.vmap(jax.vmap(by_nodes))(gates.shares.out, gates.shares.into, gates.mark)


def _merged(axes: tuple[int, ...], scale: Array, mark: Array) -> Paths:
    """Nodes of a grid as blocks with a row for each port, and a column for each and one that reads."""
    passed = jnp.swapaxes(scale, -1, -2)
    source = jnp.broadcast_to(jnp.eye(len(axes), dtype=scale.dtype), passed.shape)
    reached = jnp.concatenate([passed, mark[..., None]], axis=-1)
    rows, columns = source.shape[-2], reached.shape[-1]
    nothing = jnp.zeros((*source.shape[:-2], rows, columns), source.dtype)
    block, border = merge_grid(Summary(source, passed, reached, nothing), axes)
    block = arranged(block, slot_order(border.entering, axes), slot_order(border.leaving, axes))

    def taken_apart(array: Array) -> tuple[Array, Array]:
        """What erases and what reads."""
        split = array.reshape(*array.shape[:-1], -1, columns)
        return split[..., :-1].reshape(*array.shape[:-1], -1), split[..., -1]

    erased, marked = taken_apart(block.gating)
    erased_states, marked_states = taken_apart(block.mark)
    return Paths(erased, marked, block.source, erased_states, marked_states, block.transition)


def _by_grid_nodes(axes: tuple[int, ...], shares: Shares, mark: Array) -> Paths:
    """Nodes of a grid by its paths; states that enter take those of the nodes that they enter."""
    ports, nodes = range(len(axes)), prod(axes)
    before = [_before(shares.out[..., port], 2 + port) for port in ports]
    paths = grid_paths([shares.into[..., port] * before[port] for port in ports])
    marks = [before[port] * mark[..., port] for port in ports]
    eye = jnp.broadcast_to(jnp.eye(nodes, dtype=paths.dtype), paths.shape)

    def at_side(rows: Array, gate: Array, side: int) -> Array:
        """Rows `(direction, head, row, node)` at the nodes of one side of the grid times a gate of these, port by port."""
        split = rows.reshape(*rows.shape[:-1], *axes)
        met = [_side(split, 3, port, side) * _side(gate[..., port], 2, port, side)[..., None, :] for port in ports]
        return jnp.concatenate(met, axis=-1)

    brought = transposed(at_side(transposed(paths), shares.into, 0))
    own = transposed(at_side(eye, mark, 0))
    return Paths(
        paths - eye,
        read_before(paths, marks),
        at_side(paths, shares.out, -1),
        brought,
        own + read_before(brought, marks),
        at_side(brought, shares.out, -1),
    )


def _before(gate: Array, axis: int) -> Array:
    """At each node what the node before it along an axis holds, and zero where there is none."""
    padding = [(int(k == axis), 0) for k in range(gate.ndim)]
    return jax.lax.slice_in_dim(jnp.pad(gate, padding), 0, gate.shape[axis], axis=axis)


def _side(array: Array, lead: int, port: int, side: int) -> Array:
    """The nodes at one side of a grid, `(*lead, *axes)` as `(*lead, node)`."""
    return jax.lax.index_in_dim(array, side, lead + port, keepdims=False).reshape(*array.shape[:lead], -1)


def _by_edges(tables: EdgeCarriers, scale: Array, mark: Array, nodes: int, depth: int) -> Paths:
    edges, leaving = tables.place.shape[0], len(tables.leaving)
    passed = jnp.zeros((edges, edges), scale.dtype).at[tables.line_in, tables.line_out].add(scale)
    marked = jnp.zeros((edges, nodes), scale.dtype).at[tables.place, tables.head].set(mark, mode="drop")
    ends = jnp.zeros((edges, leaving), scale.dtype).at[tables.leaving, jnp.arange(leaving)].set(1)
    inverse = propagation(passed, doublings(edges, depth))
    reached = matmul(inverse, jnp.concatenate([marked, ends], axis=1))
    erased = (inverse - jnp.eye(edges, dtype=scale.dtype))[:, tables.stands]
    arriving = (erased, reached[:, :nodes], reached[:, nodes:])
    return Paths(*(rows[places] for places in (tables.stands, tables.entering) for rows in arriving))


def _by_nodes(tables: NodeCarriers, out: Array, into: Array, mark: Array, depth: int) -> Paths:
    nodes, entering, leaving = len(tables.node), len(tables.entering), len(tables.leaving)

    def summed(rows: Indices, columns: Indices, weight: Array) -> Array:
        return jnp.zeros((nodes, nodes), weight.dtype).at[rows, columns].add(weight, mode="drop")

    def entered(columns: Indices, weight: Array) -> Array:
        place = (jnp.arange(entering), columns[tables.entering])
        return jnp.zeros((entering, nodes), weight.dtype).at[place].set(weight[tables.entering])

    passed, read = summed(tables.row, tables.column, out * into), summed(tables.row, tables.head, out * mark)
    ends = jnp.zeros((nodes, leaving), out.dtype)
    ends = ends.at[tables.row[tables.leaving], jnp.arange(leaving)].set(out[tables.leaving])
    inverse = propagation(passed, doublings(nodes, depth))
    reached = matmul(inverse, jnp.concatenate([read, ends], axis=1))
    erased = inverse - jnp.eye(nodes, dtype=out.dtype)
    brought = matmul(entered(tables.column, into), jnp.concatenate([inverse, reached], axis=1))
    seen = entered(tables.head, mark) + brought[:, nodes : 2 * nodes]
    return Paths(erased, reached[:, :nodes], reached[:, nodes:], brought[:, :nodes], seen, brought[:, 2 * nodes :])
