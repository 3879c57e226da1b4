"""Linear: chains as linear attention runs them, quadratic inside a chunk, one state handed over between chunks.

    H[n]  =  q[n] . ( into[n] C  +  sum over m < n of L[n, m] outer(k[m], v[m]) )        for every n of a chunk
    C'    =  through C  +  sum over m of out[m] outer(k[m], v[m])

with source and mark drawn into k and q, and `L`, `into`, `out`, `through` the products of decays of
`stmlang.lower.segment_products`. Decays that are matrices on tracks are in `turning.py`.
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.cost.chains import Chunk
from stmlang.lower.adapters import direction_by_direction
from stmlang.lower.chunks import State, chunk_scan
from stmlang.lower.contractions import contract
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.segment_products import levels, parted, paths
from stmlang.lower.strategy import LoweringContext, Tables, no_tables
from stmlang.strategies.linear import turning
from stmlang.strategies.linear.cost import acting


class Nodes(NamedTuple):
    """Source and mark act elementwise on the key axis of the state, the decay there or on the value axis, or they are one
    number (size one)."""

    source: Float[Array, "node lane #key"]
    decay: Float[Array, "node lane #index"]
    mark: Float[Array, "node lane #key"]
    query: Float[Array, "node lane key"]
    key: Float[Array, "node lane key"]
    value: Float[Array, "node lane value"]

    def idle(self, own: Bool[Array, "node 1 1"]) -> Self:
        """See `stmlang.lower.chunks.Nodes`."""
        return self._replace(source=jnp.where(own, self.source, 0), decay=jnp.where(own, self.decay, 1))


def _run(context: LoweringContext, tables: Tables, operands: Operands, initial: Array) -> tuple[Array, Array]:
    del tables
    if context.problem.track > 1:
        return _run_turning(context, operands, initial)
    directions, heads, length = operands.value.shape[:3]
    size = cast(Chunk, context.settings).chunk

    def first(array: Array) -> Array:
        """`(direction, head, node, ...)` as `(node, lane, ...)`: where there is one direction, as callers hold it."""
        array = jnp.moveaxis(array, 2, 0)
        return array.reshape(length, directions * heads, *array.shape[3:])

    def gate(array: Array) -> tuple[Array, Array]:
        """What a gate does to the key and to the value: one of the two is a number."""
        key, _, value, *_ = array.shape[array.ndim - STATE_AXES :]
        ones = jnp.ones((length, directions * heads, 1), array.dtype)
        flat = first(array.reshape(*array.shape[:3], key * value))
        return (ones, flat) if value > 1 else (flat, ones)

    source, mark, decay = gate(operands.source), gate(operands.mark), gate(operands.transition)
    along_value = decay[1].shape[-1] > 1
    chunk = _by_value if along_value else _by_key if decay[0].shape[-1] > 1 else _scalar
    query, key, value = (first(array) for array in operands.inputs)
    nodes = Nodes(source[0], decay[along_value], mark[0], query, key, value * source[1])
    state = initial.reshape(directions * heads, *initial.shape[-2:])
    outputs, final = chunk_scan(chunk, size)(nodes, state)
    outputs = jnp.moveaxis((outputs * mark[1]).reshape(length, directions, heads, -1), 0, 2)
    return outputs, final.reshape(initial.shape)


def _scalar(nodes: Nodes, state: State) -> tuple[Array, State]:
    """One decay a head."""
    query, key, value = _rows(nodes)
    inside, into, out, through = paths(jnp.swapaxes(nodes.decay[..., 0], 0, 1))
    scores = contract("lnk,lmk->lnm", query, key) * inside
    outputs = contract("lnm,lmv->lnv", scores, value) + contract("lnk,lkv->lnv", query * into[..., None], state)
    written = contract("lmk,lmv->lkv", key * out[..., None], value)
    return jnp.swapaxes(outputs, 0, 1), through[:, None, None] * state + written


def _by_key(nodes: Nodes, state: State) -> tuple[Array, State]:
    """A decay for every entry of the key: scores level by level, each a product of decayed queries and decayed keys."""
    query, key, value = _rows(nodes)
    tables = levels(jnp.swapaxes(nodes.decay, 0, 1))
    places = value.shape[1]
    scores = jnp.zeros((value.shape[0], places, places), value.dtype)
    for level, (after, before) in enumerate(tables.pairs):
        level_scores = contract("lnk,lmk->lnm", query * before, key * after)
        scores = jnp.where(parted(places, level), level_scores, scores)
    outputs = contract("lnm,lmv->lnv", scores, value) + contract("lnk,lkv->lnv", query * tables.before[-1], state)
    written = contract("lmk,lmv->lkv", key * tables.after[-1], value)
    return jnp.swapaxes(outputs, 0, 1), tables.through[..., None] * state + written


def _by_value(nodes: Nodes, state: State) -> tuple[Array, State]:
    """A decay for every entry of the value: the same scores for all levels, each with decayed values and decayed outputs."""
    query, key, value = _rows(nodes)
    tables = levels(jnp.swapaxes(nodes.decay, 0, 1))
    scores = contract("lnk,lmk->lnm", query, key)
    outputs = contract("lnk,lkv->lnv", query, state) * tables.before[-1]
    for level, (after, before) in enumerate(tables.pairs):
        masked = jnp.where(parted(value.shape[1], level), scores, 0)
        outputs = outputs + contract("lnm,lmv->lnv", masked, value * after) * before
    written = contract("lmk,lmv->lkv", key, value * tables.after[-1])
    return jnp.swapaxes(outputs, 0, 1), tables.through[:, None, :] * state + written


def _rows(nodes: Nodes) -> tuple[Array, Array, Array]:
    """Marked queries, sourced keys and values as `(lane, node, .)`."""
    inputs = (nodes.query * nodes.mark, nodes.key * nodes.source, nodes.value)
    query, key, value = (jnp.swapaxes(array, 0, 1) for array in inputs)
    return query, key, value


def _run_turning(context: LoweringContext, operands: Operands, initial: Array) -> tuple[Array, Array]:
    """Of states with tracks."""
    directions, heads, length = operands.value.shape[:3]
    tracks, size = context.problem.track, cast(Chunk, context.settings).chunk

    def first(array: Array) -> Array:
        array = jnp.moveaxis(array, 2, 0)
        return array.reshape(length, directions * heads, *array.shape[3:])

    def gate(array: Array) -> Float[Array, "node lane #index track"]:
        """Elementwise on tracks and on one of key and value."""
        key, _, value, _, track, _ = array.shape[array.ndim - STATE_AXES :]
        flat = first(array.reshape(*array.shape[:3], key * value, track))
        return jnp.broadcast_to(flat, (*flat.shape[:-1], tracks))

    key, _, value, _, *matrix = operands.transition.shape[-STATE_AXES:]
    decay = first(operands.transition.reshape(*operands.transition.shape[:3], key * value, *matrix))
    if matrix[1] == 1:
        decay = decay * jnp.eye(tracks, dtype=decay.dtype)[None, None, None]
    chunk = turning.by_value if acting(context.problem) == {"value"} else turning.by_key
    nodes = turning.Nodes(gate(operands.source), decay, gate(operands.mark), *(first(array) for array in operands.inputs))
    outputs, final = chunk_scan(chunk, size)(nodes, initial.reshape(directions * heads, *initial.shape[-3:]))
    outputs = jnp.moveaxis(outputs.reshape(length, directions, heads, -1), 0, 2)
    return outputs, final.reshape(initial.shape)


LOWERING = direction_by_direction(no_tables, _run)
