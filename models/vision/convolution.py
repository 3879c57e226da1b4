"""Convolutions of images, and the two networks of them that the paper compares with: isotropic ConvNeXt and EfficientNet-B0."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.parts import Linear, Perceptron
from stmlang.models.vision.layer_norm import LayerNorm
from stmlang.models.vision.model import Cycle, ImageModel
from stmlang.models.vision.residual import Residual
from stmlang.nn.errors import require_floats, require_key
from stmlang.nn.show import summary
from stmlang.nn.start import behind
from stmlang.runtime.modules import equal, hash_of

STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""EfficientNet-B0, table 1: expansion, channels, layers, stride of the first and side of the kernel of each stage."""
GROUPS = 8
"""Of the norms of EfficientNet: all its channels are multiples."""


class Convolution(eqx.Module):
    """A convolution in two dimensions, of `groups` of channels by themselves; borders are filled with zeros. Computes in the
    data type of `x`, keeps its parameters in float32."""

    weight: Float[Array, "height width in_of_group out"]
    bias: Float[Array, " out"] | None
    stride: int = eqx.field(static=True)
    groups: int = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(
        self, channels: int, out: int, side: int, *, stride: int = 1, groups: int = 1, use_bias: bool = True, key: PRNGKeyArray
    ) -> None:
        """Weights have the standard deviation `sqrt(2 / fan out)`."""
        self.stride, self.groups = stride, groups
        deviation = (2 * groups / (side * side * out)) ** 0.5
        self.weight = deviation * jax.random.normal(key, (side, side, channels // groups, out), jnp.float32)
        self.bias = jnp.zeros(out, jnp.float32) if use_bias else None

    def __call__(
        self, x: Float[Array, "rows cols channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "new_rows new_cols out"]:
        del key
        weight, convolved = self.weight.astype(x.dtype), partial(_convolved, stride=self.stride, groups=self.groups)
        if self.stride == 1 and self.groups == x.shape[-1] == weight.shape[-1]:
            y = cast(Array, jax.lax.platform_dependent(x, weight, cpu=_by_lines, default=convolved))
        else:
            y = convolved(x, weight)
        return y if self.bias is None else y + behind(self.bias.astype(x.dtype), 3)


def _convolved(x: Array, weight: Array, *, stride: int, groups: int) -> Array:
    layout = ("NHWC", "HWIO", "NHWC")
    y = jax.lax.conv_general_dilated(
        x[None], weight, (stride, stride), "SAME", dimension_numbers=layout, feature_group_count=groups
    )
    return y[0]


def _by_lines(x: Float[Array, "rows cols channels"], weight: Float[Array, "height width 1 channels"]) -> Array:
    """The convolution of each channel by itself as products of matrices: those of a line of the kernel hold its weights along
    diagonals. XLA's kernels for CPUs have no fast way with one channel a group: with their gradient they take five times as
    long, and within a loop a hundred times."""
    (height, width), (rows, cols) = weight.shape[:2], x.shape[:2]
    before = (height - 1) // 2
    padded = jnp.pad(x, ((before, height - 1 - before), (0, 0), (0, 0)))
    lines = jnp.stack([padded[i : i + rows] for i in range(height)])
    place = jnp.arange(cols)[:, None] - jnp.arange(cols) + (width - 1) // 2
    inside = (place >= 0) & (place < width)
    matrices = jnp.where(inside[None, :, :, None], weight[:, jnp.clip(place, 0, width - 1), 0], 0)
    return jnp.einsum("irfc,iftc->rtc", lines, matrices)


# --- ConvNeXt


def convnext(
    dim: int,
    *,
    depth: int = 18,
    expansion: int = 4,
    classes: int = 1000,
    patch: int = 16,
    dropout: float = 0.0,
    drop_path: float = 0.0,
    layer_scale: float | None = None,
    key: PRNGKeyArray,
    **options: Any,
) -> ImageModel:
    """ConvNeXt without stages (Liu et al., 2022, section 3.3): a convolution of each channel on 7x7 nodes, a norm and a
    perceptron within one residual connection. There are no positions, and the mean of all nodes is pooled."""

    def cycle(key: PRNGKeyArray) -> Cycle:
        first, second = jax.random.split(key)
        mixed = Convolution(dim, dim, 7, groups=dim, key=first)
        inside = eqx.nn.Sequential([mixed, LayerNorm(dim), Perceptron(dim, expansion * dim, key=second)])
        return (Residual(None, inside, dim, layer_scale=layer_scale, dropout=dropout, drop_path=drop_path),)

    made: dict[str, Any] = {"pooling": "mean", **options}
    return ImageModel(cycle, LayerNorm(dim), classes=classes, dim=dim, turns=depth, patch=patch, key=key, **made)


convnext_s = partial(convnext, 384)
convnext_b = partial(convnext, 768)


# --- EfficientNet


class Normalized(eqx.Module):
    """A convolution without a bias and a norm of groups of channels, in float32."""

    convolution: Convolution
    norm: eqx.nn.GroupNorm

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, channels: int, out: int, side: int, *, key: PRNGKeyArray, **options: Any) -> None:
        self.convolution = Convolution(channels, out, side, use_bias=False, key=key, **options)
        self.norm = eqx.nn.GroupNorm(GROUPS, out)

    def __call__(self, x: Float[Array, "rows cols channels"], *, key: PRNGKeyArray | None = None) -> Array:
        del key
        y = self.convolution(x)
        wide = jnp.moveaxis(y, -1, 0).astype(jnp.float32)
        return jnp.moveaxis(self.norm(wide), 0, -1).astype(y.dtype)


class Inverted(eqx.Module):
    """The layer of EfficientNet (Tan, Le, 2019; MBConv of MobileNetV2): more channels, a convolution of each, a factor for each
    from the means of all, fewer channels."""

    expand: Normalized | None
    depthwise: Normalized
    squeeze: Linear
    excite: Linear
    project: Normalized

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, channels: int, out: int, expansion: int, side: int, stride: int, *, key: PRNGKeyArray) -> None:
        keys, inner = jax.random.split(key, 5), expansion * channels
        self.expand = Normalized(channels, inner, 1, key=keys[0]) if expansion > 1 else None
        self.depthwise = Normalized(inner, inner, side, stride=stride, groups=inner, key=keys[1])
        self.squeeze = Linear(inner, max(1, channels // 4), key=keys[2])
        self.excite = Linear(max(1, channels // 4), inner, key=keys[3])
        self.project = Normalized(inner, out, 1, key=keys[4])

    def __call__(self, x: Float[Array, "rows cols channels"], *, key: PRNGKeyArray | None = None) -> Array:
        del key
        y = x if self.expand is None else jax.nn.silu(self.expand(x))
        y = jax.nn.silu(self.depthwise(y))
        factor = jax.nn.sigmoid(self.excite(jax.nn.silu(self.squeeze(jnp.mean(y, axis=(0, 1))))))
        return self.project(y * behind(factor, 3))


class EfficientNet(eqx.Module):
    """EfficientNet-B0 (Tan, Le, 2019, table 1). Its norms are those of groups of channels, where the authors' are those of a
    batch: as many parameters, no state, and a result that does not depend on what else is in a batch."""

    stem: Normalized
    layers: tuple[Inverted | Residual, ...]
    top: Normalized
    dropout: eqx.nn.Dropout
    head: Linear

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self, *, classes: int = 1000, channels: int = 3, dropout: float = 0.2, drop_path: float = 0.0, key: PRNGKeyArray
    ) -> None:
        stem, top, head, layers = jax.random.split(require_key(key), 4)
        self.stem, width = Normalized(channels, 32, 3, stride=2, key=stem), 32
        made: list[Inverted | Residual] = []
        for expansion, out, count, stride, side in STAGES:
            for number in range(count):
                own = jax.random.fold_in(layers, len(made))
                layer = Inverted(width, out, expansion, side, stride if number == 0 else 1, key=own)
                made.append(layer if number == 0 else Residual(None, layer, out, drop_path=drop_path))
                width = out
        self.layers = tuple(made)
        self.top = Normalized(width, 1280, 1, key=top)
        self.dropout = eqx.nn.Dropout(dropout)
        self.head = Linear(1280, classes, gain=1.0, key=head)

    def __call__(
        self, image: Float[Array, "height width channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        x = jax.nn.silu(self.stem(require_floats("image", image)))
        for number, layer in enumerate(self.layers):
            x = layer(x, key=None if key is None else jax.random.fold_in(key, number))
        pooled = jnp.mean(jax.nn.silu(self.top(x)), axis=(0, 1)).astype(jnp.float32)
        last = None if key is None else jax.random.fold_in(key, len(self.layers))
        return self.head(self.dropout(pooled, key=last))
