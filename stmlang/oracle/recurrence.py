"""The recurrence itself, node by node: the oracle that everything else is compared with.

The paper's equation (eq:linear_dag_stm), with `i` over the incoming and `o` over the outgoing edges of node `n`:

    C[o]     =  sum over i of  T[n, o, i] C[i]  +  sum over w of  S[n, o, w] K[n, w] V[n, w]^T
    H[n, r]  =  Q[n, r] . ( sum over i of  M[n, i, r] C[i]  +  sum over w of  D[n, r, w] K[n, w] V[n, w]^T )

with `w` over the writes of a node and `r` over its reads (the paper's J_S and J_M); most scans have one of each.

A state is `(head, track, key, value)`. T and M are operators on it: an index without its primed twin acts elementwise, with it
as a matrix, and an axis that is not named is left alone. Reading sums over `track`. A source that does not name `track` is the
same on all tracks; a direct term that does not is added once.

Directions: each is a scan of its own over the same nodes, with its own Q, K or V where these are not shared. Summed, the direct
term is added once, or in every direction if `direct` is directional or one of Q, K, V is; concatenated, each direction has its
own. With `normalize` a column of ones is appended to V and carried in the states; its readout d divides the sum of all
directions (concatenated: its own): `sum` gives `h / (d + 1e-10)`, `mlstm` gives `h / (max(|d|, 1) + eps e^m)`, with `m` the
largest logarithm of a term that is read (`running_scale`). Nodes of several steps are written out (`stmlang.oracle.steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import edge_state_shape, output_shape, state_shapes
from stmlang.oracle.functions import Floats, absolute, floats, larger, times
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.oracle.sites import PortIndices, Sites, ints, topological_order
from stmlang.oracle.steps import last_of, written_out
from stmlang.oracle.values import AXIS, Value
from stmlang.scan.expression import Index
from stmlang.scan.scan import Direction, Scan

NORMALIZE_EPSILON = 1e-10
"""Added to the sum of weights that `normalize sum` divides by, as linear attention does."""

State = tuple[dict[str, Floats], ...]


@dataclass(frozen=True, eq=False)
class ReferenceResult:
    """The result `h`, shaped as `output_shape` says, and the states on the edges that leave, as `state_shapes(final=True)`."""

    h: Floats
    state: State


def reference(
    scan: Scan,
    dag: DAG,
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    gates: Mapping[str, npt.ArrayLike],
    initial: Sequence[Mapping[str, npt.ArrayLike]] | None = None,
) -> ReferenceResult:
    """Evaluates a scan in float64, or in complex128 if an argument is complex (see `functions`). `initial`: for each direction
    the states on the entering edges by port, zero where absent.

    Raises ValueError for arrays of the wrong shape, missing leaves, unknown ports.
    """
    if scan.steps > 1:
        all_steps = reference(*written_out(scan, dag, q, k, v, gates), initial)
        return ReferenceResult(last_of(scan, all_steps.h), all_steps.state)
    results: list[Floats] = []
    finals: list[dict[str, Floats]] = []
    every = evaluate_gates(scan, dag, q, k, v, gates)
    for number, values in enumerate(every):
        states = entering_states(scan, dag, number, {} if initial is None else initial[number])
        h, states = run(scan, values, states, adds_direct(scan, number))
        results.append(h)
        finals.append(leaving_states(scan, dag, number, states))
    h = np.concatenate(results, axis=1) if scan.combine == "concat" else np.sum(results, axis=0)
    return ReferenceResult(normalized(scan, h, scales(scan, every)).reshape(output_shape(scan, dag)), tuple(finals))


def adds_direct(scan: Scan, number: int) -> bool:
    """Whether a direction adds the direct term."""
    return scan.combine == "concat" or number == 0 or scan.gate("direct").directional or bool(scan.own)


def run(scan: Scan, values: DirectionGates, entering: Floats, add_direct: bool) -> tuple[Floats, Floats]:
    """One direction: the outputs `(node, head, read, value)` and the states `(edge, head, track, key, value)` on all edges,
    given those on the edges that enter."""
    sites, S, T, M, D = values.sites, values.source, values.transition, values.mark, values.direct
    Q, K, V = apart(values.query), apart(values.key), apart(with_ones(scan, values.value))
    arriving, leaving, passing = by_node(sites, ("in",)), by_node(sites, ("out",)), by_node(sites, ("out", "in"))
    reads, passes, writes, adds = operator(M), operator(T), multiplier(S), multiplier(D)
    states = entering.astype(np.result_type(entering, values.dtype))
    h = np.zeros((*Q.shape[:-1], V.shape[-1]), dtype=states.dtype)
    for n in topological_order(sites):
        outer = np.einsum("hwk,hwv->hwkv", K[n], V[n])
        read = np.zeros((scan.heads, scan.reads, *states.shape[2:]), dtype=states.dtype)
        for site in arriving.get(n, ()):
            read += reads(site, states[sites.in_edge[site]])
        h[n] = np.einsum("hrk,hrtkv->hrv", Q[n], read)
        if add_direct:
            h[n] += np.einsum("hrk,hrtkv->hrv", Q[n], adds(n, outer))
        for site in leaving.get(n, ()):
            states[sites.out_edge[site]] += writes(site, outer)[:, 0]
        for site in passing.get(n, ()):
            out, into = sites.line[site]
            states[sites.out_edge[out]] += passes(site, states[sites.in_edge[into]])[:, 0]
    return h, states


def apart(array: Floats) -> Floats:
    """Queries, keys or values with an axis of reads or writes, where there is one of each too."""
    return array if array.ndim == 4 else array[:, :, None]


def by_node(sites: Sites, ports: PortIndices) -> dict[int, list[int]]:
    """The sites of each node."""
    sites_by_node: dict[int, list[int]] = {}
    for site, node in enumerate(ints(sites.nodes(ports))):
        sites_by_node.setdefault(node, []).append(site)
    return sites_by_node


def operator(gate: Value) -> Callable[[int, Floats], Floats]:
    """A transition or mark as what it makes, at a site, of a state `(head, track, key, value)`: `(head, read or one, track,
    key, value)`."""
    acting = "".join(AXIS[index] for index in gate.states)
    pairs: tuple[tuple[Index, Index], ...] = (("track", "track'"), ("key", "key'"), ("value", "value'"))
    before = "".join(AXIS[primed] if primed in gate.states else AXIS[plain] for plain, primed in pairs)
    several = "read" in gate.states
    subscripts = f"h{acting},h{before}->h{AXIS['read'] if several else ''}tkv"

    def operate(site: int, state: Floats) -> Floats:
        result = np.einsum(subscripts, gate.array[site], state)
        return result if several else result[:, None]

    return operate


def multiplier(gate: Value) -> Callable[[int, Floats], Floats]:
    """A source or direct gate as what it makes, at a site, of outer products `(head, write, key, value)`: `(head, read or one,
    track or one, key, value)`."""
    lengths = dict(zip(gate.states, gate.array.shape[2:], strict=True))
    plain: tuple[Index, ...] = ("read", "write", "track", "key", "value")
    order = sorted(range(len(gate.states)), key=lambda axis: plain.index(gate.states[axis]))
    array = gate.array.transpose(0, 1, *(2 + axis for axis in order))
    array = array.reshape(*array.shape[:2], *(lengths.get(index, 1) for index in plain))

    def scaled(site: int, outer: Floats) -> Floats:
        return np.sum(array[site] * outer[:, None, :, None], axis=2)

    return scaled


def with_ones(scan: Scan, value: Floats) -> Floats:
    """The values, with a column of ones behind them where the scan is normalized."""
    if scan.normalize == "none":
        return value
    acting = [scan.gate(name).indices for name in ("source", "transition", "mark", "direct")]
    if any("value" in indices or "value'" in indices for indices in acting):
        raise ValueError(f"scan '{scan.name}' is normalized, so no gate may act on the value axis")
    return np.concatenate([value, np.ones((*value.shape[:-1], 1))], axis=-1)


def scales(scan: Scan, every: Sequence[DirectionGates]) -> Floats:
    """`e^m` as `(node, head, 1, 1)`, summed over directions or one behind the other; zero where no epsilon asks for it."""
    if not scan.epsilon:
        return np.zeros(())
    of_directions = [running_scale(values) for values in every]
    return np.concatenate(of_directions, axis=1) if scan.combine == "concat" else np.sum(of_directions, axis=0)


def running_scale(values: DirectionGates) -> Floats:
    """`e^m` for the chain of one direction: what leaves a node is as large as the largest of its terms,

        m[out]  =  max(log |T| + m[in], log |S|)            m  =  max(log |M| + m[in], log |D|),

    where nothing enters from outside."""
    sites = values.sites
    size = [
        absolute(gate.array.reshape(gate.array.shape[:2]))
        for gate in (values.source, values.transition, values.mark, values.direct)
    ]
    S, T, M, D = size
    read = np.zeros((*D.shape, 1, 1), dtype=np.result_type(*size))
    entering: Floats = np.zeros(D.shape[1:])
    for n in topological_order(sites):
        read[n] = larger(times(M[n], entering), D[n])[:, None, None]
        entering = larger(times(T[n], entering), S[n])
    return read


def normalized(scan: Scan, h: Floats, scale: Floats) -> Floats:
    """The result divided by the readout of the column of ones; `scale` is that of `scales`."""
    match scan.normalize:
        case "none":
            return h
        case "sum":
            return h[..., :-1] / (h[..., -1:] + NORMALIZE_EPSILON)
        case "mlstm":
            return h[..., :-1] / (larger(absolute(h[..., -1:]), np.ones(())) + scan.epsilon * scale)
        case _:
            assert_never(scan.normalize)


def open_edges(dag: DAG, direction: Direction, port: int, final: bool) -> npt.NDArray[np.int64]:
    """The edges of a port that enter (or leave, if `final`) in a direction, in the order of the state arrays."""
    first = (direction.senses[port] > 0) != final
    if dag.regular is not None:
        shape = tuple(size + (axis == port) for axis, size in enumerate(dag.regular))
        return np.take(np.flatnonzero(dag.port == port).reshape(shape), 0 if first else -1, axis=port).reshape(-1)
    edges = dag.entering if first else dag.leaving
    return edges[dag.port[edges] == port]


def entering_states(scan: Scan, dag: DAG, number: int, initial: Mapping[str, npt.ArrayLike]) -> Floats:
    """States `(edge, head, track, key, value)` of all edges: the given ones on those that enter, zero elsewhere."""
    head, *track, key, value = edge_state_shape(scan)
    dtype = np.result_type(np.float64, *(floats(array) for array in initial.values()))
    states: Floats = np.zeros((dag.edge_count, head, *(track or [1]), key, value), dtype=dtype)
    unknown = sorted(set(initial) - set(dag.ports))
    if unknown:
        raise ValueError(f"an initial state is given for ports that do not exist: {', '.join(unknown)}")
    for port, name in enumerate(dag.ports):
        if name not in initial:
            continue
        entering, shape = floats(initial[name]), state_shapes(scan, dag)[number][name]
        if entering.shape != shape:
            raise ValueError(f"the initial state of port '{name}' has shape {entering.shape}, should be {shape}")
        edges = open_edges(dag, scan.directions[number], port, final=False)
        states[edges] = entering.reshape(len(edges), *states.shape[1:])
    return states


def leaving_states(scan: Scan, dag: DAG, number: int, states: Floats) -> dict[str, Floats]:
    """The states on the edges that leave, by port, in the layout of `state_shapes`."""
    shapes, direction = state_shapes(scan, dag, final=True)[number], scan.directions[number]
    edges_by_port = {name: open_edges(dag, direction, port, final=True) for port, name in enumerate(dag.ports)}
    return {name: states[edges].reshape(shapes[name]) for name, edges in edges_by_port.items()}
