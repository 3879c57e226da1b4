"""Softmax attention with a cache of keys and values: the baseline of sequence models, with the interface of the blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class KeyValues(NamedTuple):
    """What attention keeps between steps: keys, turned by their place, and values, with room for `context` nodes, and how
    many there were."""

    keys: Float[Array, "context head width"]
    values: Float[Array, "context head width"]
    length: Int[Array, ""]


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
        return self.out(joined(jax.nn.dot_product_attention(q, k, v, is_causal=True)))

    def init_state(self) -> KeyValues:
        """An empty cache."""
        empty = jnp.zeros((self.context, self.heads, self.dim // self.heads), self.dtype)
        return KeyValues(empty, empty, jnp.zeros((), jnp.int32))

    def prefill(self, state: KeyValues, x: Float[Array, "time dim"]) -> tuple[Float[Array, "time dim"], KeyValues]:
        """Many nodes at once, behind those in the cache."""
        places = state.length + jnp.arange(x.shape[0], dtype=jnp.int32)
        q, k, v = self._projected(x, places)
        keys = state.keys.at[places].set(k.astype(state.keys.dtype), mode="drop")
        values = state.values.at[places].set(v.astype(state.values.dtype), mode="drop")
        seen = jnp.arange(self.context, dtype=jnp.int32)[None] <= places[:, None]
        h = jax.nn.dot_product_attention(q, keys.astype(x.dtype), values.astype(x.dtype), mask=seen[None])
        y = self.out(joined(h))
        y = jnp.where((places < self.context)[:, None], y, jnp.full_like(y, jnp.nan))
        return y, KeyValues(keys, values, state.length + x.shape[0])

    def step(self, state: KeyValues, x: Float[Array, " dim"]) -> tuple[Float[Array, " dim"], KeyValues]:
        """One node; it reads all that the cache has room for."""
        y, state = self.prefill(state, x[None])
        return y[0], state

    def _projected(self, x: Float[Array, "time dim"], places: Int[Array, " time"]) -> tuple[Array, Array, Array]:
        q, k, v = (by_head(array, self.heads) for array in jnp.split(self.into(x), 3, axis=-1))
        return turned(q, places), turned(k, places), v


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
