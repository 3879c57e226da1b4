"""The delta rule on a DAG: one unit triangular system for what every carrier writes (derived in docs/delta-rule.md).

With `k` of the node that a carrier (`stmlang.lower.carriers`) belongs to, `b` its strength, `s` its source, paths `erased` from
carrier to carrier and `marked` from carrier to node, and states `X` that enter,

    (I + diag(b) (erased^T o K K^T)) W  =  diag(s) V - diag(b) (K . into X)
    H  =  (marked^T o Q K^T) W  +  Q . read X                               leaving  =  (K o left)^T W  +  through X

Where what is erased lies under another vector u than the key, values are written as they are and `Z` is taken away:

    (I + diag(b) (erased^T o U U^T)) Z  =  diag(b) ((erased^T o U K^T) diag(s) V + U . into X)
    H  =  (marked^T o Q K^T) diag(s) V  -  (marked^T o Q U^T) Z  +  Q . read X
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.facts.overwriting import delta_rule
from stmlang.lower.adapters import declared
from stmlang.lower.attention import masked_attention
from stmlang.lower.carriers import Carriers, Paths, Scalars, at_carriers, carrier_paths, carrier_tables, written
from stmlang.lower.contractions import times_transposed, transposed_times
from stmlang.lower.delta_inputs import DeltaInputs, delta_inputs
from stmlang.lower.no_fusion import apart
from stmlang.lower.operands import Operands, flip
from stmlang.lower.strategy import Call, EdgeStates, LoweringContext, Result
from stmlang.lower.summary import advance, read, write
from stmlang.lower.triangular import propagated


class Writing(NamedTuple):
    """What carriers hold: of their nodes the key that values are written under, what is erased (None where that is under the
    key), the strength, and the value times the carrier's source."""

    key: Float[Array, "direction head carrier key"]
    u: Float[Array, "direction head carrier key"] | None
    strength: Float[Array, "direction head carrier"]
    value: Float[Array, "direction head carrier value"]


class Scores(NamedTuple):
    """Of what is written under with what erases, and with what reads, before paths weigh them."""

    erased: Float[Array, "direction head carrier carrier"]
    read: Float[Array, "direction head carrier node"]


def system_tables(context: LoweringContext) -> Carriers:
    """The tables of a bundle's carriers."""
    rule = delta_rule(context.problem.scan)
    return carrier_tables(context, rule is not None and rule.sharing is not None)


def _bundle(
    context: LoweringContext, tables: Carriers, operands: Operands, entering: EdgeStates | None, leaving: bool
) -> tuple[Array, EdgeStates | None]:
    """Outputs `(direction, head, *nodes, value)` of a bundle in its own coordinates, and the states that leave if asked for."""
    inputs = delta_inputs(operands)
    paths = carrier_paths(context, tables, _scalars(context, operands, inputs))
    writing = _writing(context, tables, operands, inputs)
    states = None if entering is None else jnp.squeeze(entering, 3)
    query = inputs.query.reshape(*inputs.query.shape[:2], context.dag.node_count, -1)
    brought = None if states is None else _brought(paths.erased_states, writing, states)
    scores = _scores(context, operands, inputs, writing)
    new = _erased(paths.erased * scores.erased, paths.erased, writing, brought)
    outputs = transposed_times(paths.marked * scores.read, new)
    if writing.u is not None:
        outputs = outputs + masked_attention(query, writing.key, writing.value, paths.marked)
    if states is not None:
        outputs = outputs + read(paths.marked_states, query, states)
    outputs = outputs.reshape(operands.value.shape)
    if inputs.seen is not None:
        outputs = outputs * inputs.seen
    return outputs, _left(paths, writing, new, states) if leaving else None


def _scalars(context: LoweringContext, operands: Operands, inputs: DeltaInputs) -> Scalars:
    assert operands.deltas is not None
    step, shares = operands.deltas.transition, operands.deltas.shares
    scale, mark = step.scale, inputs.mark
    if scale is None:
        ports = len(context.axes or ())
        own = (*step.strength.shape, ports, ports) if ports else (*step.strength.shape[:2], context.dag.line_rows)
        scale = jnp.ones(own, step.strength.dtype)
    if mark is None:
        mark = jnp.ones((*step.strength.shape, len(context.axes or ())), step.strength.dtype)
    return Scalars(scale, mark, shares)


def _writing(context: LoweringContext, tables: Carriers, operands: Operands, inputs: DeltaInputs) -> Writing:
    assert operands.deltas is not None
    step, shares = operands.deltas.transition, operands.deltas.shares

    def carried(array: Array) -> Array:
        return at_carriers(context, tables, array, shares is not None)

    value, share = carried(inputs.value), written(context, tables, inputs.source, shares)
    return Writing(
        carried(inputs.key),
        None if inputs.u is None else carried(inputs.u),
        carried(step.strength[..., None])[..., 0],
        value if share is None else value * share[..., None],
    )


def _scores(context: LoweringContext, operands: Operands, inputs: DeltaInputs, writing: Writing) -> Scores:
    """On a regular topology directions share those of keys and queries, which are then made once and turned around."""
    u = writing.key if writing.u is None else writing.u
    if context.axes is None or writing.u is not None or inputs.query is not operands.query:
        query = inputs.query.reshape(*inputs.query.shape[:2], context.dag.node_count, -1)
        return Scores(times_transposed(u, u), times_transposed(u, query))
    senses = tuple(tuple(direction.senses) for direction in context.problem.scan.directions)
    nodes, ports = context.dag.node_count, u.shape[2] // context.dag.node_count
    query, key = (flip(part[0], senses[0], 1).reshape(-1, nodes, part.shape[-1]) for part in (operands.query, operands.key))
    turn = _turn_of(senses, context.axes)

    def turned(targets: Array) -> Array:
        return jnp.repeat(turn(times_transposed(key, targets)), ports, axis=2)

    return Scores(jnp.repeat(turned(key), ports, axis=3), turned(query))


@cache
def _turn_of(senses: tuple[tuple[int, ...], ...], axes: tuple[int, ...]) -> Callable[[Array], Array]:
    """Made apart from what weighs the scores, which is not vectorized where it turns them around."""
    return apart(partial(_turned, senses, axes))


def _turned(senses: tuple[tuple[int, ...], ...], axes: tuple[int, ...], pairs: Array) -> Array:
    """Pairs of nodes `(head, node, node)` as every direction numbers them."""
    split = pairs.reshape(-1, *axes, *axes)
    turned = jnp.stack([flip(flip(split, sense, 1), sense, 1 + len(axes)) for sense in senses])
    return turned.reshape(len(senses), *pairs.shape)


def _brought(into: Array, writing: Writing, states: Array) -> Array:
    """What the states that enter hold under the keys of what erases them, `(direction, head, carrier, value)`."""
    return read(into, writing.key if writing.u is None else writing.u, states)


def _erased(weights: Array, erased: Array, writing: Writing, brought: Array | None) -> Array:
    """What is written under `u`, the value and what is taken away where u is the key itself; `weights` are the scores of what
    is erased times the paths to it, `erased`."""
    strength = writing.strength[..., None]
    passed = -weights * writing.strength[..., None, :]
    if writing.u is None:
        return propagated(passed, writing.value if brought is None else writing.value - strength * brought)
    held = masked_attention(writing.u, writing.key, writing.value, erased)
    return -propagated(passed, strength * (held if brought is None else held + brought))


def _left(paths: Paths, writing: Writing, new: Array, states: Array | None) -> EdgeStates:
    leaving = write(paths.left, writing.key if writing.u is None else writing.u, new)
    if writing.u is not None:
        leaving = leaving + write(paths.left, writing.key, writing.value)
    if states is not None:
        leaving = leaving + advance(paths.passed, states)
    return leaving[:, :, :, None]


def run_system(call: Call) -> Result:
    """An evaluation in all directions, `stmlang.lower.strategy.Lowering.run`."""
    outputs, leaving = list[Array](), list[EdgeStates]()
    for number, (context, tables, operands) in enumerate(zip(call.contexts, call.tables, call.operands, strict=True)):
        entering = None if call.entering is None else call.entering[number]
        bundle, after = _bundle(context, tables, operands, entering, call.leaving)
        outputs.append(declared(context, bundle))
        if after is not None:
            leaving.append(after)
    together = jnp.concatenate(outputs)
    return Result(together.sum(0, keepdims=True) if call.summed else together, leaving)
