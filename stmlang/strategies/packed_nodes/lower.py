"""`packed` for transitions of rank one, `f[out] g[in]`: rows of nodes, arcs are edges, and no line edge is numbered.

s[n] = sum over edges e into n of g[e] (f[e] s[tail e] + source[e] at the tail's place)
G[n] = sum over edges e into n of mark[e] (f[e] s[tail e] + source[e] at the tail's place)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from stmlang.cost.sweeps import node_profile
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.steps import node_arcs
from stmlang.lower.adapters import without_states
from stmlang.lower.operands import Operands
from stmlang.lower.packed_rows import Joined, Rows, joined, outputs_by, placed, propagated, scalar
from stmlang.lower.packed_tables import Items, Packed, packed_tables
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.tables import take


def _tables(context: LoweringContext) -> Tables:
    return packed_tables(context, node_profile(context.problem, context.dag), _items)


def _items(dag: DAG) -> Items:
    """Nodes; an edge is an arc."""
    counts = [graph.node_count for graph in dag.parts]
    ends = np.stack([dag.tail, dag.head], axis=1)
    arcs = node_arcs(dag), node_arcs(dag.reversed())
    return Items(counts, dag.node_count, *arcs, ends, dag.edge_count, start=dag.head, read=dag.tail)


def _reading(room: Capacity, tables: Sequence[Packed], operands: Sequence[Operands]) -> tuple[Joined, Rows]:
    factors = [operand.factors for operand in operands if operand.factors is not None]
    source, mark = scalar([operand.source for operand in operands]), scalar([operand.mark for operand in operands])
    out, into = scalar([factor.out for factor in factors]), scalar([factor.into for factor in factors])
    made = joined(tables, room.rows(room.nodes), room.edges)
    start = jnp.zeros((len(tables) * room.rows(room.nodes) + 1, source.shape[1], room.cell), source.dtype)
    rows = propagated(made.sweep, into * out, placed(start, made.start, made.column, into * source))
    passed = take(mark * out, made.edge, 0)[..., None] * take(rows, made.read, 0)
    return made, placed(passed, made.own, made.column, mark * source)


LOWERING = without_states(_tables, outputs_by(_reading))
