"""The vision transformer, in the form of DeiT-III."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.blocks.parts import by_head, joined
from stmlang.models.parts import Linear, Perceptron
from stmlang.models.vision.layer_norm import LayerNorm
from stmlang.models.vision.model import Cycle, ImageModel
from stmlang.models.vision.residual import Layer, Residual
from stmlang.nn.errors import require_key, require_size
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.signature import call_error


class Attention(eqx.Module):
    """Softmax attention between all nodes, Vaswani et al.: Attention Is All You Need, 2017, equation 1:

    q, k, v = W x + b        y[n] = W_out sum over m of softmax(q[n] . k[m] / sqrt(width)) v[m] + b_out
    """

    into: Linear
    out: Linear
    heads: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(self, dim: int, *, heads: int, key: PRNGKeyArray) -> None:
        """Raises SpecError (STM5208) where `dim` is no multiple of `heads`, and for what is no size."""
        dim, self.heads = require_size("dim", dim), require_size("heads", heads)
        if dim % heads:
            raise call_error("STM5208", f"{dim} features cannot be divided among {heads} heads")
        into, out = jax.random.split(require_key(key))
        self.into, self.out = Linear(dim, 3 * dim, key=into), Linear(dim, dim, key=out)

    def __call__(self, x: Float[Array, "nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "nodes dim"]:
        del key
        q, k, v = (by_head(array, self.heads) for array in jax.numpy.split(self.into(x), 3, axis=-1))
        return self.out(joined(jax.nn.dot_product_attention(q, k, v)))


def vit(
    dim: int,
    *,
    heads: int,
    depth: int = 12,
    expansion: int = 4,
    classes: int = 1000,
    patch: int = 16,
    size: tuple[int, int] = (224, 224),
    layer_scale: float | None = 1e-4,
    dropout: float = 0.0,
    drop_path: float = 0.0,
    key: PRNGKeyArray,
    **options: Any,
) -> ImageModel:
    """A vision transformer (Dosovitskiy et al., 2021) as DeiT-III has it (Touvron et al., 2022): LayerScale on both branches,
    stochastic depth at one rate for all layers, a class token, and positions of patches alone. For arrow pointing the paper
    starts LayerScale at 1. `options` are those of `ImageModel`."""

    def cycle(key: PRNGKeyArray) -> Cycle:
        first, second = jax.random.split(key)
        layers = (Attention(dim, heads=heads, key=first), Perceptron(dim, expansion * dim, key=second))
        return tuple(residual(layer) for layer in layers)

    def residual(layer: Layer) -> Residual:
        return Residual(LayerNorm(dim), layer, dim, layer_scale=layer_scale, dropout=dropout, drop_path=drop_path)

    made: dict[str, Any] = {"position": (size[0] // patch, size[1] // patch), "pooling": "class", **options}
    return ImageModel(cycle, LayerNorm(dim), classes=classes, dim=dim, turns=depth, patch=patch, key=key, **made)


vit_t = partial(vit, 192, heads=3)
vit_s = partial(vit, 384, heads=6)
vit_b = partial(vit, 768, heads=12)
