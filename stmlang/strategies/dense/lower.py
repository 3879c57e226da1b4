"""Dense: `G = S (I - T)^-1 M` by one inverse over the line graph, edges in topological order."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from stmlang.cost.sweeps import doublings
from stmlang.graph.levels import edge_levels
from stmlang.lower.adapters import by_block
from stmlang.lower.contractions import matmul
from stmlang.lower.edge_gates import EdgeTables, edge_gates, edge_tables
from stmlang.lower.inverse import propagation
from stmlang.lower.operands import Operands
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary
from stmlang.lower.tables import Indices, by_track


class Solve(NamedTuple):
    """`place[e]` is the row of edge e, of several tracks one for each; a row comes before every row that it reaches."""

    edges: EdgeTables
    place: Int[Indices, " edge"]
    tail: Int[Indices, " edge"]
    head: Int[Indices, " edge"]
    entering: Int[Indices, " entering"]
    leaving: Int[Indices, " leaving"]


def _tables(context: LoweringContext) -> Tables:
    dag, tracks = context.dag, context.problem.track
    place = np.empty(dag.edge_count, np.int32)
    place[np.argsort(edge_levels(dag), kind="stable")] = np.arange(dag.edge_count)
    ends = (np.where(end < 0, dag.node_count, end).astype(np.int32) for end in (dag.tail, dag.head))
    tail, head = (np.repeat(end, tracks) for end in ends)
    rows = (by_track(edges, tracks) for edges in (place, place[dag.entering], place[dag.leaving]))
    own, entering, leaving = rows
    return Solve(edge_tables(dag, tracks), own, tail, head, entering, leaving)


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    solve: Solve = tables
    tracks = context.problem.track
    source, transition, mark = edge_gates(solve.edges, operands, tracks)
    nodes, edges, dtype = context.dag.node_count, context.dag.edge_count * tracks, source.dtype
    into, out = solve.place[solve.edges.line_in], solve.place[solve.edges.line_out]
    factors = doublings(edges, int(edge_levels(context.dag).max(initial=0)))

    def head_block(source: Array, transition: Array, mark: Array) -> Summary:
        passed = jnp.zeros((edges, edges), dtype).at[into, out].add(transition)
        marked = jnp.zeros((edges, nodes), dtype).at[solve.place, solve.head].set(mark, mode="drop")
        sourced = jnp.zeros((nodes, edges), dtype).at[solve.tail, solve.place].set(source, mode="drop")
        leaving = jnp.zeros((edges, len(solve.leaving)), dtype).at[solve.leaving, jnp.arange(len(solve.leaving))].set(1)
        right = jnp.concatenate([marked, leaving], axis=1)
        reached = matmul(propagation(passed, factors), right)
        both = matmul(sourced, reached)
        entering = reached[solve.entering]
        return Summary(both[:, nodes:], entering[:, nodes:], entering[:, :nodes], both[:, :nodes])

    return jax.vmap(jax.vmap(head_block))(source, transition, mark)


LOWERING = by_block(_tables, _block)
