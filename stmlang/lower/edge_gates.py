"""Gates by edge and line edge, whatever the topology."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Int

from stmlang.graph.dag import DAG
from stmlang.lower.operands import Operands, Scalars, scalars
from stmlang.lower.tables import PAD, Indices, by_track, take


class EdgeTables(NamedTuple):
    """Line edges of a DAG, and on a regular topology where in the flattened gate arrays each edge and line edge stands."""

    line_in: Int[Indices, " line_edge"]
    line_out: Int[Indices, " line_edge"]
    source: Int[Indices, " edge"] | None
    transition: Int[Indices, " line_edge"] | None
    mark: Int[Indices, " edge"] | None


def edge_tables(dag: DAG, tracks: int = 1) -> EdgeTables:
    """The tables of a DAG; of several tracks with an edge for each, and with line edges that are all pairs of them."""
    line = dag.line_edges.astype(np.int64)
    leads, comes = np.divmod(np.arange(tracks**2), tracks)
    line_in, line_out = line[:, :1] * tracks + comes, line[:, 1:] * tracks + leads
    into_line, out_of_line = (edges.reshape(-1).astype(np.int32) for edges in (line_in, line_out))
    if dag.regular is None:
        return EdgeTables(into_line, out_of_line, None, None, None)
    ports = len(dag.ports)
    source = np.where(dag.tail < 0, PAD, dag.tail * ports + dag.port)
    mark = np.where(dag.head < 0, PAD, dag.head * ports + dag.port)
    into, out = ((dag.port[line[:, [end]]] * tracks + track) for end, track in ((0, comes), (1, leads)))
    transition = ((dag.head[line[:, :1]] * ports * tracks + out) * ports * tracks + into).reshape(-1)
    source, mark = (by_track(edges, tracks) for edges in (source, mark))
    return EdgeTables(into_line, out_of_line, *(indices.astype(np.int32) for indices in (source, transition, mark)))


def edge_gates(tables: EdgeTables, operands: Operands, tracks: int = 1) -> Scalars:
    """Scalar gates as `(direction, head, edges)`, `(direction, head, line_edges)` and `(direction, head, edges)`, each track of
    an edge being one."""
    gates = scalars(operands, tracks, ragged=tables.source is None)
    if tables.source is None or tables.transition is None or tables.mark is None:
        return gates

    def flat(array: Array, table: Indices) -> Array:
        return take(array.reshape(*array.shape[:2], -1), table, -1)

    return Scalars(flat(gates.source, tables.source), flat(gates.transition, tables.transition), flat(gates.mark, tables.mark))
