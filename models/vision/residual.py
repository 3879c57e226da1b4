"""One residual connection: what stands around a layer in every model of this folder."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.nn.errors import require_probability
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error

Layer = Callable[[Array], Array]


class Path(eqx.Module):
    """Stochastic depth, Huang et al., 2016: a whole branch is zero with probability `p`, else divided by `1 - p`. One decision
    a call, so one for each image where a model is mapped over a batch with a key for each."""

    p: float = eqx.field(static=True)
    inference: bool

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, p: float) -> None:
        self.p, self.inference = p, False

    def __call__(self, y: Float[Array, "..."], *, key: PRNGKeyArray | None = None) -> Float[Array, "..."]:
        if self.inference:
            return y
        assert key is not None, "the branch around it asks for one"
        kept = jax.random.bernoulli(key, 1.0 - self.p)
        return jnp.where(kept, y / jnp.asarray(1.0 - self.p, y.dtype), jnp.zeros_like(y))


class Residual(eqx.Module):
    """`x + path(scale * dropout(layer(norm(x))))`, of which all but the layer may be missing."""

    norm: Layer | None
    layer: Layer
    dropout: eqx.nn.Dropout | None
    scale: Float[Array, " dim"] | None
    path: Path | None

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self,
        norm: Layer | None,
        layer: Layer,
        dim: int,
        *,
        layer_scale: float | None = None,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        """`layer_scale` is where LayerScale (Touvron et al.: CaiT, 2021) starts, `dropout` the probability of each entry,
        `drop_path` that of the whole branch. Raises SpecError (STM5208) for what is no probability."""
        dropout, drop_path = require_probability("dropout", dropout), require_probability("drop_path", drop_path)
        self.norm, self.layer = norm, layer
        self.dropout = eqx.nn.Dropout(dropout) if dropout else None
        self.scale = None if layer_scale is None else jnp.full(dim, layer_scale, jnp.float32)
        self.path = Path(drop_path) if drop_path else None

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes dim"]:
        """Raises SpecError (STM5202) where something is drawn and there is no key."""
        entries, whole = self._keys(key)
        y = self.layer(x if self.norm is None else self.norm(x))
        if self.dropout is not None:
            y = self.dropout(y, key=entries)
        if self.scale is not None:
            y = y * behind(self.scale.astype(y.dtype), y.ndim)
        return x + (y if self.path is None else self.path(y, key=whole))

    def _keys(self, key: PRNGKeyArray | None) -> tuple[PRNGKeyArray | None, PRNGKeyArray | None]:
        if key is not None:
            entries, whole = jax.random.split(key)
            return entries, whole
        if any(part is not None and not part.inference for part in (self.dropout, self.path)):
            help = "give one: `model(image, key=key)`; or use the model as it is after training: `eqx.nn.inference_mode(model)`"
            raise call_error("STM5202", "`key` is missing: the model has dropout or stochastic depth", help=help)
        return None, None
