"""Chunks of chains whose decays are matrices on tracks, one for each entry of the key or of the value: complex numbers, of two.

With `P[n, m]` the product of the matrices strictly between two nodes, from the later to the earlier, what n reads of m is

    sum over k of  (q[k] mark[k] . P[n, m][k] source[k] k[k]) v      or      (q . k) mark[v] . P[n, m][v] source[v] v

and between places that part at a level (`stmlang.lower.segment_products`) P is a product of two matrices, one of each place. So
queries and keys, or values and outputs, are vectors with an entry for each track, turned by these; what follows is as of decays
that are numbers.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.lower.chunks import State
from stmlang.lower.contractions import contract
from stmlang.lower.segment_products import matrix_levels, parted


class Nodes(NamedTuple):
    """Gates by entry of the key or of the value, or the same for all of them (size one)."""

    source: Float[Array, "node lane #index track"]
    decay: Float[Array, "node lane #index track track"]
    mark: Float[Array, "node lane #index track"]
    query: Float[Array, "node lane key"]
    key: Float[Array, "node lane key"]
    value: Float[Array, "node lane value"]

    def idle(self, own: Bool[Array, "node 1 1"]) -> Self:
        """See `stmlang.lower.chunks.Nodes`."""
        straight = jnp.eye(self.decay.shape[-1], dtype=self.decay.dtype)
        return self._replace(
            source=jnp.where(own[..., None], self.source, 0), decay=jnp.where(own[..., None, None], self.decay, straight)
        )


def by_key(nodes: Nodes, state: State) -> tuple[Array, State]:
    """A matrix for every entry of the key; states `(lane, track, key, value)`."""
    turned, lanes = nodes.mark * nodes.query[..., None], nodes.source * nodes.key[..., None]
    query, key, value, decay = _by_lane(turned, lanes, nodes.value, nodes.decay)
    tables, places = matrix_levels(decay), value.shape[1]
    scores = jnp.zeros((value.shape[0], places, places), value.dtype)
    for level, (after, before) in enumerate(tables.pairs):
        level_scores = contract("lnkt,lmkt->lnm", _from_left(query, before), _from_right(after, key))
        scores = jnp.where(parted(places, level), level_scores, scores)
    entered = _from_left(query, tables.before[-1])
    outputs = contract("lnm,lmv->lnv", scores, value) + contract("lnkt,ltkv->lnv", entered, state)
    written = contract("lmkt,lmv->ltkv", _from_right(tables.after[-1], key), value)
    through = jnp.moveaxis(tables.through, 1, -1)[..., None]
    return jnp.swapaxes(outputs, 0, 1), _passed(through, state) + written


def by_value(nodes: Nodes, state: State) -> tuple[Array, State]:
    """A matrix for every entry of the value: the same scores for all levels."""
    value, mark, query, key, decay = _by_lane(
        nodes.source * nodes.value[..., None], nodes.mark, nodes.query, nodes.key, nodes.decay
    )
    tables = matrix_levels(decay)
    scores = contract("lnk,lmk->lnm", query, key)
    held = contract("lnk,ltkv->lnvt", query, state)
    outputs = jnp.sum(_from_left(mark, tables.before[-1]) * held, axis=-1)
    for level, (after, before) in enumerate(tables.pairs):
        masked = jnp.where(parted(value.shape[1], level), scores, 0)
        seen = contract("lnm,lmvt->lnvt", masked, _from_right(after, value))
        outputs = outputs + jnp.sum(_from_left(mark, before) * seen, axis=-1)
    written = contract("lmk,lmvt->ltkv", key, _from_right(tables.after[-1], value))
    through = jnp.moveaxis(tables.through, 1, -1)[..., None, :]
    return jnp.swapaxes(outputs, 0, 1), _passed(through, state) + written


def _by_lane(*arrays: Array) -> list[Array]:
    return [jnp.swapaxes(array, 0, 1) for array in arrays]


def _from_left(vector: Float[Array, "*place #index track"], matrix: Float[Array, "*place #index track track"]) -> Array:
    """`v . P`. There are few tracks, so that sums of products take less than a call of a matrix kernel for each entry."""
    return jnp.sum(vector[..., :, None] * matrix, axis=-2)


def _from_right(matrix: Float[Array, "*place #index track track"], vector: Float[Array, "*place #index track"]) -> Array:
    """`P v`."""
    return jnp.sum(matrix * vector[..., None, :], axis=-1)


def _passed(through: Float[Array, "lane track track #key #value"], state: Float[Array, "lane track key value"]) -> Array:
    return jnp.sum(through * state[:, None], axis=2)
