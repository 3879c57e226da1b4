"""The recurrence as it is written, node by node in the order of memory, gates evaluated at the node that uses them.

    C[o]  =  sum over i of T[o, i] C[i]  +  S[o] outer(k, v)         h  =  q . (sum over i of M[i] C[i]  +  D outer(k, v))

A state lives from one node to the next along its axis. Lanes are `(head, direction)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from math import prod
from typing import Any, NamedTuple, TypeGuard, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stmlang.lower.contractions import contract
from stmlang.lower.gates import apply_gate, elementwise
from stmlang.lower.node_gates import AtPort, Erasure, Gate, NodeGates, Values, Written
from stmlang.lower.node_loop import States, node_loop
from stmlang.lower.node_reads import read_through, read_whole, read_written
from stmlang.lower.operands import STATE_AXES, Operands
from stmlang.lower.strategy import EdgeStates

FEW = 4
"""Tracks at most that are mixed by a sum that is written out."""


class Nodes(NamedTuple):
    """What nodes have of their own, in front of all an axis for each of the grid's."""

    gates: Values
    query: Float[Array, "*nodes head direction key"]
    key: Float[Array, "*nodes head direction key"]
    value: Float[Array, "*nodes head direction value"]


def walked(operands: Operands, initial: EdgeStates, axes: Sequence[int], every: int) -> tuple[Array, EdgeStates]:
    """Outputs `(direction, head, *nodes, value)` and the states that leave, of operands with local gates; the adjoint keeps the
    states that enter every `every`-th place of the first axis."""
    local, rank = operands.local, len(axes)
    assert local is not None

    def first(array: Array) -> Array:
        """`(direction, head, *nodes, index)` as `(*nodes, head, direction, index)`. Where there is one direction,
        they lie as callers hold them, and nothing is moved."""
        if array.shape[0] == 1:
            return jnp.expand_dims(jnp.moveaxis(jnp.squeeze(array, 0), 0, rank), rank + 1)
        return jnp.moveaxis(array, (0, 1), (rank + 1, rank))

    whole = local.shared, Nodes(local.nodes, *(first(array) for array in operands.inputs))
    shared, nodes = _laid(whole[0], 0), _laid(whole[1], rank)
    loop = node_loop(partial(_wide_node, local.at, _shapes(whole[0], 0), _shapes(whole[1], rank)), rank, every)
    states, outputs = loop(shared, nodes, _by_port(axes, initial))
    outputs = outputs.reshape(*axes, initial.shape[1], initial.shape[0], operands.value.shape[-1])
    if initial.shape[0] == 1:
        outputs = jnp.moveaxis(jnp.squeeze(outputs, rank + 1), rank, 0)[None]
    else:
        outputs = jnp.moveaxis(outputs, (rank + 1, rank), (0, 1))
    return outputs, _by_edge(states, initial.shape)


# A loop is given arrays without axes of size one: where one is put in or taken out just before it, XLA's CPU backend chooses a
# layout that the loop does not have, and copies the array. Short last axes, which are those of tracks, come first: a loop over
# numbers that lie apart is not vectorised, and a third slower where a gate has as many as a state.

Shapes = tuple[tuple[int, ...], ...]


def _shapes(tree: Any, kept: int) -> Shapes:
    """Those of arrays behind the first axes, so many of which are kept."""
    return tuple(array.shape[kept:] for array in jax.tree.leaves(tree))


def _narrow(array: Array, kept: int) -> Array:
    """An array without axes of size one, but for the first ones, which are kept."""
    return array.reshape(*array.shape[:kept], *(size for size in array.shape[kept:] if size > 1))


def _laid(tree: Any, kept: int) -> Any:
    """Arrays as the loop holds them."""

    def laid(array: Array) -> Array:
        narrow = _narrow(array, kept)
        short = _short(narrow.shape[kept:])
        return jnp.moveaxis(narrow, range(narrow.ndim - short, narrow.ndim), range(kept, kept + short))

    return jax.tree.map(laid, tree)


def _wide(tree: Any, shapes: Shapes) -> Any:
    """The same as they were, without those axes that were kept."""

    def wide(array: Array, shape: tuple[int, ...]) -> Array:
        short = _short([size for size in shape if size > 1])
        return jnp.moveaxis(array, range(short), range(array.ndim - short, array.ndim)).reshape(shape)

    structure = cast(Any, jax.tree.structure(tree))
    return jax.tree.unflatten(structure, list(map(wide, jax.tree.leaves(tree), shapes)))


def _short(shape: Sequence[int]) -> int:
    """How many of the last axes are as short as those of few tracks."""
    return len(list(takewhile(lambda size: size <= FEW, reversed(shape))))


def _wide_node(at: Any, of_shared: Shapes, of_node: Shapes, shared: Any, node: Any, states: States) -> tuple[States, Array]:
    """`_node` on arrays of which axes of size one are left out."""
    leaving, read = _node(at, _wide(shared, of_shared), _wide(node, of_node), states)
    return leaving, _narrow(read, 0)


def _by_port(axes: Sequence[int], border: Array) -> States:
    """`(direction, head, edge, ...)` as the states of each port, `(*other axes, head, direction, ...)`."""
    states, start = States(), 0
    for port in range(len(axes)):
        others = (*axes[:port], *axes[port + 1 :])
        edges = jnp.moveaxis(border[:, :, start : start + prod(others)], (0, 1), (2, 1))
        states.append(edges.reshape(*others, *edges.shape[1:]))
        start += prod(others)
    return states


def _by_edge(states: States, shape: tuple[int, ...]) -> Array:
    edges = [state.reshape(-1, shape[1], shape[0], *shape[3:]) for state in states]
    return jnp.moveaxis(jnp.concatenate(edges), (2, 1), (0, 1))


Term = tuple[int, int | None]
"""What is added to a state: the number of a gate, and the port of the state that it is applied to, None for what is written."""


def _node(at: Any, shared: Values, node: Nodes, states: States) -> tuple[States, Array]:
    """The states that leave a node, and what it reads. Equal sums of terms are made once, so that a node which reads what
    leaves it reads that; others read what enters them (`stmlang.lower.node_reads`)."""
    gates: NodeGates = at(node.gates, shared)
    terms: dict[Term, Array] = {}
    sums: dict[tuple[Term, ...], Array] = {}

    def total(applied: Sequence[AtPort], written: Written, like: Array) -> Array:
        added = _named(applied, written)
        if added not in sums:
            for port, gate in enumerate(applied):
                if gate is not None and (id(gate), port) not in terms:
                    terms[id(gate), port] = _applied(gate, states[port], node.key)
            if written is not None and (id(written), None) not in terms:
                terms[id(written), None] = _written(written, node.key, node.value, like.shape[-3])
            sums[added] = _sum([terms[term] for term in added], like)
        return sums[added]

    leaving = [total(gates.transition[out], gates.source[out], state) for out, state in enumerate(states)]
    if _named(gates.mark, gates.direct) in sums:
        return leaving, read_whole(node.query, sums[_named(gates.mark, gates.direct)])
    return leaving, _read_apart(gates, node, states)


def _sum(terms: Sequence[Array], like: Array) -> Array:
    """Zeros where there is no term."""
    return sum(terms[1:], start=terms[0]) if terms else jnp.zeros_like(like)


def _named(applied: Sequence[AtPort], written: Written) -> tuple[Term, ...]:
    """The terms that gates and a source make."""
    own = [(id(gate), port) for port, gate in enumerate(applied) if gate is not None]
    return (*own, *([] if written is None else [(id(written), None)]))


def _read_apart(gates: NodeGates, node: Nodes, states: States) -> Array:
    """What a node reads that is not one of the states that leave it."""
    reads = [
        read_through(elementwise(gate), node.query, state)
        if _is_elementwise(gate)
        else read_whole(node.query, _applied(gate, state, node.key))
        for gate, state in zip(gates.mark, states, strict=True)
        if gate is not None
    ]
    if gates.direct is not None:  # it has no tracks, nor has the scan
        reads.append(read_written(elementwise(gates.direct)[..., 0, :, :], node.query, node.key, node.value))
    return _sum(reads, node.value)


# What is spread along the rows of a state is multiplied by ones: its adjoint, a sum along rows, is then a product with them,
# which XLA's CPU backend does several times faster than a sum over the last axis.


def _applied(gate: Gate | Erasure, state: Array, key: Array) -> Array:
    """A gate applied to a state, at a node with this key."""
    if isinstance(gate, Erasure):
        return _erased(gate, state, key)
    if _is_elementwise(gate):
        return _along_rows(elementwise(gate), state.shape[-1]) * state
    keys, values, tracks = gate.shape[gate.ndim - STATE_AXES + 1 :: 2]
    if keys == values == 1 < tracks <= FEW:
        return _mixed(gate, state)
    return apply_gate(gate, state)


def _is_elementwise(gate: Gate | Erasure) -> TypeGuard[Gate]:
    return not isinstance(gate, Erasure) and all(size == 1 for size in gate.shape[gate.ndim - STATE_AXES + 1 :: 2])


def _mixed(gate: Gate, state: Float[Array, "head direction track key value"]) -> Array:
    """Few tracks, each multiplied and added up: one small matrix for each number of a state takes XLA's CPU backend four times
    as long, as a contraction."""
    numbers = jnp.moveaxis(gate[..., :, 0, :, 0, :, :], (-2, -1), (-4, -3))  # (track, track', key, value)
    return _sum(
        [
            _along_rows(numbers[..., track, :, :], state.shape[-1]) * state[..., None, track, :, :]
            for track in range(state.shape[-3])
        ],
        state,
    )


def _erased(gate: Erasure, state: Float[Array, "head direction track key value"], key: Array) -> Array:
    """`scale * (C - strength * u (u . C))`, `u` along one axis of the state."""
    letter = gate.index[0]
    u = key if gate.u is None else gate.u.reshape(*gate.u.shape[:2], -1)
    strength = gate.strength.reshape(*gate.strength.shape[:2], 1)
    rest, tracks = "tkv".replace(letter, ""), state.shape[-3]
    if letter == "t" and tracks <= FEW:
        held = _sum([u[..., track, None, None] * state[..., track, :, :] for track in range(tracks)], state)
    else:
        held = contract(f"...{letter},...tkv->...{rest}", u, state)
    left = state - contract(f"...{letter},...{rest}->...tkv", strength * u, held)
    return left if gate.scale is None else _along_rows(elementwise(gate.scale), state.shape[-1]) * left


def _written(source: Float[Array, "head direction *state"], key: Array, value: Array, track: int) -> Array:
    """`source * outer(k, v)`, the same on every track where the source is."""
    numbers = elementwise(source)
    *_, keys, values = numbers.shape
    if keys == 1:
        value = numbers[..., 0, :] * value[..., None, :]
        key = jnp.broadcast_to(key[..., None, :], (*value.shape[:-1], key.shape[-1]))
    elif values == 1:
        key = numbers[..., 0] * key[..., None, :]
        value = jnp.broadcast_to(value[..., None, :], (*key.shape[:-1], value.shape[-1]))
    else:
        return jnp.broadcast_to(
            numbers * contract("...k,...v->...kv", key, value)[..., None, :, :], (*key.shape[:-1], track, keys, values)
        )
    spread = contract("...k,...v->...kv", key, value)
    return jnp.broadcast_to(spread, (*spread.shape[:-3], track, *spread.shape[-2:]))


def _along_rows(numbers: Float[Array, "*lead key value"], columns: int) -> Array:
    """Numbers that are the same along the rows of a state, spread over its columns."""
    if numbers.shape[-1] > 1 or columns == 1:
        return numbers
    return contract("...k,v->...kv", numbers[..., 0], jnp.ones(columns, numbers.dtype))
