"""What image models share: patches and pooling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_never

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.nn.errors import require_floats, require_size
from stmlang.runtime.signature import call_error

Pooling = Literal["corners", "ends", "mean", "class"]
POOLED: Mapping[Pooling, int] = {"corners": 4, "ends": 2, "mean": 1, "class": 1}
"""Nodes that stand behind each other in what is pooled."""


def patches(image: Float[Array, "height width channels"], size: int, stride: int) -> Float[Array, "rows cols features"]:
    """The square patches of an image, each flattened: `features = size * size * channels`, `rows = height / stride`.

    Patches are centred on squares of side `stride` that tile the image; where `size` is larger they overlap, and reach over the
    border, where the image counts as zero. Raises SpecError: STM5201 where a side is no multiple of the stride, STM5208 where
    the margin is uneven, STM5203 and STM5205 for what is no image of floating point numbers.
    """
    size, stride = require_size("patch", size), require_size("stride", stride)
    image = require_floats("image", image)
    if image.ndim != 3:
        help = "map a model over a batch of images with `jax.vmap(model)`" if image.ndim == 4 else None
        raise call_error("STM5201", f"`image` must have the shape (height, width, channels), not {image.shape}", help=help)
    height, width, channels = image.shape
    if height % stride or width % stride:
        message = f"an image of {height}x{width} does not divide into squares of {stride}x{stride}"
        raise call_error("STM5201", message, help="crop or pad it, or choose another `stride`")
    require_patch(size, stride)
    rows, cols, margin = height // stride, width // stride, (size - stride) // 2
    padded = jnp.pad(image, ((margin, margin), (margin, margin), (0, 0)))
    down = stride * np.arange(rows)[:, None] + np.arange(size)
    across = stride * np.arange(cols)[:, None] + np.arange(size)
    windows = padded[down[:, None, :, None], across[None, :, None, :]]
    return windows.reshape(rows, cols, size * size * channels)


def require_patch(size: int, stride: int) -> tuple[int, int]:
    """Side and stride of patches, if they fit each other. Raises SpecError (STM5208) if not."""
    size, stride = require_size("patch", size), require_size("stride", stride)
    if size < stride or (size - stride) % 2:
        message = f"patches of {size}x{size} cannot be centred on squares of {stride}x{stride}"
        raise call_error("STM5208", message, help="`patch` is `stride`, or larger by an even number")
    return size, stride


def pool(x: Float[Array, "*nodes dim"], how: Pooling) -> Float[Array, " features"]:
    """One vector of an image: the four corner tokens of a grid behind each other, as the paper does, the first and the last, as
    Vision-LSTM does, the mean of all, or the first of a row, the class token."""
    match how:
        case "corners":
            return jnp.concatenate([x[0, 0], x[0, -1], x[-1, 0], x[-1, -1]])
        case "ends":
            return jnp.concatenate([x[0, 0], x[-1, -1]])
        case "mean":
            return jnp.mean(x, axis=tuple(range(x.ndim - 1)))
        case "class":
            return x[0]
        case _:
            assert_never(how)
