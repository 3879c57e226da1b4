"""Gating matrices of grids of two axes on which paths turn once: walk along a line, turn, walk along the other axis.

Nodes are `(y, x)`, and a path goes along the axis of x first. With T the transition, S the source and M the mark at a node, c
the port along x and r the other one, for a direction that goes forward on both axes

    A[y0, x0, x] = S_c(y0, x0) (prod of T_cc(y0, u) over x0 < u < x) T_rc(y0, x)     x > x0,  and  S_r(y0, x0) at x = x0
    R[y0, x0, x] = S_c(y0, x0) (prod of T_cc(y0, u) over x0 < u < x) M_c(y0, x)      x > x0,  else 0
    B[y0, y, x]  = (prod of T_rr(w, x) over y0 < w < y) M_r(y, x)                    y > y0,  else 0

    G[(y0, x0), (y, x)] = A[y0, x0, x] B[y0, y, x]  for y > y0,  and  R[y0, x0, x]  for y = y0

and in others the same turned around. At most one of two directions that differ in the sense of y alone reaches any other line:
they share a term here. Products are products of products (see `decays`), never quotients, so that gates at zero, one
and minus one are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.contractions import contract
from stmlang.lower.no_fusion import apart
from stmlang.lower.segment_products import levels


class PortGates(NamedTuple):
    """Gates of every direction in declared coordinates, `(direction, head, y, x)`; `first` is the port along x."""

    source_first: Array
    source_last: Array
    first: Array
    last: Array
    turn: Array
    mark_first: Array
    mark_last: Array


class Walks(NamedTuple):
    """The tables of a few terms, those of walks to later lines first and those to earlier lines behind them.

    What targets in other lines than a source's read of it is, summed over the terms, `turned[y0, x0, x] across[y0, y, x]`, from
    the first half where `y > y0` and from the second where `y < y0`; those in its own line read `level[y0, x0, x]`.
    """

    turned: Float[Array, "walk head y0 x0 x"]
    level: Float[Array, "term head y0 x0 x"]
    across: Float[Array, "walk head y0 y x"]


Partings = Int[np.ndarray, "place place"]


def partings(places: int) -> Partings:
    """At which level of a binary tree two places part, counted from one: the number of bits of `m ^ n`, zero for a place and
    itself; negative where the second place comes first."""
    place = np.arange(places)
    apart, bits = place[:, None] ^ place, np.zeros((places, places), np.int32)
    while np.any(apart):
        bits += apart > 0
        apart = apart >> 1
    return np.where(place[:, None] <= place, bits, -bits).astype(np.int32)


def walks(gates: PortGates, direct: Array | None, senses: Sequence[tuple[int, int]], parting: tuple[Array, Array]) -> Walks:
    """The tables of directions that are summed.

    `senses` are those of y and x, direction by direction; `parting` the `partings` of places in y and in x. `direct`,
    `(head, y, x)`, goes on the diagonal.
    """
    pairs = [sorted(pair, key=lambda direction: -senses[direction][0]) for pair in pairs_of(senses)]
    # A direction without a partner is walked twice; where it does not lead its table is zero.
    order = [pair[0] for pair in pairs] + [pair[-1] for pair in pairs]
    gates = PortGates(*(_in_order(gate, order) for gate in gates))
    last, first = (jnp.asarray([senses[direction][axis] for direction in order]) for axis in (0, 1))
    turned, lines = _along_first(gates, first, parting[1])
    downwards, upwards = jnp.split(lines, 2)
    paired = jnp.asarray([len(pair) == 2 for pair in pairs]).reshape(-1, *(1,) * (lines.ndim - 1))
    level = downwards + jnp.where(paired, upwards, 0)
    if direct is not None:
        diagonal = jnp.where(parting[1] == 0, direct[..., None, :], 0)
        level = jnp.concatenate([level[:1] + diagonal[None], level[1:]])
    return Walks(turned, level, _along_last(gates, last, parting[0]))


def _in_order(gate: Array, order: Sequence[int]) -> Array:
    """Directions in an order. A split, whose transpose is one concatenation."""
    gates = jnp.split(gate, gate.shape[0])
    return jnp.concatenate([gates[direction] for direction in order])


def pairs_of(senses: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Directions that share a term: the same sense along x, opposite ones along y. Some have no partner."""
    pairs: list[list[int]] = []
    for number, (last, first) in enumerate(senses):
        for pair in pairs:
            if len(pair) == 1 and senses[pair[0]] == (-last, first):
                pair.append(number)
                break
        else:
            pairs.append([number])
    return pairs


def _along_first(gates: PortGates, senses: Array, parting: Array) -> tuple[Array, Array]:
    """A and R, `(direction, head, y0, x0, x)`."""
    between = products(gates.first[..., None], senses, parting)[..., 0]
    sent = gates.source_first[..., :, None] * between
    turned = jnp.where(parting == 0, gates.source_last[..., :, None], sent * gates.turn[..., None, :])
    return turned, sent * gates.mark_first[..., None, :]


def _along_last(gates: PortGates, senses: Array, parting: Array) -> Array:
    """B, `(direction, head, y0, y, x)`."""
    return products(gates.last, senses, parting) * gates.mark_last[..., None, :, :]


@apart
def _products(decay: Array, senses: Array, parting: Array) -> Array:
    forward = (senses > 0).reshape(-1, *(1,) * (decay.ndim - 1))
    parting = jnp.expand_dims(parting[..., None], range(decay.ndim - 2))
    signed = jnp.where(forward[..., None], 1, -1) * parting
    product = jnp.zeros((), decay.dtype)
    for level, (after, before) in enumerate(levels(decay).pairs):
        source, target = jnp.where(forward, after, before), jnp.where(forward, before, after)
        entry = source[..., :, None, :] * target[..., None, :, :]
        product = jnp.where(signed == level + 1, entry, product)
    return jnp.broadcast_to(product, (*decay.shape[:-1], *decay.shape[-2:]))


def _saving(decay: Array, senses: Array, parting: Array) -> tuple[Array, Array]:
    product = _products(decay, senses, parting)
    return product, product


def _pull(args: tuple[Any, ...], product: Array, cotangent: Array) -> tuple[Any, ...]:
    """Every product through a place, without that place's own factor: `sum over s < j < t of P[s, j] dP[s, t] P[j, t]`."""
    del args
    met = contract("...sji,...sti->...jti", product, cotangent)
    return (product * met).sum(-2), None, None


products = with_adjoint(_products, _saving, _pull)
"""`products(decay, senses, parting)[..., s, t, i]`, of `decay[direction, ..., place, i]`: the product of the decays strictly
between the places s and t where t lies ahead of s in the sense of a direction, and zero elsewhere."""
