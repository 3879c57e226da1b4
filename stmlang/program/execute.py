"""A program run: gates, the strategy, the direct term, the sum over directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.graph.shapes import gating_shape, output_shape, several, state_shapes
from stmlang.lower.contractions import contract
from stmlang.lower.gates import squeezed, varies
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import STATE_AXES, Operands, flip, heads_first, input_nodes
from stmlang.lower.strategy import Call, Result
from stmlang.lower.values import join
from stmlang.program.direction_inputs import DirectionInputs, accumulated, direction_inputs
from stmlang.program.node_mask import Mask
from stmlang.program.own_inputs import apart, gating_apart
from stmlang.program.program import Bundle, Program
from stmlang.program.segments import Segments
from stmlang.program.states import LOG_SCALE, State, at_scale_one, entering_scales, entering_state, leaving_state
from stmlang.program.steps import all_steps, each_step, last_steps, written_steps
from stmlang.program.terms import as_heads, gating_of_heads, of_heads
from stmlang.scan.expression import DENSE_INDICES
from stmlang.scan.scan import adds_direct_once, has_scale, own_inputs

DENSE_AXES = len(DENSE_INDICES)
"""Of a gate as it is evaluated: those of writes and reads, and then those of the state."""
NORMALIZER_EPSILON = 1e-10
"""Added to the denominator of `normalize sum`, as linear attention does."""


def run(
    program: Program,
    tables: Sequence[Bundle],
    inputs: Mapping[str, Array],
    gates: Mapping[str, Array],
    initial: State | None,
    return_state: bool,
    mask: Mask | None = None,
    segments: Segments | None = None,
    scaled: bool = False,
) -> tuple[Array, State | None]:
    """Evaluate a scan, on the nodes that a `mask` leaves and by `segments` that do not see each other: the result
    `(*nodes, head, [read], value)`, zero at the other nodes, and, where asked for, the final state; of a scan that has a scale
    of its own at that scale if `scaled`, else at one."""
    if program.unrolled is None:
        return _run(program, tables, inputs, gates, initial, return_state, mask, segments, scaled)
    inputs, gates = all_steps(program.scan, accumulated(program, inputs), accumulated(program, gates))
    mask, segments = (None if numbers is None else each_step(program.scan, numbers) for numbers in (mask, segments))
    h, state = _run(program.unrolled, tables, inputs, gates, initial, return_state, mask, segments, scaled)
    return last_steps(program.scan, h), state


def _run(
    program: Program,
    tables: Sequence[Bundle],
    inputs: Mapping[str, Array],
    gates: Mapping[str, Array],
    initial: State | None,
    return_state: bool,
    mask: Mask | None,
    segments: Segments | None,
    scaled: bool,
) -> tuple[Array, State | None]:
    """The same of a scan whose nodes take one step."""
    scaled = scaled and has_scale(program.scan)
    if program.dag.node_count == 0:
        return _nothing(program, initial, return_state, scaled)
    tables, inputs, gates, initial, mask, segments = alike((tables, inputs, gates, initial, mask, segments))
    scales = entering_scales(program, initial)
    lanes = _with_direct(program, direction_inputs(program, tables, inputs, gates, mask, segments, scales))
    entering = None if initial is None else [entering_state(program, k, lane, initial) for k, lane in enumerate(lanes)]
    contexts, own_tables, operands = zip(*((lane.context, lane.tables, lane.operands) for lane in lanes), strict=True)
    summed = program.scan.combine == "sum"
    outputs, leaving = _evaluated(program, Call(contexts, own_tables, operands, entering, return_state, summed))
    h = combined(program, lanes, outputs)
    if not return_state:
        return h.astype(program.dtype), None
    state = leaving_state(program, leaving)
    scale = lanes[0].scale
    if scale is not None:
        held = tuple({**states, LOG_SCALE: scale.final[k]} for k, states in enumerate(state))
        state = held if scaled else at_scale_one(held)
    return h.astype(program.dtype), state


def _evaluated(program: Program, call: Call) -> Result:
    """A call of the strategy: outputs `(direction, head, *nodes, [read], value)`."""

    def evaluated(call: Call) -> Result:
        return apart(program.scan, call, program.lowering.run) if own_inputs(program.scan) else program.lowering.run(call)

    if not program.one_each:
        return evaluated(call)
    return of_heads(program.scan, evaluated(as_heads(program.scan, call)))


def _with_direct(program: Program, lanes: list[DirectionInputs]) -> list[DirectionInputs]:
    """Lanes whose operands have the direct gate, for a strategy that needs it."""
    if not program.strategy.needs.direct or any(lane.scale is not None for lane in lanes):
        return lanes
    gate = _numbers(_direct(program, lanes))
    scan = program.scan
    if scan.writes == scan.reads == 1:
        gate = gate.reshape(gate.shape[:-2])
    else:
        gate = jnp.broadcast_to(gate, (*gate.shape[:-2], scan.writes, scan.reads))
    if program.scan.combine == "sum" and not own_inputs(scan):
        gate = gate.sum(0, keepdims=True)
    else:
        gate = jnp.broadcast_to(gate, (len(program.scan.directions), *gate.shape[1:]))
    return [lane._replace(operands=alike(lane.operands._replace(direct=gate))) for lane in lanes]


def _nothing(program: Program, initial: State | None, return_state: bool, scaled: bool) -> tuple[Array, State | None]:
    """A scan without nodes: an empty result, and every state passes through."""
    h = jnp.zeros(output_shape(program.scan, program.dag), program.dtype)
    if not return_state:
        return h, None
    if initial is None:
        shapes = state_shapes(program.scan, program.dag, final=True)
        initial = tuple({port: jnp.zeros(shape, program.accumulator) for port, shape in ports.items()} for ports in shapes)
    state = tuple({port: jnp.asarray(array, program.accumulator) for port, array in states.items()} for states in initial)
    if not scaled:
        return h, at_scale_one(state)
    scales = entering_scales(program, initial)
    assert scales is not None
    return h, tuple({**states, LOG_SCALE: scales[k]} for k, states in enumerate(state))


def gating(program: Program, tables: Sequence[Bundle], inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> Array:
    """The gating matrix `(*source nodes, *target nodes, head, [step], [write], [read])`, the direct term on its diagonal: as
    the strategy makes it, or, where it offers none and knows several writes a node, as what the scan reads of unit vectors."""
    if program.unrolled is not None:
        unrolled = all_steps(program.scan, accumulated(program, inputs), accumulated(program, gates))
        matrix = gating(program.unrolled, tables, *unrolled)
        read = jnp.moveaxis(last_steps(program.scan, jnp.moveaxis(matrix, 1, 0)), 0, 1)
        return written_steps(program.scan, read)
    scan, shape = program.scan, gating_shape(program.scan, program.dag)
    if program.dag.node_count == 0:
        return jnp.zeros(shape, program.dtype)
    tables, inputs, gates = alike((tables, inputs, gates))
    lanes = direction_inputs(program, tables, inputs, gates)
    matrix = _formed(program, lanes) if program.strategy.offers.gating else _read_of_units(program, lanes)
    direct = _numbers(_direct(program, lanes))
    nodes = program.dag.node_count
    direct = jnp.moveaxis(direct.reshape(*direct.shape[:2], nodes, *direct.shape[-2:]), 2, -1)
    diagonal = jnp.eye(nodes, dtype=matrix.dtype)[None, None, None, None] * direct[..., None, :]
    summed = scan.combine == "sum" and not own_inputs(scan)
    matrix = matrix.sum(0) + diagonal.sum(0) if summed else (matrix + diagonal).reshape(-1, *matrix.shape[2:])
    return jnp.moveaxis(matrix, (-2, -1), (0, 1)).reshape(shape)


def _formed(program: Program, lanes: Sequence[DirectionInputs]) -> Array:
    """Gating matrices `(direction, head, write, read, source, target)` of a strategy that offers them."""
    make = program.lowering.gating
    assert make is not None
    matrices: list[Array] = []
    for lane in lanes:
        call = Call([lane.context], [lane.tables], [lane.operands], None, False, False)
        if program.one_each:
            call = as_heads(program.scan, call)
        if own_inputs(program.scan):
            matrices.append(gating_apart(program.scan, call, make))
        else:
            matrices.append(make(lane.context, lane.tables, call.operands[0]))
    return gating_of_heads(program.scan, jnp.concatenate(matrices))


def _read_of_units(program: Program, lanes: Sequence[DirectionInputs]) -> Array:
    """The same of any strategy, for gates that leave keys and values alone: where queries and keys are one, and each write of
    each node has a unit vector of its own for its value, what a node reads is its column of the matrix."""
    scan, dag = program.scan, program.dag
    nodes, terms = dag.node_count, several(scan.writes)
    sites = dag.regular if dag.regular is not None else (nodes,)
    units = jnp.eye(nodes * scan.writes, dtype=program.accumulator).reshape(*sites, *terms, -1)

    def with_units(lane: DirectionInputs) -> Operands:
        senses = [direction.senses for direction in scan.directions] if dag.regular is not None else [(1,)]
        value = jnp.stack([flip(units, sense, 0) for sense in senses])[:, None]
        lead = (len(senses), scan.heads)
        query, key = (jnp.ones((*lead, *sites, *axes, 1), units.dtype) for axes in (several(scan.reads), several(scan.writes)))
        return lane.operands._replace(query=query, key=key, value=jnp.broadcast_to(value, (*lead, *units.shape)))

    contexts, tables = [lane.context for lane in lanes], [lane.tables for lane in lanes]
    operands = [with_units(lane) for lane in lanes]
    outputs, _ = _evaluated(program, Call(contexts, tables, operands, None, False, False))
    matrix = outputs.reshape(*outputs.shape[:2], nodes, scan.reads, nodes, scan.writes)
    return jnp.transpose(matrix, (0, 1, 5, 3, 4, 2))


def _direct(program: Program, lanes: Sequence[DirectionInputs]) -> Array:
    """The direct gate as `(direction, head, *nodes, write, read, *state)`, the last axes of size one where it does not vary
    along them: one entry where it is the same for all directions."""
    once = adds_direct_once(program.scan)
    return jnp.concatenate([_direct_of(program, lane) for lane in (lanes[:1] if once else lanes)])


def _direct_of(program: Program, lane: DirectionInputs) -> Array:
    if lane.scale is not None:
        return lane.scale.direct.reshape(*lane.scale.direct.shape, *(1,) * DENSE_AXES)
    value = lane.environment["direct"].array
    lead = lane.frame.site_axes
    value = jnp.moveaxis(value, [lead + 1, lead], [0, 1])
    value = jnp.squeeze(value, (lead + 2, lead + 3))
    sites = program.dag.regular if program.dag.regular is not None else (program.dag.node_count,)
    shape = (value.shape[0], program.scan.heads, *sites, *value.shape[value.ndim - DENSE_AXES :])
    value = jnp.broadcast_to(value, shape)
    return value.reshape(*value.shape[:2], *program.dag.node_shape, *value.shape[value.ndim - DENSE_AXES :])


def _numbers(gate: Array) -> Array:
    """A direct gate that acts on no state axis, `(direction, head, *nodes, write, read)`."""
    return gate.reshape(gate.shape[:-STATE_AXES])


def _direct_term(program: Program, lanes: Sequence[DirectionInputs], gate: Array) -> Array:
    """`sum over k and writes w of q[k] D[w, k, v] k[w, k] v[w, v]`, `(direction, head, *nodes, [read], value)`."""
    scan, nodes = program.scan, program.dag.node_shape
    sites = nodes if program.dag.regular is not None else (program.dag.node_count,)
    axis = len(sites) + 1

    def of_directions(name: str) -> Array:
        """An input of all directions, `(*sites, head, direction or 1, ...)`."""
        own = lanes if name in own_inputs(scan) else lanes[:1]
        return join([input_nodes(lane.frame, lane.environment, name, sites) for lane in own], axis)

    query, key, value = (of_directions(name) for name in ("q", "k", "v"))
    if scan.normalize != "none":
        value = jnp.concatenate([value, jnp.ones((*value.shape[:-1], 1), value.dtype)], axis=-1)
    letters = varies(gate)

    def laid(array: Array) -> Array:
        """An array of nodes with directions and heads in front."""
        return heads_first(array, len(sites)).reshape(array.shape[axis], scan.heads, *nodes, *array.shape[axis + 1 :])

    if scan.writes > 1 or scan.reads > 1:
        query, key, value = map(laid, (query, key, value))
        query = query if scan.reads > 1 else query[..., None, :]
        key, value = (key, value) if scan.writes > 1 else (key[..., None, :], value[..., None, :])
        number = squeezed(gate)
        letter_axes = number.shape[number.ndim - len(letters) :]
        number = jnp.broadcast_to(
            number, (*number.shape[: number.ndim - len(letters) - 2], scan.writes, scan.reads, *letter_axes)
        )
        term = contract(f"...wr{letters},...rk,...wk,...wv->...rv", number, query, key, value)
        return term if scan.reads > 1 else jnp.squeeze(term, -2)
    gate = jnp.squeeze(gate, (-DENSE_AXES, 1 - DENSE_AXES))
    if "k" in letters:
        return contract(
            f"...{letters},...k,...k,...v->...v", squeezed(gate), *(laid(vectors) for vectors in (query, key, value))
        )
    # Summed over the keys as they lie in memory, before heads are moved.
    likeness = jnp.sum(query * key, axis=-1, keepdims=True)
    return contract(f"...{letters},...k,...v->...v", squeezed(gate), laid(likeness), laid(value))


def combined(program: Program, lanes: Sequence[DirectionInputs], outputs: Array) -> Array:
    """Directions in one or side by side, the direct term added unless the strategy did, the normalizer divided out:
    `(*nodes, head, [read], value)`."""
    summed = program.scan.combine == "sum"
    if summed:
        outputs = jnp.squeeze(outputs, 0)
    if not lanes[0].operands.with_direct:
        direct = _direct_term(program, lanes, _direct(program, lanes))
        outputs = outputs + (direct.sum(0) if summed else direct)
    if not summed:
        outputs = outputs.reshape(-1, *outputs.shape[2:])
    if program.scan.normalize != "none":
        outputs = _normalized(program, lanes[0], outputs)
    return jnp.moveaxis(outputs, 0, len(program.dag.node_shape))


def _normalized(program: Program, lane: DirectionInputs, outputs: Array) -> Array:
    """`(head, *nodes, [read], value)` divided by its last column, which is at the scale of the lane like all of them."""
    h, divisor = outputs[..., :-1], outputs[..., -1:]
    unit = jnp.ones((), outputs.dtype)
    if lane.scale is not None:
        unit = jnp.exp(-lane.scale.read).reshape(-1, program.dag.node_count, *(1,) * (outputs.ndim - 2))
    if program.scan.normalize == "sum":
        return h / (divisor + NORMALIZER_EPSILON * unit)
    size = jnp.maximum(jnp.abs(divisor), unit)
    if lane.scale is not None and lane.scale.largest is not None:
        size = size + program.scan.epsilon * lane.scale.largest.reshape(unit.shape)
    return h / size
