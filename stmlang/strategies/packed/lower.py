"""Many graphs at once, their gating matrices by rows of edges: arcs are line edges. See `stmlang.lower.packed_rows`."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from stmlang.cost.sweeps import edge_profile
from stmlang.graph.capacity import Capacity
from stmlang.graph.dag import DAG
from stmlang.graph.line import reversed_line_edges
from stmlang.graph.steps import edge_arcs
from stmlang.lower.adapters import without_states
from stmlang.lower.operands import Operands
from stmlang.lower.packed_rows import Joined, Rows, joined, outputs_by, placed, propagated, scalar
from stmlang.lower.packed_tables import Items, Packed, packed_tables, renumbered
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.tables import take


def _tables(context: LoweringContext) -> Tables:
    return packed_tables(context, edge_profile(context.problem, context.dag), _items)


def _items(dag: DAG) -> Items:
    """Edges; a line edge is an arc."""
    every = range(dag.edge_count)
    back = renumbered(edge_arcs(dag.reversed()), reversed_line_edges(dag))
    counts = [graph.edge_count for graph in dag.parts]
    return Items(counts, dag.edge_count, edge_arcs(dag), back, dag.line_edges, dag.line_rows, every, every)


def _reading(room: Capacity, tables: Sequence[Packed], operands: Sequence[Operands]) -> tuple[Joined, Rows]:
    source, mark = scalar([operand.source for operand in operands]), scalar([operand.mark for operand in operands])
    weights = scalar([operand.transition for operand in operands])
    made = joined(tables, room.rows(room.edges), room.line_edges)
    start = jnp.zeros((len(made.edge) + 1, source.shape[1], room.cell), source.dtype)
    rows = propagated(made.sweep, weights, placed(start, made.start, made.column, source))
    return made, take(mark, made.edge, 0)[..., None] * rows[:-1]


LOWERING = without_states(_tables, outputs_by(_reading))
