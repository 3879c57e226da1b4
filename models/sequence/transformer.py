"""Softmax attention with a cache of keys and values: the baseline of sequence models, with the interface of the blocks.

A cache is read where it lies, piece by piece, by all queries of a call at once and with a running maximum (Milakov and
Gimelshein: Online normalizer calculation for softmax, 2018). What a call adds is written behind that, into the same memory
where XLA may have it: in a loop, or where the state is donated.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from stmlang.models.blocks.parts import by_head, joined
from stmlang.models.parts import Linear
from stmlang.nn.errors import require_key, require_size, require_type
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error, widest

BASE = 10_000.0
PIECE = 256
"""Nodes of a cache that are read at once: few enough to stay near the processor, enough to outweigh a turn of the loop."""


class KeyValues(NamedTuple):
    """What attention keeps between steps: keys, turned by their place, and values, with room for `context` nodes, and how
    many there were. Nodes lie behind each other, so that one query times all keys is a matrix product as they stand."""

    keys: Float[Array, "*layer head width context"]
    values: Float[Array, "*layer head width context"]
    length: Int[Array, "*layer"]


class Entries(NamedTuple):
    """What nodes add to a cache."""

    keys: Float[Array, "*layer head width time"]
    values: Float[Array, "*layer head width time"]


class Sums(NamedTuple):
    """Attention over a part of the nodes: the largest logit, and sums of `exp(logit - largest)`, alone and times values."""

    largest: Float[Array, "head time"]
    total: Float[Array, "head time"]
    values: Float[Array, "head time width"]


class Attention(eqx.Module):
    """Causal softmax attention, Vaswani et al.: Attention Is All You Need, 2017, equation 1, with queries and keys turned by
    their place (Su et al.: RoFormer, 2021):

        y[t] = W_out sum over s <= t of softmax(R[t] q[t] . R[s] k[s] / sqrt(width)) v[s]

    As `mixer` of a `LanguageModel` it makes a transformer. The cache for steps has room for `context` nodes; behind these there
    is nothing that a step could give, and it gives NaN.
    """

    into: Linear
    out: Linear
    dim: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    context: int = eqx.field(static=True)
    dtype: str = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, dim: int, *, heads: int, context: int, dtype: Any = "float32", key: PRNGKeyArray) -> None:
        """`dtype` is that of the cache. Raises SpecError (STM5208) where `dim` is no even multiple of `heads`, and for what is
        no size."""
        self.dim, self.heads = require_size("dim", dim), require_size("heads", heads)
        self.context, self.dtype = require_size("context", context), require_type("dtype", dtype).name
        if dim % (2 * heads):
            message = f"{heads} heads cannot be of one even width in {dim} features"
            raise call_error("STM5208", message, help="`dim` is a multiple of twice the number of heads")
        into, out = jax.random.split(require_key(key))
        self.into = Linear(dim, 3 * dim, use_bias=False, key=into)
        self.out = Linear(dim, dim, use_bias=False, key=out)

    def __call__(self, x: Float[Array, "time dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "time dim"]:
        del key
        q, k, v = self._projected(x, jnp.arange(x.shape[0]))
        return self._joined(_among(q, k, v), x.dtype)

    def init_state(self) -> KeyValues:
        """An empty cache."""
        empty = jnp.zeros((self.heads, self.dim // self.heads, self.context), self.dtype)
        return KeyValues(empty, empty, jnp.zeros((), jnp.int32))

    def prefill(self, state: KeyValues, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], KeyValues]:
        """Many nodes at once, behind those in the cache. It has no gradient in reverse mode: whole sequences train."""
        caches = KeyValues(*(array[None] for array in state))
        y, new = self.read(caches, jnp.int32(0), x)
        keys, values, length = self.appended(caches, Entries(new.keys[None], new.values[None]))
        return y, KeyValues(keys[0], values[0], length[0])

    def step(self, state: KeyValues, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], KeyValues]:
        """One node; it reads what there is in the cache."""
        y, state = self.prefill(state, x[None])
        return y[0], state

    def read(
        self, caches: KeyValues, layer: Int[Array, ""], x: Float[Array, "time dim"]
    ) -> tuple[Float[Array, "time dim"], Entries]:
        """Many nodes at once, behind those in one layer's cache of several, and what they add to it."""
        length = caches.length[layer]
        places = length + jnp.arange(x.shape[0], dtype=jnp.int32)
        q, k, v = self._projected(x, places)
        size = min(PIECE, self.context)

        def piece(number: Array, sums: Sums) -> Sums:
            return _with_piece(sums, q, caches, layer, number * size, size)

        pieces = (jnp.minimum(length, self.context) + size - 1) // size
        sums = cast(Sums, jax.lax.fori_loop(0, pieces, piece, _among(q, k, v)))
        y = self._joined(sums, x.dtype)
        y = jnp.where((places < self.context)[:, None], y, jnp.full_like(y, jnp.nan))
        return y, Entries(*(jnp.moveaxis(array, 0, -1).astype(self.dtype) for array in (k, v)))

    def appended(self, caches: KeyValues, entries: Entries) -> KeyValues:
        """The caches of all layers, each with what its nodes add. What finds no room is not looked at again: behind it every
        result is NaN."""
        none = jnp.int32(0)
        at = (none, none, none, caches.length[0])

        def added(cache: Array, new: Array) -> Array:
            return jax.lax.dynamic_update_slice(cache, new[..., : self.context], at)

        keys, values = added(caches.keys, entries.keys), added(caches.values, entries.values)
        return KeyValues(keys, values, caches.length + entries.keys.shape[-1])

    def _projected(self, x: Float[Array, "time dim"], places: Int[Array, " time"]) -> tuple[Array, Array, Array]:
        q, k, v = (by_head(array, self.heads) for array in jnp.split(self.into(x), 3, axis=-1))
        return turned(q, places), turned(k, places), v

    def _joined(self, sums: Sums, dtype: jnp.dtype) -> Float[Array, "time dim"]:
        """What is read, through the last map."""
        return self.out(joined(jnp.swapaxes(sums.values / sums.total[..., None], 0, 1)).astype(dtype))


def _among(q: Float[Array, "time head width"], k: Float[Array, "time head width"], v: Float[Array, "time head width"]) -> Sums:
    """Attention of nodes to themselves and those before them."""
    earlier = jnp.tri(q.shape[0], dtype=bool)
    logits = jnp.where(earlier[None], _logits("thw,shw->hts", q, k), -jnp.inf)
    largest = jax.lax.stop_gradient(jnp.max(logits, axis=-1))  # it cancels
    weights = jnp.exp(logits - largest[..., None])
    return Sums(largest, jnp.sum(weights, axis=-1), _weighted("hts,shw->htw", weights, v))


def _with_piece(
    sums: Sums, q: Float[Array, "time head width"], caches: KeyValues, layer: Array, start: Array, size: int
) -> Sums:
    """Attention to some nodes of a cache as well, `size` of them from `start` on. The last piece lies as far back as it must,
    and what it has in common with the one before counts once."""
    context = caches.keys.shape[-1]
    none, begin = jnp.int32(0), jnp.minimum(start, context - size)

    def taken(cache: Array) -> Array:
        return jax.lax.dynamic_slice(cache, (layer, none, none, begin), (1, *cache.shape[1:3], size))[0].astype(q.dtype)

    places = begin + jnp.arange(size, dtype=jnp.int32)
    counted = (places >= start) & (places < caches.length[layer])
    logits = jnp.where(counted[None, None], _logits("thw,hwc->htc", q, taken(caches.keys)), -jnp.inf)
    largest = jnp.maximum(sums.largest, jnp.max(logits, axis=-1))
    kept, weights = jnp.exp(sums.largest - largest), jnp.exp(logits - largest[..., None])
    values = kept[..., None] * sums.values + _weighted("htc,hwc->htw", weights, taken(caches.values))
    return Sums(largest, kept * sums.total + jnp.sum(weights, axis=-1), values)


def _logits(sum: str, q: Float[Array, "time head width"], k: Array) -> Float[Array, "head time node"]:
    """`q . k / sqrt(width)`, in float32 at least."""
    return jnp.einsum(sum, q, k, preferred_element_type=widest(q.dtype)) * q.shape[-1] ** -0.5


def _weighted(sum: str, weights: Float[Array, "head time node"], v: Array) -> Float[Array, "head time width"]:
    """Values by weights, multiplied in the data type of values, summed in float32 at least."""
    return jnp.einsum(sum, weights.astype(v.dtype), v, preferred_element_type=weights.dtype)


def turned(x: Float[Array, "time head width"], places: Int[Array, " time"]) -> Float[Array, "time head width"]:
    """Pairs of entries, one of either half, as complex numbers that are turned by their place: pair j by `place / 10000^(j /
    pairs)`. Angles are in float32 at least."""
    pairs = x.shape[-1] // 2
    wide = widest(x.dtype)
    paces = jnp.asarray(BASE, wide) ** (-jnp.arange(pairs, dtype=wide) / pairs)
    angles = places.astype(wide)[:, None, None] * behind(paces, 3)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    real, imag = jnp.split(x.astype(wide), 2, axis=-1)
    return jnp.concatenate([real * cos - imag * sin, real * sin + imag * cos], axis=-1).astype(x.dtype)
