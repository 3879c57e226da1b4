"""Dense on nodes: the gating matrix of a rank-one transition `f[out] g[in]` by one inverse over nodes in topological order.

With `W[m, n] = sum of g f` over the edges from m to n, and likewise `J` of `g S`, `F` of `f M` and `D` of `S M`,

    G  =  D + J (I - W)^-1 F

where `f`, `S` are those of the edge's tail and `g`, `M` those of its head. What enters is one more row of `J` for each entering
edge, and what leaves one more column of `F`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from stmlang.cost.sweeps import doublings
from stmlang.graph.levels import node_levels
from stmlang.lower.adapters import by_block
from stmlang.lower.contractions import matmul
from stmlang.lower.inverse import propagation
from stmlang.lower.node_factors import Single, edge_factors, single_tables
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.summary import Summary
from stmlang.lower.tables import PAD, Indices, take


class Solve(NamedTuple):
    """`row[e]` is the row that edge e comes from: its tail's place, or for an entering edge one past the nodes; `column[e]`
    likewise. `gate_out[e]`, `gate_in[e]` say where its gates stand in the flattened arrays of a regular topology."""

    place: Int[Indices, " node"]
    row: Int[Indices, " edge"]
    column: Int[Indices, " edge"]
    gate_out: Int[Indices, " edge"] | None
    gate_in: Int[Indices, " edge"] | None
    single: Single | None


def _tables(context: LoweringContext) -> Tables:
    dag, nodes = context.dag, context.dag.node_count
    place = np.empty(nodes, np.int64)
    place[np.argsort(node_levels(dag), kind="stable")] = np.arange(nodes)
    row, column = np.append(place, 0)[dag.tail], np.append(place, 0)[dag.head]
    row[dag.entering] = nodes + np.arange(len(dag.entering))
    column[dag.leaving] = nodes + np.arange(len(dag.leaving))
    out = into = None
    if context.axes is not None:
        ports = len(dag.ports)
        out, into = (np.where(end < 0, PAD, end * ports + dag.port).astype(np.int32) for end in (dag.tail, dag.head))
    place, row, column = (indices.astype(np.int32) for indices in (place, row, column))
    return Solve(place, row, column, out, into, single_tables(context))


def _block(context: LoweringContext, tables: Tables, operands: Operands) -> Summary:
    solve: Solve = tables
    dag = context.dag
    nodes, entering, leaving = dag.node_count, len(dag.entering), len(dag.leaving)
    factors = edge_factors(solve.single, operands)
    count = doublings(nodes, int(node_levels(dag).max(initial=0)))

    def by_edge(gate: Array, table: Indices | None) -> Array:
        scalar = gate.reshape(*gate.shape[:2], -1)
        assert gate.shape[-STATE_AXES:] == (1,) * STATE_AXES
        return scalar if table is None else take(scalar, table, -1)

    out, source = (by_edge(gate, solve.gate_out) for gate in (factors.out, operands.source))
    into, mark = (by_edge(gate, solve.gate_in) for gate in (factors.into, operands.mark))
    # What enters or leaves does so as it is.
    out, source = (jnp.where(solve.row >= nodes, padding, factor) for factor, padding in ((out, 0), (source, 1)))
    into, mark = (jnp.where(solve.column >= nodes, padding, factor) for factor, padding in ((into, 0), (mark, 1)))

    def head_block(out: Array, source: Array, into: Array, mark: Array) -> Summary:
        def summed(weight: Array) -> Array:
            return jnp.zeros((nodes + entering, nodes + leaving), weight.dtype).at[solve.row, solve.column].add(weight)

        inner, first, last = summed(into * out)[:nodes, :nodes], summed(source * into)[:, :nodes], summed(out * mark)[:nodes]
        both = summed(source * mark) + matmul(first, matmul(propagation(inner, count), last))
        by_node = both[:, jnp.concatenate([solve.place, jnp.arange(nodes, nodes + leaving, dtype=jnp.int32)])]
        mine, outer = by_node[solve.place], by_node[nodes:]
        return Summary(mine[:, nodes:], outer[:, nodes:], outer[:, :nodes], mine[:, :nodes])

    return jax.vmap(jax.vmap(head_block))(out, source, into, mark)


LOWERING = by_block(_tables, _block)
