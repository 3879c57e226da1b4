"""A tile of a grid seen from its border: the matrices of its gates, and what it does with the states that enter it.

Matrices are target first, as they are applied. With `E` entering (as many leaving) edges and `N` nodes, the sources of a tile
are the edges that enter it and, after them, its nodes:

    reads  (N, E + N) = [ M | G ]   what a node reads of each source
    leaves (E, E + N) = [ T | S ]   what a leaving edge carries of each source

Nodes are in C order of the tile; edges axis by axis, and of each axis in C order of the others.

Where transitions are structurally zero, much of these is. What moves along a *straight* axis never turns: it is read on its
line only. Into a *pure* axis nothing turns: its leaving edges carry what was written on their line. An axis that is either
passes its entering states on to its own leaving edges, and to those of another axis only if it is not straight and the other
is not pure. Only the rest is worked with as full matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.attention import masked_attention
from stmlang.lower.block_recurrence import line_counts
from stmlang.lower.contractions import contract, matmul, transposed
from stmlang.lower.mesh_axes import alike
from stmlang.lower.operands import Scalars
from stmlang.strategies.raster.loop import States, walk


class Turns(NamedTuple):
    """A tile, and for each axis whether what moves along it never turns, and whether nothing turns into it."""

    tile: tuple[int, ...]
    straight: tuple[bool, ...]
    pure: tuple[bool, ...]

    @property
    def turning(self) -> tuple[int, ...]:
        """The axes whose entering states are read on all lines."""
        return tuple(axis for axis, straight in enumerate(self.straight) if not straight)

    @property
    def joined(self) -> tuple[int, ...]:
        """The axes whose leaving states carry what was written on all lines."""
        return tuple(axis for axis, pure in enumerate(self.pure) if not pure)

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes whose states go from line to line only."""
        return tuple(axis for axis in range(len(self.tile)) if self.straight[axis] or self.pure[axis])

    @property
    def reversed(self) -> Turns:
        """Those of the reversed grid."""
        return Turns(self.tile, self.pure, self.straight)


class TileGates(NamedTuple):
    """The matrices above without what is structurally zero: `line` is an edge of an axis, `place` a node on its line.

    `own_mark` has an entry for each straight axis, `own_source` for each pure one, `own_transition` for each that is either.
    """

    gating: Float[Array, "*batch node node"]
    mark: Float[Array, "*batch node turning"]
    source: Float[Array, "*batch joined node"]
    transition: Float[Array, "*batch joined turning"]
    own_mark: tuple[Float[Array, "*batch line place"], ...]
    own_source: tuple[Float[Array, "*batch line place"], ...]
    own_transition: tuple[Float[Array, "*batch line"], ...]

    @property
    def adjoint(self) -> TileGates:
        """Those of the tile of the reversed grid."""
        gating, source, mark, passed = map(transposed, (self.gating, self.mark, self.source, self.transition))
        return TileGates(gating, mark, source, passed, self.own_source, self.own_mark, self.own_transition)


def tile_gates(gates: Scalars, turns: Turns) -> TileGates:
    """The matrices of many tiles at once, their axis behind: from gates `(*tile, *ports, tiles)`.

    The recurrence inside a tile with a row of numbers for a state: how much of every source it carries.
    """
    tile, tiles = turns.tile, gates.source.shape[-1]
    counts, dtype = line_counts(tile), gates.source.dtype
    nodes, edges = prod(tile), sum(counts)
    unit = np.eye(edges + nodes)
    entering = [np.asarray(line) for line in np.split(unit[:edges], np.cumsum(counts)[:-1])]
    start = tuple(
        jnp.broadcast_to(
            jnp.asarray(line, dtype).reshape(*tile[:axis], *tile[axis + 1 :], edges + nodes, 1),
            (*tile[:axis], *tile[axis + 1 :], edges + nodes, tiles),
        )
        for axis, line in enumerate(entering)
    )
    start = alike(start, gates)
    own = jnp.asarray(unit[edges:], dtype).reshape(*tile, edges + nodes, 1)

    def node(states: States, at: tuple[Scalars, Array]) -> tuple[States, Array]:
        gate, impulse = at
        own = (gate.source[out][None] * impulse for out in range(len(tile)))
        after = tuple(_weighted(gate.transition[out], states, start) for out, start in enumerate(own))
        return after, _weighted(gate.mark[1:], states[1:], gate.mark[0][None] * states[0])

    leaving, reads = walk(node, start, (gates, own))
    leaves = tuple(line.reshape(-1, edges + nodes, tiles) for line in leaving)
    return _sorted_out(turns, reads.reshape(nodes, edges + nodes, tiles), leaves)


def _weighted(weights: Array, states: States, start: Array) -> Array:
    """`start + sum over i of weights[i] states[i]`, term by term."""
    for weight, state in zip(weights, states, strict=True):
        start = start + weight[None] * state
    return start


def _sorted_out(turns: Turns, reads: Array, leaves: Sequence[Array]) -> TileGates:
    """The parts of `reads (node, source, tiles)` and, for each axis, `leaves (line, source, tiles)` that are not zero."""
    rank, places = len(turns.tile), np.cumsum([0, *line_counts(turns.tile)])
    spans = [slice(int(a), int(b)) for a, b in pairwise(places)]
    inner = slice(int(places[-1]), None)
    turning = [spans[axis] for axis in turns.turning]
    joined = jnp.concatenate([leaves[axis] for axis in turns.joined] or [leaves[0][:0]])

    def from_turning(array: Array) -> Array:
        return jnp.concatenate([array[:, span] for span in turning] or [array[:, :0]], 1)

    def own(array: Array, axis: int) -> Array:
        """The entries of `(node, line, tiles)` on the same line: `(line, place, tiles)`."""
        grid = jnp.moveaxis(array.reshape(*turns.tile, *array.shape[1:]), axis, rank - 1)
        lines = np.arange(array.shape[1])
        return grid.reshape(len(lines), -1, *array.shape[1:])[lines, :, lines]

    return TileGates(
        reads[:, inner],
        from_turning(reads),
        joined[:, inner],
        from_turning(joined),
        tuple(own(reads[:, spans[axis]], axis) for axis in range(rank) if turns.straight[axis]),
        tuple(own(jnp.swapaxes(leaves[axis][:, inner], 0, 1), axis) for axis in range(rank) if turns.pure[axis]),
        tuple(leaves[axis][np.arange(n), np.arange(n) + spans[axis].start] for axis in turns.kept for n in [len(leaves[axis])]),
    )


class Tile(NamedTuple):
    """The inputs and matrices of one tile, for all lanes at once."""

    query: Float[Array, "lane node key"]
    key: Float[Array, "lane node key"]
    value: Float[Array, "lane node value"]
    gates: TileGates


# --- nodes by line, states by axis -----------------------------------------------------------------------------------


def _by_lines(array: Array, turns: Turns, axis: int) -> Array:
    """`(lane, node, index)` as `(lane, line, place, index)`, the lines running along an axis."""
    lanes, _, size = array.shape
    grid = jnp.moveaxis(array.reshape(lanes, *turns.tile, size), axis + 1, -2)
    return grid.reshape(lanes, -1, turns.tile[axis], size)


def _from_lines(array: Array, turns: Turns, axis: int) -> Array:
    """The inverse of `_by_lines`."""
    lanes, size = array.shape[0], array.shape[-1]
    others = turns.tile[:axis] + turns.tile[axis + 1 :]
    return jnp.moveaxis(array.reshape(lanes, *others, turns.tile[axis], size), -2, axis + 1).reshape(lanes, -1, size)


def _together(states: States, axes: Sequence[int]) -> Array:
    """The states of some axes side by side."""
    return jnp.concatenate([states[axis] for axis in axes], 1) if axes else states[0][:, :0]


def _apart(state: Array, turns: Turns, axes: Sequence[int]) -> dict[int, Array]:
    """The inverse of `_together`: the states of each axis."""
    counts = line_counts(turns.tile)
    spans = pairwise(np.cumsum([0, *(counts[axis] for axis in axes)]).tolist())
    return {axis: state[:, first:last] for axis, (first, last) in zip(axes, spans, strict=True)}


def _sums(array: Array) -> Array:
    """Sums over the last axis, as a product with ones: XLA's own are slow on CPUs."""
    lanes, *middle, size = array.shape
    ones = jnp.ones((lanes, size, 1), array.dtype)
    return matmul(array.reshape(lanes, -1, size), ones).reshape(lanes, *middle)


# --- through a tile and back -----------------------------------------------------------------------------------------


def _pass(turns: Turns, tile: Tile, states: States) -> tuple[States, Array]:
    """The states that leave, axis by axis, and what nodes read, from those that enter `(lane, line, key, value)`.

        H = (M * Q) C + ((Q K^T) * G) V            C' = T C + (S * K)^T V

    Its adjoint is itself, through the reversed grid: query and key, mark and source change places, matrices are transposed.
    """
    query, key, value, gates = tile
    turning, across = _together(states, turns.turning), transposed(key)
    outputs = masked_attention(query, key, value, gates.gating, by_target=True)
    if turns.turning:
        lanes, edges, keys, values = turning.shape
        marked = (gates.mark[..., None] * query[:, :, None]).reshape(lanes, -1, edges * keys)
        outputs = outputs + matmul(marked, turning.reshape(lanes, edges * keys, values))
    straight = (axis for axis, is_straight in enumerate(turns.straight) if is_straight)
    for axis, mark in zip(straight, gates.own_mark, strict=True):
        marked = mark[..., None] * _by_lines(query, turns, axis)
        outputs = outputs + _from_lines(matmul(marked, states[axis]), turns, axis)
    return _written(turns, tile, states, turning, across), outputs


def _written(turns: Turns, tile: Tile, states: States, turning: Array, across: Array) -> States:
    """The states that leave."""
    _, key, value, gates = tile
    lanes, keys, values = states[0].shape[0], key.shape[-1], value.shape[-1]
    after = dict[int, Array]()
    if turns.joined:
        written = (gates.source[:, :, None] * across[:, None]).reshape(lanes, gates.source.shape[1] * keys, -1)
        joined = matmul(written, value).reshape(lanes, -1, keys, values)
        if turns.turning:
            passed = matmul(gates.transition, turning.reshape(*turning.shape[:2], keys * values))
            joined = joined + passed.reshape(joined.shape)
        after |= _apart(joined, turns, turns.joined)
    pure = (axis for axis, is_pure in enumerate(turns.pure) if is_pure)
    for axis, source in zip(pure, gates.own_source, strict=True):
        written = source[:, :, None] * transposed(_by_lines(key, turns, axis))
        after[axis] = matmul(written, _by_lines(value, turns, axis))
    for axis, transition in zip(turns.kept, gates.own_transition, strict=True):
        after[axis] = after[axis] + transition[..., None, None] * states[axis]
    return tuple(after[axis] for axis in range(len(states)))


def _outer(
    turns: Turns, node: Array, states: States, other: Array, mark: Array, own: Sequence[Array]
) -> tuple[Array, tuple[Array, ...], Array]:
    """Of `sum over e, k of mark[n, e] other[n, k] A[n, e, k]`, with `A[n, e, k] = node[n] . C[e, k]`, the derivatives by the
    mark, by the marks of straight axes, and by `other`."""
    by_other, by_mark, by_own = list[Array](), mark, list[Array]()
    if turns.turning:
        turning = _together(states, turns.turning)
        lanes, edges, keys, values = turning.shape
        product = contract("bnv,bmv->bnm", node, turning.reshape(lanes, edges * keys, values))
        product = product.reshape(lanes, -1, edges, keys)
        by_mark = _sums(product * other[:, :, None])
        by_other += [product[:, :, e] * mark[:, :, e, None] for e in range(edges)]
    straight = (axis for axis, is_straight in enumerate(turns.straight) if is_straight)
    for axis, gate in zip(straight, own, strict=True):
        product = matmul(_by_lines(node, turns, axis), transposed(states[axis]))
        by_own.append(_sums(product * _by_lines(other, turns, axis)))
        by_other.append(_from_lines(product * gate[..., None], turns, axis))
    return by_mark, tuple(by_own), sum(by_other[1:], start=by_other[0])


def _backward(turns: Turns, args: tuple[Tile, States], cotangent: tuple[States, Array]) -> tuple[Tile, States]:
    """The cotangents of a tile and of the states that enter it."""
    (tile, states), (after, outputs), back = args, cotangent, turns.reversed
    query, key, value, gates = tile
    adjoint = gates.adjoint
    entering, by_value = _pass(back, Tile(key, query, outputs, adjoint), after)
    by_mark, by_own_mark, by_query = _outer(turns, outputs, states, query, gates.mark, gates.own_mark)
    by_written, by_own_source, by_key = _outer(back, value, after, key, adjoint.mark, adjoint.own_mark)
    flat = (state.reshape(*state.shape[:2], -1) for state in (_together(after, turns.joined), _together(states, turns.turning)))
    by_transition = contract("boc,bic->boi", *flat) if turns.joined and turns.turning else gates.transition
    by_own = tuple(_sums((after[axis] * states[axis]).reshape(*after[axis].shape[:2], -1)) for axis in turns.kept)
    attended = contract("bnv,bmv->bnm", outputs, value)
    by_gating, scores = attended * matmul(query, transposed(key)), attended * gates.gating
    by_gates = TileGates(by_gating, by_mark, transposed(by_written), by_transition, by_own_mark, by_own_source, by_own)
    by_query, by_key = by_query + matmul(scores, key), by_key + matmul(transposed(scores), query)
    return Tile(by_query, by_key, by_value, by_gates), entering


@cache
def exchange(turns: Turns) -> Any:
    """`(tile, states that enter it) -> (states that leave it, outputs)`; states `(lane, line, key, value)`, axis by axis."""

    def plain(tile: Tile, states: States) -> tuple[States, Array]:
        return _pass(turns, tile, states)

    def forward(tile: Tile, states: States) -> tuple[tuple[States, Array], tuple[()]]:
        return plain(tile, states), ()

    def backward(args: Any, saved: Any, cotangent: Any) -> tuple[Tile, States]:
        del saved  # everything is in the arguments
        return _backward(turns, args, cotangent)

    return with_adjoint(plain, forward, backward)
