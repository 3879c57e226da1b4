"""Directions with queries, keys or values of their own, for strategies that take all of them to share these.

On a chain or grid a direction is a flip of the nodes. In its own coordinates it runs forward, so that directions are heads of a
forward scan on flipped arrays, whose results go back to the declared coordinates. Elsewhere each is evaluated by itself.

Heads are `(direction, head)`, the latter running fastest.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.node_gates import LocalGates, in_lanes
from stmlang.lower.operands import Operands, flip
from stmlang.lower.strategy import Call, LoweringContext, Result, Tables
from stmlang.scan.scan import Scan

GatingOf = Callable[[LoweringContext, Tables, Operands], Array]


def apart(scan: Scan, call: Call, run: Callable[[Call], Result]) -> Result:
    """What a strategy gives, `run`, for a call whose contexts are those of `Problem.apart`."""
    if call.contexts[0].axes is None:
        outputs, leaving = _one_by_one(call, run)
    else:
        outputs, leaving = _as_heads(scan, call, run)
    return Result(outputs.sum(0, keepdims=True) if call.summed else outputs, leaving)


def gating_apart(scan: Scan, call: Call, make: GatingOf) -> Float[Array, "direction head source target"]:
    """The gating matrices of all directions of a bundle, in declared coordinates."""
    context, axes = call.contexts[0], call.contexts[0].axes
    if axes is None:
        return make(context, call.tables[0], call.operands[0])
    matrices = _split(scan, make(context, call.tables[0], _merged_operands(scan, call.operands[0])))
    shape, rank = matrices.shape, len(axes)
    pairs = matrices.reshape(*shape[:2], *axes, *axes)
    return _declared(scan, _declared(scan, pairs, 0), rank).reshape(shape)


def _one_by_one(call: Call, run: Callable[[Call], Result]) -> tuple[Array, list[Array]]:
    """The directions of a ragged topology, each a call of its own."""
    outputs, leaving = list[Array](), list[Array]()
    for number, (context, tables, operands) in enumerate(zip(call.contexts, call.tables, call.operands, strict=True)):
        entering = None if call.entering is None else [call.entering[number]]
        result = run(Call([context], [tables], [operands], entering, call.leaving, False))
        outputs.append(result.outputs)
        leaving.extend(result.leaving)
    return jnp.concatenate(outputs), leaving


def _as_heads(scan: Scan, call: Call, run: Callable[[Call], Result]) -> tuple[Array, list[Array]]:
    """Those of a chain or grid, as heads of one direction."""
    merged = call._replace(
        operands=[_merged_operands(scan, operands) for operands in call.operands],
        entering=None if call.entering is None else [_merged(states) for states in call.entering],
        summed=False,
    )
    result = run(merged)
    outputs = _declared(scan, _split(scan, result.outputs), 0)
    return outputs, [_split(scan, states) for states in result.leaving]


def _merged(array: Float[Array, "direction head *rest"]) -> Float[Array, "1 lane *rest"]:
    return array.reshape(1, array.shape[0] * array.shape[1], *array.shape[2:])


def _split(scan: Scan, array: Float[Array, "1 lane *rest"]) -> Float[Array, "direction head *rest"]:
    directions = len(scan.directions)
    return array.reshape(directions, array.shape[1] // directions, *array.shape[2:])


def _declared(scan: Scan, array: Float[Array, "direction head *sites"], first: int) -> Array:
    """From the coordinates of each direction to the declared ones, or back; node axes begin `first` axes behind the heads."""
    return jnp.stack([flip(own, direction.senses, 1 + first) for own, direction in zip(array, scan.directions, strict=True)])


def _merged_operands(scan: Scan, operands: Operands) -> Operands:
    local, direct = operands.local, operands.direct
    arrays = operands._replace(local=None, direct=None if direct is None else _declared(scan, direct, 0))
    merged = jax.tree.map(_merged, arrays)
    if local is None:
        return merged
    directions, heads, *nodes, _ = operands.value.shape
    return merged._replace(local=_merged_local(directions, heads, len(nodes), local))


# --- gates that nodes evaluate ---------------------------------------------------------------------------------------


def _merged_local(directions: int, heads: int, rank: int, local: LocalGates) -> LocalGates:
    """Gates whose values, `(*nodes, head, direction, ...)`, have one axis of lanes and one of a single direction."""

    def merged(array: Array, sites: int) -> Array:
        lead, rest = array.shape[:sites], array.shape[sites + 2 :]
        whole = jnp.broadcast_to(array, (*lead, heads, directions, *rest))
        return jnp.swapaxes(whole, sites, sites + 1).reshape(*lead, directions * heads, 1, *rest)

    def apart(array: Array) -> Array:
        return jnp.swapaxes(array.reshape(directions, heads, *array.shape[2:]), 0, 1)

    return in_lanes(local, rank, merged, apart)
