"""Two more ways to the same numbers, for scans whose transitions leave the key and value axes alone.

`line_graph` solves the paper's linear form `G = S (I - T)^-1 M + diag(D)` with the dense matrix of the whole line graph.
`paths` adds up, path by path, the products of the gates along it (eq:linear_dag_stm_paths); exponential, for tiny graphs.
Both take the tracking axis as part of the edges: a state is `(edge, track)`. All float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import gating_shape, output_shape
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import DirectionGates, Value, evaluate_gates
from stmlang.oracle.recurrence import (
    ReferenceResult,
    adds_direct,
    entering_states,
    leaving_states,
    normalized,
    with_ones,
)
from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan


@dataclass(frozen=True, eq=False)
class LineGraph:
    """One direction as dense arrays: source `(head, node, edge, track)`, transition `(head, in edge, track', out edge, track)`,
    mark `(head, edge, track, node)`, direct `(head, node)`."""

    source: Floats
    transition: Floats
    mark: Floats
    direct: Floats

    def propagation(self) -> Floats:
        """`(I - T)^-1`: `(head, edge, track', edge, track)`, what a state on the first edge has become on the second."""
        heads, edges, tracks = self.transition.shape[:3]
        flat = self.transition.reshape(heads, edges * tracks, edges * tracks)
        inverse = np.linalg.inv(np.eye(edges * tracks) - flat)
        return inverse.astype(np.float64).reshape(self.transition.shape)


def line_graph(scan: Scan, values: DirectionGates, direct: bool) -> LineGraph:
    """The dense arrays of a direction, with or without its direct term.

    Raises ValueError if a gate has a key or value index.
    """
    sites, track = values.sites, scan.track
    nodes, edges = sites.dag.node_count, sites.dag.edge_count
    source = np.zeros((scan.heads, nodes, edges, track))
    source[:, sites.nodes(("out",)), sites.out_edge] = np.moveaxis(_tracks(values.source, ("track",), track), 1, 0)
    transition = np.zeros((scan.heads, edges, edges, track, track))
    out, into = sites.out_edge[sites.line[:, 0]], sites.in_edge[sites.line[:, 1]]
    transition[:, into, out] = np.moveaxis(_tracks(values.transition, ("track", "track'"), track), 1, 0)
    mark = np.zeros((scan.heads, edges, nodes, track))
    rows = _tracks(values.mark, ("track", "track'"), track).sum(axis=2)
    mark[:, sites.in_edge, sites.nodes(("in",))] = np.moveaxis(rows, 1, 0)
    once = np.zeros((nodes, scan.heads))
    if direct:
        named = "track" in values.direct.states
        once = _tracks(values.direct, ("track",), track).sum(axis=2) if named else values.direct.array
    return LineGraph(source, np.transpose(transition, (0, 1, 4, 2, 3)), np.transpose(mark, (0, 1, 3, 2)), once.T)


def _tracks(value: Value, indices: tuple[Index, ...], track: int) -> Floats:
    """A gate as `(site, head, track)` or as a matrix `(site, head, track, track')`, its own or a diagonal one."""
    foreign = sorted(set(value.states) - {"track", "track'"})
    if foreign:
        raise ValueError(f"only gates without key and value indices have a gating matrix, not [{', '.join(foreign)}]")
    if value.states == indices:
        return value.array
    row = value.array if value.states else value.array[..., None]
    row = np.broadcast_to(row, (*row.shape[:2], track))
    return row if len(indices) == 1 else row[..., None] * np.eye(track)


def gating_by_solve(graph: LineGraph) -> Floats:
    """`S (I - T)^-1 M + diag(D)`, shaped `(source node, target node, head)`."""
    through = np.einsum("hnes,hesft,hftm->nmh", graph.source, graph.propagation(), graph.mark, optimize=True)
    return through + np.einsum("hn,nm->nmh", graph.direct, np.eye(graph.direct.shape[1]))


def gating_by_paths(graph: LineGraph) -> Floats:
    """The same matrix as a sum over explicit paths of edges. Exponential in the size of the graph."""
    heads, nodes, edges, _ = graph.source.shape
    gating = np.einsum("hn,nm->nmh", graph.direct, np.eye(nodes))
    connected = np.any(graph.transition != 0, axis=(0, 2, 4))

    def follow(start: int, edge: int, state: Floats) -> None:
        """Adds what a state `(head, track)` on an edge gives to its reader, and goes on along every next edge."""
        gating[start] += np.einsum("ht,htm->mh", state, graph.mark[:, edge])
        for after in np.flatnonzero(connected[edge]):
            follow(start, int(after), np.einsum("hs,hst->ht", state, graph.transition[:, edge, :, after]))

    for start in range(nodes):
        for edge in range(edges):
            follow(start, edge, graph.source[:, start, edge])
    return gating.reshape(nodes, nodes, heads)


def gating_matrix(
    scan: Scan,
    dag: DAG,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    gates: Mapping[str, npt.ArrayLike],
    method: Callable[[LineGraph], Floats] = gating_by_solve,
) -> Floats:
    """The gating matrix of a scan, `(*source nodes, *target nodes, head)`: directions added or side by side, as the outputs.

    Raises ValueError if a gate has a key or value index, or for wrong arrays.
    """
    by_direction = [
        method(line_graph(scan, values, adds_direct(scan, number)))
        for number, values in enumerate(evaluate_gates(scan, dag, q, k, v, gates))
    ]
    both = np.concatenate(by_direction, axis=2) if scan.combine == "concat" else np.sum(by_direction, axis=0)
    return both.reshape(gating_shape(scan, dag))


def solved(
    scan: Scan,
    dag: DAG,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    gates: Mapping[str, npt.ArrayLike],
    initial: Sequence[Mapping[str, npt.ArrayLike]] | None = None,
) -> ReferenceResult:
    """The scan as masked linear attention, `H = ((Q K^T) o G^T) V`, with initial and final states: the second oracle.

    Raises ValueError if a gate has a key or value index, or for wrong arrays.
    """
    results: list[Floats] = []
    finals: list[dict[str, Floats]] = []
    for number, values in enumerate(evaluate_gates(scan, dag, q, k, v, gates)):
        states = entering_states(scan, dag, number, {} if initial is None else initial[number])
        graph = line_graph(scan, values, adds_direct(scan, number))
        Q, K, V, through = values.query, values.key, with_ones(scan, values.value), graph.propagation()
        h = np.einsum("mhk,nhk,nmh,nhv->mhv", Q, K, gating_by_solve(graph), V, optimize=True)
        h += np.einsum("mhk,hesft,hftm,ehskv->mhv", Q, through, graph.mark, states, optimize=True)
        sent = np.einsum("hnes,hesft,nhk,nhv->fhtkv", graph.source, through, K, V, optimize=True)
        finals.append(leaving_states(scan, dag, number, sent + np.einsum("hesft,ehskv->fhtkv", through, states)))
        results.append(h)
    h = np.concatenate(results, axis=1) if scan.combine == "concat" else np.sum(results, axis=0)
    return ReferenceResult(normalized(scan, h).reshape(output_shape(scan, dag)), tuple(finals))
