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
from stmlang.graph.shapes import gating_shape, index_size, output_shape
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.oracle.recurrence import (
    ReferenceResult,
    adds_direct,
    apart,
    entering_states,
    leaving_states,
    normalized,
    scales,
    with_ones,
)
from stmlang.oracle.steps import last_of, written_out
from stmlang.oracle.values import Value
from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan


@dataclass(frozen=True, eq=False)
class LineGraph:
    """One direction as dense arrays: source `(head, node, write, edge, track)`, transition `(head, in edge, track', out edge,
    track)`, mark `(head, edge, track, node, read)`, direct `(head, node, write, read)`."""

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
    source = np.zeros((scan.heads, nodes, edges, scan.writes, track))
    source[:, sites.nodes(("out",)), sites.out_edge] = np.moveaxis(_filled(scan, values.source, ("write", "track")), 1, 0)
    transition = np.zeros((scan.heads, edges, edges, track, track))
    out, into = sites.out_edge[sites.line[:, 0]], sites.in_edge[sites.line[:, 1]]
    transition[:, into, out] = np.moveaxis(_filled(scan, values.transition, ("track", "track'")), 1, 0)
    mark = np.zeros((scan.heads, edges, nodes, scan.reads, track))
    rows = _filled(scan, values.mark, ("read", "track", "track'")).sum(axis=3)
    mark[:, sites.in_edge, sites.nodes(("in",))] = np.moveaxis(rows, 1, 0)
    once = np.zeros((nodes, scan.heads, scan.writes, scan.reads))
    if direct:
        tracks: tuple[Index, ...] = ("track",) if "track" in values.direct.states else ()
        terms = _filled(scan, values.direct, ("write", "read", *tracks))
        once = terms.sum(axis=4) if tracks else terms
    return LineGraph(
        np.moveaxis(source, 2, 3),
        np.transpose(transition, (0, 1, 4, 2, 3)),
        np.moveaxis(mark, 4, 2),
        np.moveaxis(once, 1, 0),
    )


def _filled(scan: Scan, value: Value, axes: tuple[Index, ...]) -> Floats:
    """A gate as `(site, head, *axes)`: the same along what it lacks, and a diagonal matrix where it is none on the tracks."""
    foreign = sorted({index for index in value.states if index.startswith(("key", "value"))})
    if foreign:
        raise ValueError(f"only gates without key and value indices have a gating matrix, not [{', '.join(foreign)}]")
    matrix = "track'" in axes and "track'" not in value.states
    kept = axes[:-1] if matrix else axes
    lengths = dict(zip(value.states, value.array.shape[2:], strict=True))
    order = [2 + value.states.index(index) for index in kept if index in lengths]
    array = value.array.transpose(0, 1, *order)
    array = array.reshape(*array.shape[:2], *(lengths.get(index, 1) for index in kept))
    array = np.broadcast_to(array, (*array.shape[:2], *(index_size(scan, index) for index in kept)))
    return array[..., None] * np.eye(scan.track) if matrix else array


def gating_by_solve(graph: LineGraph) -> Floats:
    """`S (I - T)^-1 M + diag(D)`, shaped `(source node, target node, head, write, read)`."""
    through = np.einsum("hnwes,hesft,hftmr->nmhwr", graph.source, graph.propagation(), graph.mark, optimize=True)
    return through + np.einsum("hnwr,nm->nmhwr", graph.direct, np.eye(graph.direct.shape[1]))


def gating_by_paths(graph: LineGraph) -> Floats:
    """The same matrix as a sum over explicit paths of edges. Exponential in the size of the graph."""
    nodes, edges = graph.source.shape[1], graph.source.shape[3]
    gating = np.einsum("hnwr,nm->nmhwr", graph.direct, np.eye(nodes))
    connected = np.any(graph.transition != 0, axis=(0, 2, 4))

    def follow(start: int, edge: int, state: Floats) -> None:
        """Adds what a state `(head, write, track)` on an edge gives to its reader, and goes on along every next edge."""
        gating[start] += np.einsum("hwt,htmr->mhwr", state, graph.mark[:, edge])
        for after in np.flatnonzero(connected[edge]):
            follow(start, int(after), np.einsum("hws,hst->hwt", state, graph.transition[:, edge, :, after]))

    for start in range(nodes):
        for edge in range(edges):
            follow(start, edge, graph.source[:, start, :, edge])
    return gating


def gating_matrix(
    scan: Scan,
    dag: DAG,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    gates: Mapping[str, npt.ArrayLike],
    method: Callable[[LineGraph], Floats] = gating_by_solve,
) -> Floats:
    """The gating matrix of a scan, `(*source nodes, *target nodes, head, [write], [read])`: directions added or side by side,
    as the outputs, and side by side where they have queries, keys or values of their own.

    Raises ValueError if a gate has a key or value index, or for wrong arrays.
    """
    if scan.steps > 1:
        matrix = gating_matrix(*written_out(scan, dag, q, k, v, gates), method)
        order = slice(None) if scan.directions[0].senses[0] > 0 else slice(None, None, -1)
        read = np.moveaxis(last_of(scan, np.moveaxis(matrix, 1, 0)), 0, 1)
        split = read.reshape(dag.node_count, scan.steps, *read.shape[1:])[:, order]
        return np.moveaxis(split, 1, 3)
    by_direction = [
        method(line_graph(scan, values, adds_direct(scan, number)))
        for number, values in enumerate(evaluate_gates(scan, dag, q, k, v, gates))
    ]
    apart = scan.combine == "concat" or (scan.own and len(by_direction) > 1)
    both = np.concatenate(by_direction, axis=2) if apart else np.sum(by_direction, axis=0)
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
    if scan.steps > 1:
        all_steps = solved(*written_out(scan, dag, q, k, v, gates), initial)
        return ReferenceResult(last_of(scan, all_steps.h), all_steps.state)
    results: list[Floats] = []
    finals: list[dict[str, Floats]] = []
    every = evaluate_gates(scan, dag, q, k, v, gates)
    for number, values in enumerate(every):
        states = entering_states(scan, dag, number, {} if initial is None else initial[number])
        graph = line_graph(scan, values, adds_direct(scan, number))
        Q, K, V = apart(values.query), apart(values.key), apart(with_ones(scan, values.value))
        through = graph.propagation()
        h = np.einsum("mhrk,nhwk,nmhwr,nhwv->mhrv", Q, K, gating_by_solve(graph), V, optimize=True)
        h += np.einsum("mhrk,hesft,hftmr,ehskv->mhrv", Q, through, graph.mark, states, optimize=True)
        sent = np.einsum("hnwes,hesft,nhwk,nhwv->fhtkv", graph.source, through, K, V, optimize=True)
        finals.append(leaving_states(scan, dag, number, sent + np.einsum("hesft,ehskv->fhtkv", through, states)))
        results.append(h)
    h = np.concatenate(results, axis=1) if scan.combine == "concat" else np.sum(results, axis=0)
    return ReferenceResult(normalized(scan, h, scales(scan, every)).reshape(output_shape(scan, dag)), tuple(finals))
