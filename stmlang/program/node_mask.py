"""A scan on some of the nodes of a chain or grid, as if there were no others: a mask says which, true for those that count.

On a chain the others are skipped: the state passes them as it is, so that what is left is the shorter chain, initial and final
states included. On a grid of several axes nothing passes them, so that what is left are the nodes that count and the edges
between them: the image itself where an image fills one corner, and any region of it elsewhere.

A node that is left out has no query, key and value, and its source, mark and direct are zero, so that it writes nothing and
reads zero. Its gates are still evaluated, as arrays are rectangular. There they see what the first node that counts holds, and
not what the caller left in that place: what is evaluated is as finite as it is elsewhere, and so is its derivative, which is
then zero times something finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from stmlang.lower.gates import straight
from stmlang.lower.operands import Deltas, Factors, Operands, Shares, flip
from stmlang.lower.values import Environment, Value
from stmlang.scan.scan import Direction, Scan

Mask = Bool[Array, "*nodes"]


def filled(arrays: Mapping[str, Array], mask: Mask) -> dict[str, Array]:
    """Arrays `(*nodes, ...)` with what the first node that counts holds at all those that do not; one where none does."""
    first = jnp.argmax(mask.reshape(-1))

    def fill(array: Array) -> Array:
        rows = jax.lax.stop_gradient(array).reshape(mask.size, *array.shape[mask.ndim :])
        row = cast(Array, jax.lax.dynamic_index_in_dim(rows, first, 0, keepdims=False))
        row = jnp.where(mask.any(), row, jnp.ones_like(row))
        return _where(mask, array, row.reshape(*(1,) * mask.ndim, *row.shape))

    return {name: fill(array) for name, array in arrays.items()}


def silent(environment: Environment, mask: Mask) -> Environment:
    """Gates where the nodes that do not count have no query, key and value, and read nothing of them."""
    inputs = {name: environment[name] for name in ("q", "k", "v", "direct") if name in environment}
    zeroed = {
        name: Value(_where(mask, value.array, jnp.zeros((1,) * value.array.ndim, value.array.dtype)), value.site)
        for name, value in inputs.items()
    }
    return {**environment, **zeroed}


def oriented(mask: Mask, directions: tuple[Direction, ...]) -> Bool[Array, "direction *nodes"]:
    """The mask in every direction's own coordinates."""
    return jnp.stack([flip(mask, direction.senses, 0) for direction in directions])


def passing(operands: Operands, own: Bool[Array, "direction *nodes"]) -> Operands:
    """Operands of a chain whose state passes nodes that are not its `own` as it is, or of a grid where none passes them."""
    chain = own.ndim == 2
    transition = _passed(operands.transition, own) if chain else _stopped(operands.transition, own)
    source, mark = _stopped(operands.source, own), _stopped(operands.mark, own)
    operands = operands._replace(source=source, transition=transition, mark=mark)
    if operands.factors is not None:
        passing_factor = _passed if chain else _stopped
        operands = operands._replace(factors=Factors(*(passing_factor(factor, own) for factor in operands.factors)))
    if operands.deltas is not None:
        operands = operands._replace(deltas=_overwriting(operands.deltas, own))
    return operands


def _overwriting(deltas: Deltas, own: Bool[Array, "direction *nodes"]) -> Deltas:
    """Gates of the delta rule's form, likewise: a state that passes a node as it is is not erased, and its scale is one."""
    step, shares, chain = deltas.transition, deltas.shares, own.ndim == 2

    def through(gate: Array) -> Array:
        return _where(own[:, None], gate, jnp.full((1,) * gate.ndim, 1 if chain else 0, gate.dtype))

    strength, scale = _stopped(step.strength, own), step.scale
    if scale is None and not chain:
        scale = jnp.ones((*strength.shape, own.ndim - 1, own.ndim - 1), strength.dtype)
    if scale is not None:
        scale = through(scale)
    if shares is not None:
        shares = Shares(through(shares.out), through(shares.into), _stopped(shares.written, own))
    return deltas._replace(transition=step._replace(scale=scale, strength=strength), shares=shares)


def leaves_with_nodes(scan: Scan, gates: Mapping[str, Array], mask: Mask) -> dict[str, Array]:
    """Leaves `filled` where they have node axes."""
    own = {leaf.name for leaf in scan.leaves if leaf.kind != "param"}
    return {**gates, **filled({name: array for name, array in gates.items() if name in own}, mask)}


def _passed(gate: Array, own: Array) -> Array:
    """A gate of a chain that is the identity where a node is not its direction's own."""
    lead, rest = gate.shape[:3], gate.shape[3:]
    flat = jnp.moveaxis(gate, 1, 2).reshape(lead[0] * lead[2], lead[1], *rest)
    passed = straight(~own.reshape(-1), flat)
    return jnp.moveaxis(passed.reshape(lead[0], lead[2], lead[1], *rest), 2, 1)


def _stopped(gate: Array, own: Array) -> Array:
    return _where(own[:, None], gate, jnp.zeros((1,) * gate.ndim, gate.dtype))


def _where(mask: Array, array: Array, otherwise: Array) -> Array:
    """A choice by the first axes of an array."""
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (array.ndim - mask.ndim)), array, otherwise)
