"""A tile of a grid seen from its border: the matrices of its gates, and what it does with the states that enter it.

Matrices are target first, as they are applied. With `E` entering (as many leaving) edges and `N` nodes, the sources of a tile
are the edges that enter it and, after them, its nodes:

    reads  (N, E + N) = [ M | G ]   what a node reads of each source
    leaves (E, E + N) = [ T | S ]   what a leaving edge carries of each source

Nodes are in C order of the tile; edges axis by axis, and of each axis in C order of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.block import contract, matmul, transposed
from stmlang.lower.operands import Scalars
from stmlang.lower.sweep import line_counts
from stmlang.lower.walk import States, walk


class TileGates(NamedTuple):
    """The two matrices above."""

    reads: Float[Array, "*batch node entering_and_node"]
    leaves: Float[Array, "*batch leaving entering_and_node"]


def tile_gates(gates: Scalars, tile: Sequence[int]) -> TileGates:
    """The matrices of many tiles at once: gates `(*tile, *ports, tiles)` to `(node or leaving, source, tiles)`.

    The recurrence inside a tile with a row of numbers for a state: how much of every source it carries.
    """
    tile, tiles = tuple(tile), gates.source.shape[-1]
    counts, rank, dtype = line_counts(tile), len(tile), gates.source.dtype
    nodes, edges = prod(tile), sum(counts)
    unit = np.eye(edges + nodes)
    entering = [np.asarray(part) for part in np.split(unit[:edges], np.cumsum(counts)[:-1])]
    start = tuple(
        jnp.broadcast_to(
            jnp.asarray(part, dtype).reshape(*tile[:axis], *tile[axis + 1 :], edges + nodes, 1),
            (*tile[:axis], *tile[axis + 1 :], edges + nodes, tiles),
        )
        for axis, part in enumerate(entering)
    )
    own = jnp.asarray(unit[edges:], dtype).reshape(*tile, edges + nodes, 1)

    def node(states: States, at: tuple[Scalars, Array]) -> tuple[States, Array]:
        gate, here = at
        own = (gate.source[out] * here for out in range(rank))
        after = tuple(_weighted(gate.transition[out], states, start) for out, start in enumerate(own))
        return after, _weighted(gate.mark[1:], states[1:], gate.mark[0] * states[0])

    leaving, reads = walk(node, start, (gates, own))
    leaves = jnp.concatenate([part.reshape(-1, edges + nodes, tiles) for part in leaving])
    return TileGates(reads.reshape(nodes, edges + nodes, tiles), leaves)


def _weighted(weights: Array, states: States, start: Array) -> Array:
    """`start + sum over i of weights[i] states[i]`, term by term."""
    for weight, state in zip(weights, states, strict=True):
        start = start + weight * state
    return start


class Tile(NamedTuple):
    """The inputs and matrices of one tile, for all lanes at once."""

    query: Float[Array, "lane node key"]
    key: Float[Array, "lane node key"]
    value: Float[Array, "lane node value"]
    gates: TileGates


def _pass(
    query: Array, key: Array, value: Array, mark: Array, gating: Array, transition: Array, source: Array, state: Array
) -> tuple[Array, Array]:
    """What nodes read, `(lane, node, value)`, and the states that leave, from those that enter `(lane, entering, key, value)`.

        H = (M * Q) C + ((Q K^T) * G) V            C' = T C + (S * K)^T V

    Its adjoint is itself: query and key, mark and source change places, and all matrices are transposed.
    """
    lanes, edges, keys, values = state.shape
    across = transposed(key)
    marked = (mark[..., None] * query[:, :, None]).reshape(lanes, -1, edges * keys)
    outputs = matmul(marked, state.reshape(lanes, edges * keys, values))
    outputs = outputs + matmul(matmul(query, across) * gating, value)
    written = (source[:, :, None] * across[:, None]).reshape(lanes, edges * keys, -1)
    passed = matmul(transition, state.reshape(lanes, edges, keys * values)).reshape(state.shape)
    return outputs, passed + matmul(written, value).reshape(state.shape)


def _outer(node: Array, state: Array, gate: Array, other: Array) -> tuple[Array, Array]:
    """Of `sum over e, k of gate[n, e] other[n, k] A[n, e, k]`, with `A[n, e, k] = node[n] . C[e, k]`, the derivatives by `gate`
    and by `other`."""
    lanes, edges, keys, values = state.shape
    product = contract("bnv,bmv->bnm", node, state.reshape(lanes, edges * keys, values))
    product = product.reshape(lanes, -1, edges, keys)
    # A sum over the last axis as a product with ones, and one over edges term by term: XLA's own sums are slow on CPUs.
    ones = jnp.ones((lanes, keys, 1), state.dtype)
    by_gate = matmul((product * other[:, :, None]).reshape(lanes, -1, keys), ones).reshape(gate.shape)
    terms = [product[:, :, e] * gate[:, :, e, None] for e in range(edges)]
    return by_gate, sum(terms[1:], start=terms[0])


def _parts(gates: TileGates) -> tuple[Array, Array, Array, Array]:
    """Mark, gating, transition, source."""
    edges = gates.leaves.shape[-2]
    return gates.reads[..., :edges], gates.reads[..., edges:], gates.leaves[..., :edges], gates.leaves[..., edges:]


def _cut(state: Array, like: States) -> States:
    places = np.cumsum([0, *(part.shape[1] for part in like)])
    return tuple(state[:, a:b] for a, b in pairwise(places))


def _exchange(tile: Tile, states: States) -> tuple[States, Array]:
    outputs, leaving = _pass(tile.query, tile.key, tile.value, *_parts(tile.gates), jnp.concatenate(states, 1))
    return _cut(leaving, states), outputs


def _forward(tile: Tile, states: States) -> tuple[tuple[States, Array], tuple[()]]:
    return _exchange(tile, states), ()


def _backward(args: tuple[Tile, States], saved: tuple[()], cotangent: tuple[States, Array]) -> tuple[Tile, States]:
    del saved  # everything is in the arguments
    (tile, states), (after, outputs) = args, cotangent
    query, key, value = tile.query, tile.key, tile.value
    mark, gating, transition, source = _parts(tile.gates)
    entering, leaving = jnp.concatenate(states, 1), jnp.concatenate(after, 1)
    written = transposed(source)
    by_value, by_entering = _pass(
        key, query, outputs, written, transposed(gating), transposed(transition), transposed(mark), leaving
    )
    by_mark, by_query = _outer(outputs, entering, mark, query)
    by_written, by_key = _outer(value, leaving, written, key)
    flat = (part.reshape(*part.shape[:2], -1) for part in (leaving, entering))
    by_transition = contract("boc,bic->boi", *flat)
    attended = contract("bnv,bmv->bnm", outputs, value)
    by_gating, scores = attended * matmul(query, transposed(key)), attended * gating
    gates = TileGates(jnp.concatenate([by_mark, by_gating], -1), jnp.concatenate([by_transition, transposed(by_written)], -1))
    by_query, by_key = by_query + matmul(scores, key), by_key + matmul(transposed(scores), query)
    return Tile(by_query, by_key, by_value, gates), _cut(by_entering, states)


exchange = with_adjoint(_exchange, _forward, _backward)
"""`(tile, states that enter it) -> (states that leave it, outputs)`; states `(lane, edges of the axis, key, value)`."""
