"""Queries, keys and values as scans of the delta rule meet states with them: what gates do on state axes drawn into them.

A source with an index of keys or values is drawn into these, and so is a mark, into the query or into what was read; one of the
delta rule's form, `m[in] (I - b u u^T)`, is `m[in]` and the query `q - b u (u . q)`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.contractions import contract
from stmlang.lower.gates import squeezed, varies
from stmlang.lower.operands import STATE_AXES, Delta, Operands


class DeltaInputs(NamedTuple):
    """What is read with `query` is multiplied with `mark`, one number for each incoming edge, and with `seen`; each is None
    where there is none. `source` is None where it is drawn into keys or values, `u` where the key is what is taken away."""

    query: Float[Array, "direction head *nodes key"]
    key: Float[Array, "direction head *nodes key"]
    value: Float[Array, "direction head *nodes value"]
    u: Float[Array, "direction head *nodes key"] | None
    source: Float[Array, "direction head *sites out"] | None
    mark: Float[Array, "direction head *sites in"] | None
    seen: Float[Array, "direction head *nodes value"] | None


def delta_inputs(operands: Operands) -> DeltaInputs:
    """Those of operands with gates of the delta rule's form."""
    assert operands.deltas is not None
    key, value, source = _sourced(operands)
    query, mark, seen = _marked(operands)
    # The key with a source drawn into it is not what is taken away.
    u = operands.deltas.transition.u
    u = u if u is not None or key is operands.key else operands.key
    return DeltaInputs(query, key, value, u, source, mark, seen)


def _sourced(operands: Operands) -> tuple[Array, Array, Array | None]:
    """Keys and values, and the source where it is one number for each outgoing edge."""
    source = operands.source
    match varies(source):
        case "":
            return operands.key, operands.value, source.reshape(source.shape[:-STATE_AXES])
        case "k":
            return operands.key * _at_nodes(source), operands.value, None
        case _:
            return operands.key, operands.value * _at_nodes(source), None


def _marked(operands: Operands) -> tuple[Array, Array | None, Array | None]:
    """Queries, the mark where it is one number for each incoming edge, and what is multiplied with what was read."""
    assert operands.deltas is not None
    query, form, mark = operands.query, operands.deltas.mark, operands.mark
    if form is not None:
        return _turned(form, operands), _scale(form, mark), None
    match varies(mark):
        case "":
            return query, mark.reshape(mark.shape[:-STATE_AXES]), None
        case "v":
            return query, None, _at_nodes(mark)
        case "kK":
            return contract("...kK,...k->...K", squeezed(mark[..., 0, :, :, :, :, :, :]), query), None, None
        case _:
            return query * _at_nodes(mark), None, None


def _at_nodes(gate: Array) -> Array:
    """A gate with one state axis, the same for all ports of a regular topology: `(direction, head, *nodes, index)`."""
    return squeezed(gate[..., 0, :, :, :, :, :, :]).reshape(*gate.shape[: gate.ndim - STATE_AXES - 1], -1)


def _turned(form: Delta, operands: Operands) -> Array:
    """`q - strength * u (u . q)`."""
    u, query = operands.key if form.u is None else form.u, operands.query
    return query - form.strength[..., None] * jnp.sum(u * query, axis=-1, keepdims=True) * u


def _scale(form: Delta, mark: Array) -> Array:
    return jnp.ones(mark.shape[:-STATE_AXES], mark.dtype) if form.scale is None else form.scale
