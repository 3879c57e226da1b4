"""Gates evaluated and laid out for the strategy of a program, one lane for each bundle of directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.facts import RankOne
from stmlang.facts.overwriting import DeltaRule
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import Factors, Operands, factored, ragged_operands, regular_operands
from stmlang.lower.strategy import LoweringContext, Tables
from stmlang.lower.values import Environment, Frame
from stmlang.program.delta_rule import deltas
from stmlang.program.evaluate import evaluate, place
from stmlang.program.expressions import Context, expression
from stmlang.program.local_gates import local_gates
from stmlang.program.log_stabilizer import Scale, rescale
from stmlang.program.node_mask import Mask, filled, leaves_with_nodes, oriented, passing, silent
from stmlang.program.program import Bundle, Program
from stmlang.program.segments import Segments, borders, separated
from stmlang.scan.scan import own_inputs


class DirectionInputs(NamedTuple):
    """A bundle of directions ready for its strategy."""

    context: LoweringContext
    tables: Tables
    operands: Operands
    environment: Environment
    frame: Frame
    scale: Scale | None


def direction_inputs(
    program: Program,
    tables: Sequence[Bundle],
    inputs: Mapping[str, Array],
    gates: Mapping[str, Array],
    mask: Mask | None = None,
    segments: Segments | None = None,
    scales: Float[Array, "direction *scale"] | None = None,
    rule: DeltaRule | None = None,
) -> list[DirectionInputs]:
    """Gates evaluated and laid out for every bundle. `inputs` are q, k, v as the caller gives them. On regular topologies a
    `mask` says which nodes count, and `segments` by equal numbers which see each other. `scales` are logarithms of those at
    which states enter a scan that has a scale of its own, one if None. `rule` is for those who want the form of the delta rule
    where the strategy does not ask for it.

    Whatever their data types, arguments are converted here, once for all bundles: where each bundle did so for itself, its part
    of a gradient would be rounded before parts are added up.
    """
    inputs, gates = accumulated(program, inputs), accumulated(program, gates)
    scan, dag, rule = program.scan, program.dag, rule or program.delta_rule
    regular = dag.regular is not None
    if mask is not None:
        inputs, gates = filled(inputs, mask), leaves_with_nodes(scan, gates, mask)
    own = None if mask is None else oriented(mask, scan.directions)
    closed = None if segments is None else borders(segments, mask, scan.directions)
    lanes: list[DirectionInputs] = []
    for number, (context, bundle) in enumerate(zip(program.contexts, tables, strict=True)):
        axes = len(dag.node_shape) if regular else 1
        frame = Frame(scan, dag.ports, axes, dag.node_count, bundle.sites, program.accumulator, dag.regular or (), mask)
        leaves = {leaf.name: _leaf(program, leaf.name, gates[leaf.name], number) for leaf in scan.leaves}
        nodes = dag.node_shape if regular else (dag.node_count,)
        flat = {name: _input(program, name, array, number) for name, array in inputs.items()}
        gate_context = place(frame, leaves, flat)
        environment = evaluate(gate_context, program.evaluated)
        heard = environment if mask is None else silent(environment, mask)
        if dag.regular is not None:
            local = None
            if program.late is not None:
                local = local_gates(gate_context, environment, program.late, dag.regular, own, closed)
            operands = regular_operands(frame, heard, dag.regular, local)
        else:
            count = None if program.by_factors else dag.line_rows
            operands = ragged_operands(frame, environment, dag.edge_count, count)
            if bundle.line is not None:
                operands = operands._replace(transition=jnp.take(operands.transition, bundle.line, axis=2))
        if program.rank_one is not None:
            operands = operands._replace(factors=_factors(program, program.rank_one, gate_context, environment))
        if rule is not None:
            edges, lines = dag.edge_count, dag.line_rows
            forms = deltas(gate_context, environment, rule, nodes, edges, lines, bundle.line)
            operands = operands._replace(deltas=forms)
        if own is not None and operands.local is None:
            operands = passing(operands, own)
        if closed is not None and operands.local is None:
            operands = separated(operands, closed)
        scale = None
        if scales is not None:
            operands, scale = rescale(gate_context, environment, operands, dag.node_count, scales, mask, closed)
        if scan.normalize != "none":
            ones = jnp.ones((*operands.value.shape[:-1], 1), operands.value.dtype)
            operands = operands._replace(value=jnp.concatenate([operands.value, ones], axis=-1))
        # A gate that is a number of the spec differs along no axis of a mesh, where its strategy may loop over it and others.
        lanes.append(DirectionInputs(context, bundle.strategy, alike(operands), heard, frame, scale))
    return lanes


def accumulated(program: Program, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays as wide as they are computed with: what is spread over steps or directions is so before, that its gradient is
    summed before it is rounded."""
    return {name: jnp.asarray(array, program.accumulator) for name, array in arrays.items()}


def _factors(program: Program, rank_one: RankOne, gate_context: Context, environment: Environment) -> Factors:
    """The factors of the transition, as the facts name them."""
    out, into = (expression(gate_context, environment, factor) for factor in (rank_one.out_factor, rank_one.in_factor))
    return factored(gate_context.frame, out, into, program.dag.regular or (program.dag.edge_count,))


def _input(program: Program, name: str, array: Array, bundle: int) -> Array:
    """Query, key or value with a direction axis; on a ragged topology only its bundle's direction, all node axes made one."""
    dag = program.dag
    axis = len(dag.node_shape) + 1
    if name not in own_inputs(program.scan):
        array = jnp.expand_dims(array, axis)
    elif dag.regular is None:
        array = jax.lax.slice_in_dim(array, bundle, bundle + 1, axis=axis)
    return array if dag.regular is not None else jnp.reshape(array, (-1, *array.shape[axis - 1 :]))


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
