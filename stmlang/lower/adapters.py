"""Strategies from simpler functions: of one block, of one bundle of directions, of graphs without open edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.attention import masked_attention
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import Operands, flip
from stmlang.lower.strategy import Call, EdgeStates, Lowering, LoweringContext, Result, Tables
from stmlang.lower.summary import Summary, leaving_states, read

BlockOf = Callable[[LoweringContext, Tables, Operands], Summary]
"""The summary of the whole DAG: batch axes (direction, head), nodes in order of their number (regular: C order of the flipped
grid), borders in the order of states."""

OutputsOf = Callable[[LoweringContext, Tables, Operands], Float[Array, "direction head *nodes value"]]
"""What nodes read of each other in declared coordinates, one direction in place of all where they are summed."""

RunOf = Callable[[LoweringContext, Tables, Operands, EdgeStates], tuple[Array, EdgeStates]]
"""`(.., entering states) -> (outputs, leaving states)` of a bundle: outputs `(direction, head, *nodes, [read], value)` in the
own coordinates of directions, without the direct term; of a ragged topology with one axis of nodes."""


def by_block(tables: Callable[[LoweringContext], Tables], block: BlockOf, outputs: OutputsOf | None = None) -> Lowering:
    """A strategy that sums up the whole DAG as one block: one attention pass for the sum of all directions, and states across
    the border, of whose edges the block has one for each track. `outputs` takes the place of attention with the gating matrix;
    the block is then made only for states."""

    def gating(context: LoweringContext, tables: Tables, operands: Operands) -> Array:
        return _declared_gating(context, block(context, tables, operands).gating)

    def run(call: Call) -> Result:
        bundles = list(zip(call.contexts, call.tables, call.operands, strict=True))
        crossed = call.entering is not None or call.leaving
        blocks = [block(*bundle) for bundle in bundles] if outputs is None or crossed else []
        own = _attended(call, blocks) if outputs is None else jnp.concatenate([outputs(*bundle) for bundle in bundles])
        if not crossed:
            return Result(own, ())
        brought, leaving = list[Array](), list[Array]()
        for number, (whole, (context, _, operands)) in enumerate(zip(blocks, bundles, strict=True)):
            query, key, value = (_flat(context, array) for array in operands.inputs)
            states = _entering(call, number)
            entering = states.reshape(*states.shape[:2], -1, *states.shape[4:])
            if call.entering is not None:
                outer = read(whole.mark, query, entering)
                # One axis of nodes is what `declared` expects of ragged topologies.
                shaped = outer if context.axes is None else outer.reshape(*outer.shape[:2], *context.axes, outer.shape[-1])
                brought.append(declared(context, shaped))
            if call.leaving:
                after = leaving_states(whole.source, whole.transition, key, value, entering)
                leaving.append(after.reshape(*after.shape[:2], -1, *states.shape[3:]))
        if brought and call.summed:
            own = jnp.concatenate([own, *brought]).sum(0, keepdims=True)
        elif brought:
            own = own + jnp.concatenate(brought)
        return Result(own, leaving)

    return Lowering(tables, run, gating)


def direction_by_direction(tables: Callable[[LoweringContext], Tables], run_bundle: RunOf) -> Lowering:
    """A strategy that carries states, in each bundle of directions by itself. It may know several writes and reads a node."""

    def run(call: Call) -> Result:
        outputs, leaving = list[Array](), list[Array]()
        for number, (context, own, operands) in enumerate(zip(call.contexts, call.tables, call.operands, strict=True)):
            bundle, after = run_bundle(context, own, operands, _entering(call, number))
            outputs.append(declared(context, bundle))
            leaving.append(after)
        together = jnp.concatenate(outputs)
        return Result(together.sum(0, keepdims=True) if call.summed else together, leaving if call.leaving else ())

    return Lowering(tables, run)


def without_states(
    tables: Callable[[LoweringContext], Tables],
    outputs: Callable[[Sequence[LoweringContext], Sequence[Tables], Sequence[Operands], bool], Array],
) -> Lowering:
    """A strategy for graphs without open edges, which have no states to carry. `outputs(contexts, tables, operands, summed)` is
    what nodes read in all directions, the sum in place of all directions if `summed`."""

    def run(call: Call) -> Result:
        leaving = [_entering(call, number) for number in range(len(call.contexts))] if call.leaving else ()
        return Result(outputs(call.contexts, call.tables, call.operands, call.summed), leaving)

    return Lowering(tables, run)


def _entering(call: Call, number: int) -> EdgeStates:
    """The states that enter a bundle."""
    if call.entering is not None:
        return call.entering[number]
    context, operands = call.contexts[number], call.operands[number]
    lead, edges = operands.value.shape[:2], len(context.dag.entering)
    shape = (*lead, edges, context.problem.scan.track, operands.key.shape[-1], operands.value.shape[-1])
    return alike(jnp.zeros(shape, operands.value.dtype), operands)


def _attended(call: Call, blocks: Sequence[Summary]) -> Array:
    """Attention with the gating matrices of all directions: summed, or direction by direction."""
    pairs = zip(call.contexts, blocks, strict=True)
    matrices = jnp.concatenate([_declared_gating(context, block.gating) for context, block in pairs])
    if call.summed:
        matrices = matrices.sum(0, keepdims=True)
    context = call.contexts[0]
    query, key, value = (_flat(context, declared(context, array)[:1]) for array in call.operands[0].inputs)
    attended = masked_attention(query, key, value, matrices)
    return attended.reshape(*attended.shape[:2], *context.dag.node_shape, attended.shape[-1])


def _flat(context: LoweringContext, array: Array) -> Array:
    """`(direction, head, *nodes, index)` with one axis of nodes."""
    return array.reshape(*array.shape[:2], context.dag.node_count, array.shape[-1])


def declared(context: LoweringContext, array: Array) -> Array:
    """`(direction, head, *nodes, ...)`, of a ragged topology with one axis of nodes, in the coordinates of the declared one."""
    if context.axes is None:
        return array.reshape(*array.shape[:2], *context.dag.node_shape, *array.shape[3:])
    directions = context.problem.scan.directions
    return jnp.stack([flip(own, direction.senses, 1) for own, direction in zip(array, directions, strict=True)])


def _declared_gating(context: LoweringContext, matrix: Array) -> Array:
    """Gating matrices `(direction, head, source, target)`, likewise."""
    axes = context.axes
    if axes is None:
        return matrix
    split = matrix.reshape(*matrix.shape[:2], *axes, *axes)
    turned = [
        flip(flip(own, direction.senses, 1), direction.senses, 1 + len(axes))
        for own, direction in zip(split, context.problem.scan.directions, strict=True)
    ]
    return jnp.stack(turned).reshape(matrix.shape)
