"""A program run: gates, the strategy, the direct term, the sum over directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.graph.shapes import gating_shape, output_shape, state_shapes
from stmlang.lower.contractions import contract
from stmlang.lower.gates import squeezed, varies
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import STATE_AXES, input_nodes
from stmlang.lower.strategy import Call
from stmlang.program.direction_inputs import DirectionInputs, direction_inputs
from stmlang.program.node_mask import Mask
from stmlang.program.program import Bundle, Program
from stmlang.program.states import State, entering_state, leaving_state

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
) -> tuple[Array, State | None]:
    """Evaluate a scan, on the nodes that a `mask` leaves: the result `(*nodes, head, value)`, zero at the others, and, where
    asked for, the final state."""
    if program.dag.node_count == 0:
        return _nothing(program, initial, return_state)
    tables, inputs, gates, initial, mask = alike((tables, inputs, gates, initial, mask))
    lanes = _with_direct(program, direction_inputs(program, tables, inputs, gates, mask))
    entering = None if initial is None else [entering_state(program, k, lane, initial) for k, lane in enumerate(lanes)]
    contexts, own_tables, operands = zip(*((lane.context, lane.tables, lane.operands) for lane in lanes), strict=True)
    summed = program.scan.combine == "sum"
    outputs, leaving = program.lowering.run(Call(contexts, own_tables, operands, entering, return_state, summed))
    h = _combined(program, lanes, outputs)
    if not return_state:
        return h.astype(program.dtype), None
    final = [_unscaled(lane, state) for lane, state in zip(lanes, leaving, strict=True)]
    return h.astype(program.dtype), leaving_state(program, final)


def _with_direct(program: Program, lanes: list[DirectionInputs]) -> list[DirectionInputs]:
    """Lanes whose operands have the direct gate, for a strategy that needs it."""
    if not program.lowering.needs.direct or any(lane.scale is not None for lane in lanes):
        return lanes
    gate = _direct(program, lanes)
    gate = gate.reshape(gate.shape[:-STATE_AXES])
    if program.scan.combine == "sum":
        gate = gate.sum(0, keepdims=True)
    else:
        gate = jnp.broadcast_to(gate, (len(program.scan.directions), *gate.shape[1:]))
    return [lane._replace(operands=lane.operands._replace(direct=gate)) for lane in lanes]


def _unscaled(lane: DirectionInputs, state: Array) -> Array:
    """A final state at scale one: states are handed over as they are, however large."""
    if lane.scale is None:
        return state
    return state * jnp.exp(lane.scale.final)[:, :, None, None, None, None]


def _nothing(program: Program, initial: State | None, return_state: bool) -> tuple[Array, State | None]:
    """A scan without nodes: an empty result, and every state passes through."""
    h = jnp.zeros(output_shape(program.scan, program.dag), program.dtype)
    if not return_state:
        return h, None
    if initial is not None:
        return h, tuple({port: jnp.asarray(array, program.accumulator) for port, array in states.items()} for states in initial)
    shapes = state_shapes(program.scan, program.dag, final=True)
    return h, tuple({port: jnp.zeros(shape, program.accumulator) for port, shape in ports.items()} for ports in shapes)


def gating(program: Program, tables: Sequence[Bundle], inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> Array:
    """The gating matrix `(*source nodes, *target nodes, head)`, the direct term on its diagonal; of a lowering that has one."""
    make = program.lowering.gating
    assert make is not None
    if program.dag.node_count == 0:
        return jnp.zeros(gating_shape(program.scan, program.dag), program.dtype)
    lanes = direction_inputs(program, tables, inputs, gates)
    matrix = jnp.concatenate([make(lane.context, lane.tables, lane.operands) for lane in lanes])
    direct = _direct(program, lanes)
    gate = direct.reshape(*direct.shape[:-STATE_AXES])
    nodes = program.dag.node_count
    diagonal = jnp.eye(nodes, dtype=matrix.dtype)[None, None] * gate.reshape(*gate.shape[:2], 1, nodes)
    if program.scan.combine == "concat":
        matrix = (matrix + diagonal).reshape(-1, nodes, nodes)
    else:
        matrix = matrix.sum(0) + diagonal.sum(0)
    shape = program.dag.node_shape
    return jnp.moveaxis(matrix, 0, -1).reshape(*shape, *shape, matrix.shape[0])


def _direct(program: Program, lanes: Sequence[DirectionInputs]) -> Array:
    """The direct gate as `(direction, head, *nodes, *state)`: one entry where it is the same for all directions."""
    once = program.scan.combine == "sum" and not program.scan.gate("direct").directional
    return jnp.concatenate([_direct_of(program, lane) for lane in (lanes[:1] if once else lanes)])


def _direct_of(program: Program, lane: DirectionInputs) -> Array:
    if lane.scale is not None:
        return lane.scale.direct.reshape(*lane.scale.direct.shape, *(1,) * STATE_AXES)
    value = lane.environment["direct"].array
    lead = lane.frame.site_axes
    value = jnp.moveaxis(value, [lead + 1, lead], [0, 1])
    value = jnp.squeeze(value, (lead + 2, lead + 3))
    sites = program.dag.regular if program.dag.regular is not None else (program.dag.node_count,)
    shape = (value.shape[0], program.scan.heads, *sites, *value.shape[value.ndim - STATE_AXES :])
    value = jnp.broadcast_to(value, shape)
    return value.reshape(*value.shape[:2], *program.dag.node_shape, *value.shape[value.ndim - STATE_AXES :])


def _direct_term(program: Program, lane: DirectionInputs, gate: Array) -> Array:
    """`sum over k of q[k] D[k, v] k[k] v[v]`, `(direction, head, *nodes, value)`."""
    nodes = program.dag.node_shape
    sites = nodes if program.dag.regular is not None else (program.dag.node_count,)
    query, key, value = (input_nodes(lane.frame, lane.environment, name, sites) for name in ("q", "k", "v"))
    if program.scan.normalize != "none":
        value = jnp.concatenate([value, jnp.ones((*value.shape[:-1], 1), value.dtype)], axis=-1)
    letters = varies(gate)

    def laid(array: Array) -> Array:
        return jnp.moveaxis(array, -2, 0).reshape(program.scan.heads, *nodes, -1)

    if "k" in letters:
        return contract(
            f"...{letters},...k,...k,...v->...v", squeezed(gate), *(laid(vectors) for vectors in (query, key, value))
        )
    # Summed over the keys as they lie in memory, before heads are moved.
    likeness = jnp.sum(query * key, axis=-1, keepdims=True)
    return contract(f"...{letters},...k,...v->...v", squeezed(gate), laid(likeness), laid(value))


def _combined(program: Program, lanes: Sequence[DirectionInputs], outputs: Array) -> Array:
    """Directions in one or side by side, the direct term added unless the strategy did, the normalizer divided out:
    `(*nodes, head, value)`."""
    summed = program.scan.combine == "sum"
    if summed:
        outputs = jnp.squeeze(outputs, 0)
    if lanes[0].operands.direct is None:
        direct = _direct_term(program, lanes[0], _direct(program, lanes))
        outputs = outputs + (direct.sum(0) if summed else direct)
    if not summed:
        outputs = outputs.reshape(-1, *outputs.shape[2:])
    if program.scan.normalize != "none":
        outputs = _normalized(program, lanes[0], outputs)
    return jnp.moveaxis(outputs, 0, -2)


def _normalized(program: Program, lane: DirectionInputs, outputs: Array) -> Array:
    """`(head, *nodes, value)` divided by its last column, which is at the scale of the lane like all of them."""
    h, divisor = outputs[..., :-1], outputs[..., -1:]
    unit = jnp.ones((), outputs.dtype)
    if lane.scale is not None:
        unit = jnp.exp(-lane.scale.read).reshape(-1, program.dag.node_count, 1)
    if program.scan.normalize == "sum":
        return h / (divisor + NORMALIZER_EPSILON * unit)
    return h / jnp.maximum(jnp.abs(divisor), unit)
