"""A plan as one JAX function: gates, directions, the strategy, the direct term, the sum over directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.graph.dag import Dag
from stmlang.graph.multitree import greedy_multitree
from stmlang.graph.shapes import index_size
from stmlang.lower import chunkwise, dense, parallel, recurrent
from stmlang.lower.block import advance, attend, contract, read, write
from stmlang.lower.evaluate import Environment, Frame, Sites, evaluate
from stmlang.lower.merge import Places
from stmlang.lower.operands import STATE_AXES, Operands, flip, input_nodes, ragged_operands, regular_operands
from stmlang.lower.strategy import Lowering, Setup, Tables, Whole
from stmlang.plan.candidate import Candidate
from stmlang.plan.problem import Problem
from stmlang.scan.expression import LineMask, children
from stmlang.scan.scan import Scan

LOWERINGS: dict[str, Lowering] = {
    "recurrent": recurrent.LOWERING,
    "parallel": parallel.LOWERING,
    "chunkwise": chunkwise.LOWERING,
    "dense": dense.LOWERING,
}
"""One for each strategy in `stmlang.plan.candidates`; adding one is a file there, a file here and a line in each list."""

State = tuple[dict[str, Array], ...]
"""For each direction and port the states of open edges: see `stmlang.graph.shapes.state_shapes`."""

NORMALIZER_EPSILON = 1e-10
"""Added to the denominator of `normalize sum`, as linear attention does."""


class Bundle(NamedTuple):
    """The tables of directions that run together: all of them on a regular topology, one on a ragged one. `line` says which
    declared line edge each line edge of the bundle's graph is, where they are numbered differently."""

    sites: Sites | None
    line: Places | None
    strategy: Tables


@dataclass(frozen=True, eq=False)
class Program:
    """Everything static. `tables` (numpy) is a pytree that the caller passes back to `run`, so that no index is a constant."""

    problem: Problem
    dag: Dag
    candidate: Candidate

    @property
    def scan(self) -> Scan:
        return self.problem.scan

    @property
    def dtype(self) -> Any:
        """The data type that results have."""
        return jnp.dtype(self.problem.dtype)

    @property
    def accumulator(self) -> Any:
        """The data type that everything is computed in."""
        return jnp.dtype(jnp.float64 if self.problem.dtype == "float64" else jnp.float32)

    @property
    def lowering(self) -> Lowering:
        return LOWERINGS[self.candidate.strategy]

    @cached_property
    def setups(self) -> tuple[Setup, ...]:
        """One for each bundle of directions."""
        config = dict(self.candidate.config)
        if self.dag.regular is not None:
            return (Setup(self.problem, self.dag, config),)
        backward = self.dag.reversed()
        oriented = [backward if direction.senses[0] < 0 else self.dag for direction in self.scan.directions]
        return tuple(Setup(self.problem, dag, config) for dag in oriented)

    @cached_property
    def tables(self) -> tuple[Bundle, ...]:
        """Index tables for each bundle."""
        return tuple(Bundle(self._sites(setup), self._line(setup), self.lowering.tables(setup)) for setup in self.setups)

    def _line(self, setup: Setup) -> np.ndarray | None:
        if setup.dag is self.dag:
            return None
        width = self.dag.edge_count
        declared = self.dag.line_edges[:, 0] * width + self.dag.line_edges[:, 1]
        wanted = setup.dag.line_edges[:, 1] * width + setup.dag.line_edges[:, 0]
        order = np.argsort(declared)
        return order[np.searchsorted(declared[order], wanted)].astype(np.int32)

    def _sites(self, setup: Setup) -> Sites | None:
        """Tables for the gates of a ragged topology. Edge and line edge leaves are numbered as in the declared graph."""
        if setup.axes is not None:
            return None
        dag, declared = setup.dag, self.dag
        line = declared.line_edges
        into, out = (line[:, 0], line[:, 1]) if dag is declared else (line[:, 1], line[:, 0])
        mask = greedy_multitree(declared) if _masked(self.scan) else None
        ends = (np.where(end < 0, dag.node_count, end) for end in (dag.tail, dag.head))
        tail, head = (end.astype(np.int32) for end in ends)
        into, out, node, port = (part.astype(np.int32) for part in (into, out, dag.head[into], dag.port))
        return Sites(tail, head, into, out, node, port, mask)


def _masked(scan: Scan) -> bool:
    """Whether any gate uses the multitree mask."""
    stack = [clause.value for gate in scan.gates for clause in gate.clauses]
    while stack:
        expr = stack.pop()
        if isinstance(expr, LineMask):
            return True
        stack.extend(children(expr))
    return False


# --- evaluation ------------------------------------------------------------------------------------------------------


class Lane(NamedTuple):
    """A bundle of directions ready for its strategy."""

    setup: Setup
    tables: Tables
    operands: Operands
    environment: Environment
    frame: Frame


def lanes(program: Program, tables: Sequence[Bundle], inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> list[Lane]:
    """Gates evaluated and laid out for every bundle. `inputs` are q, k, v as `(*nodes, head, index)`."""
    scan, dag = program.scan, program.dag
    regular = dag.regular is not None
    found: list[Lane] = []
    for number, (setup, bundle) in enumerate(zip(program.setups, tables, strict=True)):
        frame = Frame(scan, dag.ports, len(dag.node_shape) if regular else 1, dag.node_count, bundle.sites, program.accumulator)
        leaves = {leaf.name: _leaf(program, leaf.name, gates[leaf.name], number) for leaf in scan.leaves}
        nodes = dag.node_shape if regular else (dag.node_count,)
        flat = {name: jnp.reshape(array, (*nodes, *array.shape[-2:])) for name, array in inputs.items()}
        environment = evaluate(frame, leaves, flat)
        if dag.regular is not None:
            operands = regular_operands(frame, environment, dag.regular)
        else:
            operands = ragged_operands(frame, environment, dag.edge_count, len(dag.line_edges))
            if bundle.line is not None:
                operands = operands._replace(transition=jnp.take(operands.transition, bundle.line, axis=2))
        if scan.normalize != "none":
            ones = jnp.ones((*operands.value.shape[:-1], 1), operands.value.dtype)
            operands = operands._replace(value=jnp.concatenate([operands.value, ones], axis=-1))
        found.append(Lane(setup, bundle.strategy, operands, environment, frame))
    return found


def _leaf(program: Program, name: str, array: Array, bundle: int) -> Array:
    """A leaf with a direction axis; on a ragged topology only its bundle's direction, and all node axes made one."""
    leaf, scan, dag = program.scan.leaf(name), program.scan, program.dag
    ragged = dag.regular is None
    dense = [index for index in leaf.indices if not (ragged and index in ("out", "in"))]
    axis = array.ndim - len(dense)
    if not (leaf.directional and len(scan.directions) > 1):
        array = jnp.expand_dims(array, axis)
    else:
        axis -= 1
        if ragged:
            array = jax.lax.slice_in_dim(array, bundle, bundle + 1, axis=axis)
    if ragged and leaf.kind != "param":
        array = jnp.reshape(array, (-1, *array.shape[axis - 1 :]))
    return array


def run(
    program: Program,
    tables: Sequence[Bundle],
    inputs: Mapping[str, Array],
    gates: Mapping[str, Array],
    initial: State | None,
    return_state: bool,
) -> tuple[Array, State | None]:
    """Evaluate a scan: the result `(*nodes, head, value)` and, where asked for, the final state."""
    inputs = {name: jnp.asarray(array, program.accumulator) for name, array in inputs.items()}
    found = lanes(program, tables, inputs, gates)
    slots = [_initial(program, k, lane, initial) for k, lane in enumerate(found)]
    if isinstance(program.lowering, Whole):
        per_direction, final = _run_whole(program, program.lowering, found, slots, initial is not None, return_state)
    else:
        per_direction, final = [], []
        for lane, state in zip(found, slots, strict=True):
            outputs, after = program.lowering.run(lane.setup, lane.tables, lane.operands, state)
            per_direction.append(_unflipped(program, outputs))
            final.append(after)
    h = _combine(program, found, jnp.concatenate(per_direction))
    state = _final(program, final) if return_state else None
    return h.astype(program.dtype), state


def gating(program: Program, tables: Sequence[Bundle], inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> Array:
    """The gating matrix `(*source nodes, *target nodes, head)`, the direct term on its diagonal. For `Whole` lowerings."""
    lowering = program.lowering
    assert isinstance(lowering, Whole)
    found = lanes(program, tables, inputs, gates)
    parts = [_unflipped_gating(program, lowering.block(lane.setup, lane.tables, lane.operands).gating) for lane in found]
    matrix = jnp.concatenate(parts)
    direct = _direct(program, found)
    gate = direct.reshape(*direct.shape[:-STATE_AXES])
    nodes = program.dag.node_count
    diagonal = jnp.eye(nodes, dtype=matrix.dtype) * gate.reshape(*gate.shape[:2], 1, nodes)
    if program.scan.combine == "concat":
        matrix = (matrix + diagonal).reshape(-1, nodes, nodes)
    else:
        matrix = matrix.sum(0) + diagonal.sum(0)
    shape = program.dag.node_shape
    return jnp.moveaxis(matrix, 0, -1).reshape(*shape, *shape, matrix.shape[0])


def _run_whole(
    program: Program, lowering: Whole, found: Sequence[Lane], slots: Sequence[Array], resumed: bool, return_state: bool
) -> tuple[list[Array], list[Array]]:
    """One attention pass for the sum of all directions; states, where there are any, direction by direction."""
    blocks = [lowering.block(lane.setup, lane.tables, lane.operands) for lane in found]
    matrices = jnp.concatenate([_unflipped_gating(program, block.gating) for block in blocks])
    if program.scan.combine == "sum":
        matrices = matrices.sum(0, keepdims=True)
    query, key, value = (_flat(program, _unflipped(program, part)[:1]) for part in found[0].operands[3:])
    attended = attend(matrices, query, key, value)
    outputs = [attended.reshape(*attended.shape[:2], *program.dag.node_shape, attended.shape[-1])]
    final: list[Array] = []
    for lane, block, state in zip(found, blocks, slots, strict=True):
        query, key, value = (_flat(program, part) for part in lane.operands[3:])
        entering = jnp.squeeze(state, 3)
        if resumed:
            seen = read(block.mark, query, entering)
            outputs.append(_unflipped(program, seen.reshape(*seen.shape[:2], *_sites(program), seen.shape[-1])))
        if return_state:
            leaving = write(block.source, key, value) + advance(block.transition, entering)
            final.append(leaving[:, :, :, None])
    if program.scan.combine == "concat" and resumed:
        return [outputs[0] + jnp.concatenate(outputs[1:])], final
    return outputs, final


def _sites(program: Program) -> tuple[int, ...]:
    return program.dag.node_shape


def _flat(program: Program, array: Array) -> Array:
    """`(direction, head, *nodes, index)` with one axis of nodes."""
    return array.reshape(*array.shape[:2], program.dag.node_count, array.shape[-1])


def _unflipped(program: Program, array: Array) -> Array:
    """`(direction, head, *nodes, ...)` back in the coordinates of the declared topology."""
    if program.dag.regular is None:
        return array.reshape(*array.shape[:2], *program.dag.node_shape, array.shape[-1])
    directions = program.scan.directions
    return jnp.stack([flip(part, direction.senses, 1) for part, direction in zip(array, directions, strict=True)])


def _unflipped_gating(program: Program, matrix: Array) -> Array:
    axes = program.dag.regular
    if axes is None:
        return matrix
    split = matrix.reshape(*matrix.shape[:2], *axes, *axes)
    parts = [
        flip(flip(part, direction.senses, 1), direction.senses, 1 + len(axes))
        for part, direction in zip(split, program.scan.directions, strict=True)
    ]
    return jnp.stack(parts).reshape(matrix.shape)


def _direct(program: Program, found: Sequence[Lane]) -> Array:
    """The direct gate as `(direction, head, *nodes, *state)`: one entry where it is the same for all directions."""
    once = program.scan.combine == "sum" and not program.scan.gate("direct").directional
    return jnp.concatenate([_direct_of(program, lane) for lane in (found[:1] if once else found)])


def _direct_of(program: Program, lane: Lane) -> Array:
    value = lane.environment["direct"].array
    lead = lane.frame.site_axes
    value = jnp.moveaxis(value, [lead + 1, lead], [0, 1])
    value = jnp.squeeze(value, (lead + 2, lead + 3))
    sites = program.dag.regular if program.dag.regular is not None else (program.dag.node_count,)
    shape = (value.shape[0], program.scan.heads, *sites, *value.shape[value.ndim - STATE_AXES :])
    value = jnp.broadcast_to(value, shape)
    return value.reshape(*value.shape[:2], *program.dag.node_shape, *value.shape[value.ndim - STATE_AXES :])


def _direct_term(program: Program, lane: Lane, gate: Array) -> Array:
    """`sum over k of q[k] D[k, v] k[k] v[v]`, `(direction, head, *nodes, value)`."""
    nodes = program.dag.node_shape
    sites = nodes if program.dag.regular is not None else (program.dag.node_count,)
    query, key, value = (
        jnp.moveaxis(input_nodes(lane.frame, lane.environment, name, sites), -2, 0).reshape(program.scan.heads, *nodes, -1)
        for name in ("q", "k", "v")
    )
    if program.scan.normalize != "none":
        value = jnp.concatenate([value, jnp.ones((*value.shape[:-1], 1), value.dtype)], axis=-1)
    letters = recurrent.varies(gate)
    return contract(f"...{letters},...k,...k,...v->...v", recurrent.squeezed(gate), query, key, value)


def _combine(program: Program, found: Sequence[Lane], outputs: Array) -> Array:
    """Directions summed or side by side, the direct term added, the normalizer divided out: `(*nodes, head, value)`."""
    direct = _direct_term(program, found[0], _direct(program, found))
    if program.scan.combine == "concat":
        outputs = outputs + direct
        outputs = outputs.reshape(-1, *outputs.shape[2:])
    else:
        outputs = outputs.sum(0) + direct.sum(0)
    match program.scan.normalize:
        case "none":
            pass
        case "sum":
            outputs = outputs[..., :-1] / (outputs[..., -1:] + NORMALIZER_EPSILON)
        case "mlstm":
            outputs = outputs[..., :-1] / jnp.maximum(jnp.abs(outputs[..., -1:]), 1)
    return jnp.moveaxis(outputs, 0, -2)


# --- states ----------------------------------------------------------------------------------------------------------


def _edge_state(program: Program) -> tuple[int, int, int]:
    scan = program.scan
    return scan.track, scan.key, index_size(scan, "value") + (scan.normalize != "none")


def _initial(
    program: Program, bundle: int, lane: Lane, initial: State | None
) -> Float[Array, "direction head edge track key value"]:
    """The state on the open edges in the order of the strategies, zero where none is given."""
    directions = len(program.scan.directions) if program.dag.regular is not None else 1
    if initial is None:
        shape = (directions, program.scan.heads, len(lane.setup.dag.entering), *_edge_state(program))
        return jnp.zeros(shape, program.accumulator)
    parts = [_given(program, lane.setup.dag, initial[bundle + k], bundle + k) for k in range(directions)]
    return jnp.stack(parts)


def _given(program: Program, dag: Dag, state: Mapping[str, Array], direction: int) -> Array:
    """One direction's state, `(head, edge, track, key, value)`."""
    scan, parts = program.scan, list[Array]()
    for number, port in enumerate(dag.ports):
        array = jnp.asarray(state[port], program.accumulator)
        lead = array.ndim - (4 if scan.track > 1 else 3)
        if dag.regular is not None:
            senses = scan.directions[direction].senses
            array = flip(array, senses[:number] + senses[number + 1 :], 0)
        array = jnp.moveaxis(array, lead, 0).reshape(scan.heads, -1, *_edge_state(program))
        parts.append(array)
    together = jnp.concatenate(parts, axis=1)
    return together if dag.regular is not None else jnp.take(together, _by_port(dag, dag.entering), axis=1)


def _by_port(dag: Dag, edges: np.ndarray) -> np.ndarray:
    """Where each of the edges stands once they are sorted by port."""
    return np.argsort(np.argsort(dag.port[edges], kind="stable")).astype(np.int32)


def _final(program: Program, found: Sequence[Array]) -> State:
    states: list[dict[str, Array]] = []
    for bundle, (setup, stacked) in enumerate(zip(program.setups, found, strict=True)):
        for k in range(stacked.shape[0]):
            states.append(_taken_apart(program, setup.dag, stacked[k], bundle + k))
    return tuple(states)


def _taken_apart(program: Program, dag: Dag, state: Array, direction: int) -> dict[str, Array]:
    """`(head, edge, track, key, value)` as one array for each port."""
    scan = program.scan
    state = jnp.moveaxis(state, 0, 1)
    if scan.track == 1:
        state = jnp.squeeze(state, 2)
    found: dict[str, Array] = {}
    start = 0
    for number, port in enumerate(dag.ports):
        if dag.regular is None:
            found[port] = jnp.take(state, np.flatnonzero(dag.port[dag.leaving] == number), axis=0)
            continue
        others = dag.regular[:number] + dag.regular[number + 1 :]
        count = int(np.prod(others, dtype=np.int64))
        part = state[start : start + count].reshape(*others, *state.shape[1:])
        senses = scan.directions[direction].senses
        found[port] = flip(part, senses[:number] + senses[number + 1 :], 0)
        start += count
    return found
