"""Gates by edge and line edge, whatever the topology."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Int

from stmlang.graph.dag import DAG
from stmlang.lower.operands import Operands, Scalars, scalars
from stmlang.lower.tables import PAD, Indices, take


class EdgeTables(NamedTuple):
    """Line edges of a DAG, and on a regular topology where in the flattened gate arrays each edge and line edge stands."""

    line_in: Int[Indices, " line_edge"]
    line_out: Int[Indices, " line_edge"]
    source: Int[Indices, " edge"] | None
    transition: Int[Indices, " line_edge"] | None
    mark: Int[Indices, " edge"] | None


def edge_tables(dag: DAG) -> EdgeTables:
    """The tables of a DAG."""
    line = dag.line_edges.astype(np.int32)
    line_in, line_out = line[:, 0], line[:, 1]
    if dag.regular is None:
        return EdgeTables(line_in, line_out, None, None, None)
    ports = len(dag.ports)
    source = np.where(dag.tail < 0, PAD, dag.tail * ports + dag.port)
    mark = np.where(dag.head < 0, PAD, dag.head * ports + dag.port)
    transition = (dag.head[line_in] * ports + dag.port[line_out]) * ports + dag.port[line_in]
    return EdgeTables(line_in, line_out, *(indices.astype(np.int32) for indices in (source, transition, mark)))


def edge_gates(tables: EdgeTables, operands: Operands) -> Scalars:
    """Scalar gates as `(direction, head, edges)`, `(direction, head, line_edges)` and `(direction, head, edges)`."""
    gates = scalars(operands)
    if tables.source is None or tables.transition is None or tables.mark is None:
        return gates

    def flat(array: Array, table: Indices) -> Array:
        return take(array.reshape(*array.shape[:2], -1), table, -1)

    return Scalars(flat(gates.source, tables.source), flat(gates.transition, tables.transition), flat(gates.mark, tables.mark))
