"""Attention whose mask is a sum of products of two tables (see `one_turn`).

Entries of the mask are made where they are used. Targets are worked off in blocks of so many lines, `N x rows X` pairs at a
time, and the backward pass makes each block again.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from stmlang.lower.adjoint import with_adjoint
from stmlang.lower.attention import streamed_attention, weighed_attention
from stmlang.lower.no_fusion import apart
from stmlang.lower.one_turn import Walks


def attend(rows: int, query: Array, key: Array, value: Array, gates: Walks) -> Array:
    """`h[n] = sum over m of G[m, n] (q[n] . k[m]) v[m]`: inputs `(head, node, index)`, `rows` lines of targets at a time."""
    lines, size = gates.across.shape[-2:]
    if rows >= lines:
        return weighed_attention(query, key, value, lambda scores: weigh(scores, gates, _ahead(lines, 0, lines)))

    def weigh_block(block: tuple[Array, Array], scores: Array) -> Array:
        start, across = block
        return weigh(scores, gates._replace(across=across), _ahead(lines, start, rows))

    blocks = -(-lines // rows)
    starts = rows * jnp.arange(blocks, dtype=jnp.int32)
    h = streamed_attention(_split(query, rows * size, -2), key, value, (starts, _split(gates.across, rows, -2)), weigh_block)
    h = jnp.moveaxis(h, 0, -3).reshape(*query.shape[:-2], -1, value.shape[-1])
    return lax.slice_in_dim(h, 0, lines * size, axis=h.ndim - 2)


def _split(array: Array, count: int, axis: int) -> Array:
    """So many entries of an axis at a time, with a leading axis of blocks; the last block is filled up with zeros."""
    axis %= array.ndim
    size = array.shape[axis]
    blocks = -(-size // count)
    widths = [(0, blocks * count - size if k == axis else 0) for k in range(array.ndim)]
    split = jnp.pad(array, widths).reshape(*array.shape[:axis], blocks, count, *array.shape[axis + 1 :])
    return jnp.moveaxis(split, axis, 0)


def _ahead(lines: int, start: Any, count: int) -> Array:
    """How many lines each of `count` lines of targets lies after each line of sources, to broadcast over `(y0, x0, y, x)`."""
    target, source = (start + jnp.arange(count, dtype=jnp.int32))[None], jnp.arange(lines, dtype=jnp.int32)[:, None]
    return (target - source)[:, None, :, None]


@apart
def _weighted(pairs: Array, gates: Walks, ahead: Array) -> Array:
    """Numbers of pairs `(head, y0, x0, y, x)` times the tile of the gating matrix."""
    turned, level, across = gates.turned[..., None, :], gates.level[..., None, :], gates.across[..., None, :, :]
    terms = level.shape[0]

    def entries(term: int) -> Array:
        later, earlier = turned[term] * across[term], turned[terms + term] * across[terms + term]
        return jnp.where(ahead > 0, later, jnp.where(ahead < 0, earlier, level[term]))

    products = [entries(term) for term in range(terms)]
    return pairs * sum(products[1:], start=products[0])


@apart
def _pulled(scores: Array, cotangent: Array, gates: Walks, ahead: Array) -> tuple[list[Array], Array, list[Array]]:
    """Cotangents of the tables, from that of the weights: walk by walk, the one of `level` for all terms."""
    change, terms = scores * cotangent, gates.level.shape[0]
    coming, passed, own = (jnp.where(holds, change, 0) for holds in (ahead > 0, ahead < 0, ahead == 0))
    halves = [coming] * terms + [passed] * terms
    return (
        [(half * gates.across[walk][..., None, :, :]).sum(-2) for walk, half in enumerate(halves)],
        own.sum(-2),
        [(half * gates.turned[walk][..., None, :]).sum(-3) for walk, half in enumerate(halves)],
    )


def _unfolded(pairs: Array, gates: Walks) -> Array:
    """`(head, source, target)` as `(head, y0, x0, y, x)`."""
    heads, lines, targets, size = gates.across.shape[1:]
    return pairs.reshape(heads, lines, size, targets, size)


def _weigh(scores: Array, gates: Walks, ahead: Array) -> Array:
    return _weighted(_unfolded(scores, gates), gates, ahead).reshape(scores.shape)


def _weigh_forward(scores: Array, gates: Walks, ahead: Array) -> tuple[Array, tuple[()]]:
    return _weigh(scores, gates, ahead), ()


def _weigh_backward(args: tuple[Array, Walks, Array], saved: Any, cotangent: Array) -> tuple[Array, Walks, None]:
    del saved
    scores, gates, ahead = args
    turned, level, across = _pulled(_unfolded(scores, gates), _unfolded(cotangent, gates), gates, ahead)
    tables = Walks(jnp.stack(turned), jnp.broadcast_to(level, gates.level.shape), jnp.stack(across))
    return _weigh(cotangent, gates, ahead), tables, None


weigh = with_adjoint(_weigh, _weigh_forward, _weigh_backward)
"""`(scores, gates, ahead) -> weights`, `(head, source, target)`: scores times the tile of the gating matrix that `ahead` is of,
to whose targets `across` is cut. Its adjoint is written by hand for what is summed over lines before anything is multiplied."""
