"""One node of a DAG at a time: the recurrence as it is written, on states that are held in slots.

A step is the same scan on a graph of one node, a star: `into` edges that enter it, `out` edges that leave it, as many as any
node has, and a spare edge that touches nothing. Which edges of the whole graph they are, and how many of them there are, is
looked up in tables at each step; those that a node does not have touch nothing either, so that degrees and sums over edges do
not count them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from stmlang.facts.overwriting import delta_rule
from stmlang.graph.dag import DAG, OPEN
from stmlang.graph.incidence import Rows
from stmlang.graph.walk import walk
from stmlang.lower.contractions import contract
from stmlang.lower.gates import apply_along, read_at_ports, write_at_ports
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import STATE_AXES, Delta, Operands
from stmlang.lower.sites import leaf_site
from stmlang.lower.tables import PAD, Indices, take
from stmlang.lower.values import LineEdges, Sites
from stmlang.program.direction_inputs import direction_inputs
from stmlang.program.execute import combined
from stmlang.program.program import Bundle, Program
from stmlang.scan.scan import Leaf


class EdgeLists(NamedTuple):
    """For each node the edges that enter (or leave) it: `size` of them from `start` on in `edge`."""

    start: Int[Indices, " nodes"]
    size: Int[Indices, " nodes"]
    edge: Int[Indices, " edges"]


class NodeTables(NamedTuple):
    """The tables of `stmlang.graph.walk`. `port` is each edge's class, `mask` says which line edges count; `entering` and
    `leaving` are the slots of open edges for each port, `held` numbers all slots."""

    order: Int[Indices, " nodes"]
    into: EdgeLists
    out: EdgeLists
    slot: Int[Indices, " edges"]
    line: Int[Indices, " nodes"]
    port: Int[Indices, " edges"]
    mask: Bool[Indices, " line_edges"] | None
    entering: tuple[Int[Indices, " entering"], ...]
    leaving: tuple[Int[Indices, " leaving"], ...]
    held: Int[Indices, " slots"]


class NodeState(NamedTuple):
    """Between two steps: the states of the edges that are alive, by slot, and how many nodes have been walked over."""

    edges: Float[Array, "slot head *track key value"]
    step: Int[Array, ""]


class Place(NamedTuple):
    """Where a step is: the node, its edges and line edges in the whole graph, and which of them it has."""

    node: Int[Array, ""]
    into: Int[Array, " into"]
    out: Int[Array, " out"]
    enters: Bool[Array, " into"]
    leaves: Bool[Array, " out"]
    line: Int[Array, "out into"]


def star(ports: tuple[str, ...], into: int, out: int) -> DAG:
    """The graph of one node; its last edge is the spare one. Which port an edge belongs to is told at each step."""
    tail = np.array([OPEN] * into + [0] * out + [OPEN], np.int64)
    head = np.array([0] * into + [OPEN] * (out + 1), np.int64)
    return DAG((1,), tail, head, np.zeros(len(tail), np.int64), ports)


def node_tables(dag: DAG, mask: np.ndarray | None, *, rounded: bool) -> tuple[NodeTables, DAG]:
    """The tables of a graph and the star of its nodes. `rounded` makes degrees and slots powers of two, so that few stars and
    states serve many graphs."""
    walked = walk(dag)
    into, out = (int(side.size.max(initial=0)) for side in (walked.into, walked.out))
    slots = walked.slots
    if rounded:
        into, out, slots = (1 << max(0, count - 1).bit_length() for count in (into, out, slots))

    def narrow(array: np.ndarray) -> np.ndarray:
        return array.astype(np.int32)

    def lists(side: Rows) -> EdgeLists:
        return EdgeLists(narrow(side.start[:-1]), narrow(side.size), narrow(np.append(side.item, 0)))

    entering, leaving = (
        tuple(narrow(walked.slot[edges[dag.port[edges] == port]]) for port in range(len(dag.ports)))
        for edges in (dag.entering, dag.leaving)
    )
    held = np.arange(slots, dtype=np.int32)
    line = narrow(np.minimum(walked.line, PAD))
    # One entry more than there are edges, so that there is one to be read.
    slot, port = (narrow(np.append(array, 0)) for array in (walked.slot, dag.port))
    mask = None if mask is None else np.append(np.asarray(mask), True)
    common = (slot, line, port, mask, entering, leaving, held)
    return NodeTables(narrow(walked.order), lists(walked.into), lists(walked.out), *common), star(dag.ports, into, out)


def degrees_of(dag: DAG) -> tuple[int, int]:
    """How many edges of a star enter its node and leave it."""
    return int((dag.head == 0).sum()), int((dag.tail == 0).sum())


def place(tables: NodeTables, star_graph: DAG, step: Int[Array, ""] | int) -> Place:
    """The node of a step, from 0; behind the last one a place that has no edges."""
    into, out = degrees_of(star_graph)
    inside = jnp.asarray(step) < len(tables.order)
    node = jnp.take(tables.order, step, mode="clip")

    def edges(lists: EdgeLists, width: int) -> tuple[Array, Array]:
        number = jnp.arange(width, dtype=jnp.int32)
        own = jnp.take(lists.edge, jnp.take(lists.start, node) + number, mode="clip")
        return own, (number < jnp.take(lists.size, node)) & inside

    (entering, enters), (leaving, leaves) = edges(tables.into, into), edges(tables.out, out)
    first, count = jnp.take(tables.line, node), jnp.take(tables.into.size, node)
    line = first + jnp.arange(out, dtype=jnp.int32)[:, None] * count + jnp.arange(into, dtype=jnp.int32)[None, :]
    return Place(node, entering, leaving, enters, leaves, line)


def sites_of(tables: NodeTables, at: Place) -> Sites:
    """The tables of the star at a place. What the node does not have hangs at the spare edge, or is open at both ends."""
    into, out = len(at.enters), len(at.leaves)
    spare, open_end = into + out, jnp.ones(1, jnp.int32)
    tail = jnp.concatenate([jnp.ones(into, jnp.int32), jnp.where(at.leaves, 0, 1), open_end])
    head = jnp.concatenate([jnp.where(at.enters, 0, 1), jnp.ones(out, jnp.int32), open_end])
    meets = (at.leaves[:, None] & at.enters[None, :]).reshape(-1)
    first, second = (
        jnp.broadcast_to(edges, (out, into)).reshape(-1) for edges in (jnp.arange(into)[None], into + jnp.arange(out)[:, None])
    )
    entering, leaving = (jnp.where(meets, edges, spare).astype(jnp.int32) for edges in (first, second))
    line = LineEdges(entering, leaving, jnp.zeros(into * out, jnp.int32))
    port = jnp.concatenate([*(jnp.take(tables.port, edges, mode="clip") for edges in (at.into, at.out)), 0 * open_end])
    mask = None if tables.mask is None else jnp.take(tables.mask, at.line.reshape(-1), mode="clip")
    return Sites(tail, head, line, port, mask)


def star_leaf(leaf: Leaf, array: Array, at: Place) -> Array:
    """A leaf of one node as the star has it: `(1, head, ...)`, or a row for each edge or line edge. Rows of edges that the node
    does not have hold what the first one holds, so that gates are as finite there as elsewhere."""
    into, out = len(at.enters), len(at.leaves)
    match leaf_site(leaf):
        case "constant":
            return array
        case "node":
            return array[None]
        case "in":
            return _filled(array, at.enters, 0, out + 1)
        case "out":
            return _filled(array, at.leaves, into, 1)
        case "line":
            flat = array.reshape(out * into, *array.shape[2:])
            return _filled(flat, (at.leaves[:, None] & at.enters[None, :]).reshape(-1), 0, 0)


def _filled(array: Array, own: Bool[Array, " rows"], before: int, behind: int) -> Array:
    """Rows with what the first of the `own` ones holds in the place of all others, and so many more before and behind."""
    shape = array.shape[1:]
    row = jnp.ones(shape, array.dtype)
    if len(own):
        first = cast(Array, jax.lax.dynamic_index_in_dim(array, jnp.argmax(own), 0, keepdims=False))
        row = jnp.where(own.any(), jax.lax.stop_gradient(first), row)
    kept = jnp.where(own.reshape(-1, *(1,) * len(shape)), array, row)
    return jnp.concatenate([jnp.broadcast_to(row, (before, *shape)), kept, jnp.broadcast_to(row, (behind, *shape))])


def run_node(
    program: Program, tables: NodeTables, state: NodeState, inputs: Mapping[str, Array], gates: Mapping[str, Array]
) -> tuple[Float[Array, "head value"], NodeState]:
    """The step of the scan whose `program` is that of the star: inputs `(1, head, index)` and gates as `star_leaf` has them.
    Steps behind the last node give zero and change nothing."""
    tables, state, inputs, gates = alike((tables, state, inputs, gates))
    at = place(tables, program.dag, state.step)
    star_tables = [Bundle(sites_of(tables, at), None, None)]
    lanes = direction_inputs(program, star_tables, inputs, gates, rule=delta_rule(program.scan))
    operands = lanes[0].operands
    slots = jnp.where(at.enters, jnp.take(tables.slot, at.into, mode="clip"), PAD)
    entering = take(jnp.asarray(state.edges, program.accumulator), slots, 0)
    if program.scan.track == 1:
        entering = entering[:, :, None]
    leaving, read = _recurrence(operands, at, jnp.moveaxis(entering, 1, 0))
    h = combined(program, lanes, read[None, :, None])[0].astype(program.dtype)
    leaving = jnp.moveaxis(leaving, 0, 1).reshape(len(at.leaves), *state.edges.shape[1:])
    free = jnp.where(at.leaves, jnp.take(tables.slot, at.out, mode="clip"), PAD)
    edges = jnp.asarray(state.edges, program.accumulator).at[free].set(leaving, mode="drop")
    inside = state.step < len(tables.order)
    return jnp.where(inside, h, jnp.zeros_like(h)), NodeState(edges, state.step + inside.astype(jnp.int32))


def _recurrence(
    operands: Operands, at: Place, entering: Float[Array, "head into track key value"]
) -> tuple[Float[Array, "head out track key value"], Float[Array, "head *read value"]]:
    """The states that leave a node, and what it reads."""
    into, out = len(at.enters), len(at.leaves)
    source, mark = operands.source[0, :, into : into + out], operands.mark[0, :, :into]
    query, key, value = (array[0] for array in operands.inputs)
    forms = operands.deltas
    passed = operands.transition if forms is None else _scales(forms.transition, operands.transition, (out * into,))
    passed = passed[0].reshape(passed.shape[1], out, into, *passed.shape[3:])
    passed = _where(at.leaves[:, None] & at.enters[None, :], passed)
    carried, query = apply_along(jnp.swapaxes(passed, 1, 2), entering), query[:, 0]
    if forms is not None:
        erased = _erased(forms.transition, key[:, 0])
        carried = carried - contract("hk,h...tv->h...tkv", erased.weighted, contract("hk,h...tkv->h...tv", erased.u, carried))
        if forms.mark is not None:
            erased, mark = _erased(forms.mark, key[:, 0]), _scales(forms.mark, operands.mark, (into,))[0]
            query = query - contract("h...,hk->h...k", contract("h...k,hk->h...", query, erased.weighted), erased.u)
    written = write_at_ports(_where(at.leaves, source), key[:, 0], value[:, 0], entering.shape[2])
    return carried + written, read_at_ports(_where(at.enters, mark), query, entering)


class Erased(NamedTuple):
    """What a gate of the delta rule takes away, `weighted u^T`, where `weighted` is `strength * u`."""

    u: Float[Array, "head key"]
    weighted: Float[Array, "head key"]


def _erased(form: Delta, key: Float[Array, "head key"]) -> Erased:
    u = key if form.u is None else form.u[0, :, 0]
    return Erased(u, form.strength[0] * u)


def _scales(form: Delta, gate: Array, sites: tuple[int, ...]) -> Float[Array, "direction head *sites *read *state"]:
    """The scale of a form, laid out as its gate but without state axes; one where it has none."""
    lead = (*gate.shape[:2], *sites)
    terms = gate.shape[3 : gate.ndim - STATE_AXES]
    scale = jnp.ones(lead, gate.dtype) if form.scale is None else form.scale[:, :, : sites[0]]
    scale = jnp.broadcast_to(scale, lead).reshape(*lead, *(1 for _ in terms))
    return jnp.broadcast_to(scale, (*lead, *terms)).reshape(*lead, *terms, *(1,) * STATE_AXES)


def _where(own: Bool[Array, "*edges"], gate: Float[Array, "head *edges *state"]) -> Array:
    return jnp.where(own.reshape(*own.shape, *(1,) * (gate.ndim - 1 - own.ndim)), gate, 0)


def arguments_at(
    tables: NodeTables, star_graph: DAG, leaf: Leaf, step: Int[Array, ""] | int, array: Array
) -> Float[Array, "*rows head ..."]:
    """Of a leaf's array of the whole graph what the node of a step has: `(head, ...)` of a node's, a row for each edge that
    leaves (enters) it of an edge's, `(out, into, head, ...)` of a line edge's."""
    at = place(tables, star_graph, step)
    match leaf_site(leaf):
        case "constant":
            return array
        case "node":
            return node_row(tables, at, array, 1 + len(leaf.indices))
        case "in":
            return take(array, at.into, 0)
        case "out":
            return take(array, at.out, 0)
        case "line":
            return take(array, at.line, 0)


def node_row(tables: NodeTables, at: Place, array: Array, axes: int) -> Array:
    """The row of a node in an array over all nodes, whose last axes are not of nodes."""
    rows = array.reshape(len(tables.order), *array.shape[array.ndim - axes :])
    return jnp.take(rows, at.node, axis=0)
