"""A program run: gates, the strategy, the direct term, the sum over directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from jaxtyping import Array

from stmlang.graph.shapes import gating_shape, output_shape, state_shapes
from stmlang.lower.block import Block, advance, attend, contract, read, write
from stmlang.lower.gates import squeezed, varies
from stmlang.lower.manual import alike
from stmlang.lower.operands import STATE_AXES, flip, input_nodes
from stmlang.lower.strategy import Closed, Stepwise, Whole
from stmlang.program.direction_inputs import DirectionInputs, lanes
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
    found = _with_direct(program, lanes(program, tables, inputs, gates, mask))
    slots = [entering_state(program, k, lane, initial) for k, lane in enumerate(found)]
    match program.lowering:
        case Whole() as lowering:
            per_direction, final = _run_whole(program, lowering, found, slots, initial is not None, return_state)
        case Closed() as lowering:
            contexts, made, operands = zip(*((lane.context, lane.tables, lane.operands) for lane in found), strict=True)
            per_direction, final = [lowering.outputs(contexts, made, operands, program.scan.combine == "sum")], slots
        case Stepwise() as lowering:
            per_direction, final = list[Array](), list[Array]()
            for lane, state in zip(found, slots, strict=True):
                outputs, after = lowering.run(lane.context, lane.tables, lane.operands, state)
                per_direction.append(_unflipped(program, outputs))
                final.append(after)
    final = [_unscaled(lane, state) for lane, state in zip(found, final, strict=False)]
    h = _combine(program, found, jnp.concatenate(per_direction))
    state = leaving_state(program, final) if return_state else None
    return h.astype(program.dtype), state


def _with_direct(program: Program, found: list[DirectionInputs]) -> list[DirectionInputs]:
    """Lanes whose operands have the direct gate, for a strategy that takes it."""
    lowering = program.lowering
    if not (isinstance(lowering, Whole) and lowering.direct) or any(lane.scale is not None for lane in found):
        return found
    gate = _direct(program, found)
    gate = gate.reshape(gate.shape[:-STATE_AXES])
    if program.scan.combine == "sum":
        gate = gate.sum(0, keepdims=True)
    else:
        gate = jnp.broadcast_to(gate, (len(program.scan.directions), *gate.shape[1:]))
    return [lane._replace(operands=lane.operands._replace(direct=gate)) for lane in found]


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
        return h, tuple({port: jnp.asarray(array, program.accumulator) for port, array in part.items()} for part in initial)
    shapes = state_shapes(program.scan, program.dag, final=True)
    return h, tuple({port: jnp.zeros(shape, program.accumulator) for port, shape in part.items()} for part in shapes)


def gating(program: Program, tables: Sequence[Bundle], inputs: Mapping[str, Array], gates: Mapping[str, Array]) -> Array:
    """The gating matrix `(*source nodes, *target nodes, head)`, the direct term on its diagonal. For `Whole` lowerings."""
    lowering = program.lowering
    assert isinstance(lowering, Whole)
    if program.dag.node_count == 0:
        return jnp.zeros(gating_shape(program.scan, program.dag), program.dtype)
    found = lanes(program, tables, inputs, gates)
    parts = [_unflipped_gating(program, lowering.block(lane.context, lane.tables, lane.operands).gating) for lane in found]
    matrix = jnp.concatenate(parts)
    direct = _direct(program, found)
    gate = direct.reshape(*direct.shape[:-STATE_AXES])
    nodes = program.dag.node_count
    diagonal = jnp.eye(nodes, dtype=matrix.dtype)[None, None] * gate.reshape(*gate.shape[:2], 1, nodes)
    if program.scan.combine == "concat":
        matrix = (matrix + diagonal).reshape(-1, nodes, nodes)
    else:
        matrix = matrix.sum(0) + diagonal.sum(0)
    shape = program.dag.node_shape
    return jnp.moveaxis(matrix, 0, -1).reshape(*shape, *shape, matrix.shape[0])


def _run_whole(
    program: Program,
    lowering: Whole,
    found: Sequence[DirectionInputs],
    slots: Sequence[Array],
    resumed: bool,
    return_state: bool,
) -> tuple[list[Array], list[Array]]:
    """One attention pass for the sum of all directions; states, where there are any, direction by direction."""
    blocks: list[Block] = []
    if lowering.outputs is None or resumed or return_state:
        blocks = [lowering.block(lane.context, lane.tables, lane.operands) for lane in found]
    if lowering.outputs is None:
        outputs = [_attended(program, found, blocks)]
    else:
        parts = [lowering.outputs(lane.context, lane.tables, lane.operands) for lane in found]
        outputs = [jnp.concatenate(parts)]
    final: list[Array] = []
    for lane, block, state in zip(found, blocks, slots, strict=False):
        query, key, value = (_flat(program, part) for part in lane.operands.inputs)
        entering = jnp.squeeze(state, 3)
        if resumed:
            seen = read(block.mark, query, entering)
            outputs.append(_unflipped(program, seen.reshape(*seen.shape[:2], *program.dag.node_shape, seen.shape[-1])))
        if return_state:
            leaving = write(block.source, key, value) + advance(block.transition, entering)
            final.append(leaving[:, :, :, None])
    if program.scan.combine == "concat" and resumed:
        return [outputs[0] + jnp.concatenate(outputs[1:])], final
    return outputs, final


def _attended(program: Program, found: Sequence[DirectionInputs], blocks: Sequence[Block]) -> Array:
    """Attention with the gating matrices of all directions: summed, or direction by direction."""
    matrices = jnp.concatenate([_unflipped_gating(program, block.gating) for block in blocks])
    if program.scan.combine == "sum":
        matrices = matrices.sum(0, keepdims=True)
    query, key, value = (_flat(program, _unflipped(program, part)[:1]) for part in found[0].operands.inputs)
    attended = attend(matrices, query, key, value)
    return attended.reshape(*attended.shape[:2], *program.dag.node_shape, attended.shape[-1])


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


def _direct(program: Program, found: Sequence[DirectionInputs]) -> Array:
    """The direct gate as `(direction, head, *nodes, *state)`: one entry where it is the same for all directions."""
    once = program.scan.combine == "sum" and not program.scan.gate("direct").directional
    return jnp.concatenate([_direct_of(program, lane) for lane in (found[:1] if once else found)])


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
        return contract(f"...{letters},...k,...k,...v->...v", squeezed(gate), *(laid(part) for part in (query, key, value)))
    # Summed over the keys as they lie in memory, before heads are moved.
    likeness = jnp.sum(query * key, axis=-1, keepdims=True)
    return contract(f"...{letters},...k,...v->...v", squeezed(gate), laid(likeness), laid(value))


def _combine(program: Program, found: Sequence[DirectionInputs], outputs: Array) -> Array:
    """Directions summed or side by side, the direct term added unless the strategy did, the normalizer divided out:
    `(*nodes, head, value)`."""
    summed = program.scan.combine == "sum"
    if summed:
        outputs = outputs.sum(0)
    if found[0].operands.direct is None:
        direct = _direct_term(program, found[0], _direct(program, found))
        outputs = outputs + (direct.sum(0) if summed else direct)
    if not summed:
        outputs = outputs.reshape(-1, *outputs.shape[2:])
    if program.scan.normalize != "none":
        outputs = _normalized(program, found[0], outputs)
    return jnp.moveaxis(outputs, 0, -2)


def _normalized(program: Program, lane: DirectionInputs, outputs: Array) -> Array:
    """`(head, *nodes, value)` divided by its last column, which is at the scale of the lane like all of them."""
    h, divisor = outputs[..., :-1], outputs[..., -1:]
    one = jnp.ones((), outputs.dtype)
    if lane.scale is not None:
        one = jnp.exp(-lane.scale.read).reshape(-1, program.dag.node_count, 1)
    if program.scan.normalize == "sum":
        return h / (divisor + NORMALIZER_EPSILON * one)
    return h / jnp.maximum(jnp.abs(divisor), one)
