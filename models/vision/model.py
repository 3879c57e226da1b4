"""The image classifier that all models of this folder without stages are: patches, residual layers, pooling, a head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.models.parts import Linear
from stmlang.models.vision.patches import POOLED, Pooling, patches, pool, require_patch
from stmlang.models.vision.position import resized, table
from stmlang.models.vision.residual import Layer, Residual
from stmlang.nn.errors import require_floats, require_key, require_size, require_type
from stmlang.nn.show import summary
from stmlang.runtime.modules import equal, hash_of
from stmlang.runtime.options import word
from stmlang.runtime.signature import call_error, flag

Cycle = tuple[Residual, ...]
"""Residual layers that follow each other, and again in the same order."""
MakeCycle = Callable[[PRNGKeyArray], Cycle]
Grid = tuple[int | None, int | None]
"""Rows and columns of nodes; None where any number will do."""


class ImageModel(eqx.Module):
    """Patches, a table of positions, `turns` times a cycle of residual layers, a norm, pooling, a linear head.

    The parameters of all turns are stacked and the turns run in a `lax.scan`: a cycle is traced and compiled once, however deep
    the model. One image a call, `(height, width, channels)`; logits in float32. The table is resized to the grid of an image
    where that may be another. With `pooling="class"` a learned token stands before the patches, which are a row then.

    `model(image, key=key)` is for training where the model has dropout or stochastic depth. `model.at(height, width)` is the
    model with its table resized once, to be trained on at another resolution.
    """

    embed: Linear
    position: Float[Array, "rows cols dim"] | None
    token: Float[Array, "1 dim"] | None
    stacked: Cycle
    norm: Layer
    head: Linear
    patch: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)
    pooling: Pooling = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)
    turns: int = eqx.field(static=True)
    dtype: str | None = eqx.field(static=True)
    remat: bool = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal
    __pdoc__ = summary

    def __init__(
        self,
        cycle: MakeCycle,
        norm: Layer,
        *,
        classes: int,
        dim: int,
        turns: int,
        channels: int = 3,
        patch: int = 16,
        stride: int | None = None,
        grid: Grid = (None, None),
        position: tuple[int, int] | None = None,
        pooling: Pooling = "corners",
        dtype: Any = None,
        remat: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        """`cycle` makes the layers of one turn from a key, `norm` stands before pooling. `grid` are the nodes that the layers
        can take, `position` those of the table, None for a model without. `dtype` is that of all that is computed between
        patches and pooling, on parameters in float32; None takes that of the image. `remat` keeps nothing of a turn for the
        gradient but its input, and computes it again. Raises SpecError: STM5010 for an unknown `pooling` and what is neither
        True nor False, STM5208 for anything else that no model can be made of."""
        classes, channels, dim = require_size("classes", classes), require_size("channels", channels), require_size("dim", dim)
        self.turns, self.channels, self.grid = require_size("turns", turns), channels, grid
        self.patch, self.stride = require_patch(patch, patch if stride is None else stride)
        self.pooling = cast(Pooling, word("pooling", pooling, get_args(Pooling)))
        self.dtype = None if dtype is None else require_type("dtype", dtype).name
        self.remat = flag("remat", remat)
        embed, place, head, *own = jax.random.split(require_key(key), 3 + self.turns)
        self.embed = Linear(self.patch**2 * channels, dim, gain=1.0, key=embed)
        self.position = None if position is None else table(position, dim, key=place)
        first = jax.random.fold_in(place, 1)
        self.token = 0.02 * jax.random.normal(first, (1, dim), jnp.float32) if pooling == "class" else None
        self.stacked = jax.tree.map(_stack, *(cycle(turn) for turn in own))
        self.norm = norm
        self.head = Linear(POOLED[self.pooling] * dim, classes, gain=1.0, key=head)

    def turn(self, number: int) -> Cycle:
        """The residual layers of one turn, as modules of their own."""

        def take(array: Array) -> Array:
            return array[number]

        learned, shared = _learned(self.stacked)
        return eqx.combine(jax.tree.map(take, learned), shared)

    def at(self, height: int, width: int) -> ImageModel:
        """The model with its table of positions for images of another size. Raises SpecError (STM5201) for a size that has no
        whole number of patches, or that the layers were not compiled for."""
        rows, cols = self._nodes((height, width, self.channels))
        if self.position is None:
            return self
        return eqx.tree_at(_position, self, resized(self.position, (rows, cols)))

    def tokens(self, image: Float[Array, "height width channels"]) -> Float[Array, "*nodes dim"]:
        """What the first layer sees: `(rows, cols, dim)`, or `(1 + rows * cols, dim)` with a class token. Raises SpecError
        (STM5201) for an image of another size or number of channels."""
        cut = patches(image, self.patch, self.stride)
        rows, cols = self._nodes(image.shape)
        x = self.embed(cut if self.dtype is None else cut.astype(self.dtype))
        if self.position is not None:
            x = x + resized(self.position, (rows, cols)).astype(x.dtype)
        if self.token is None:
            return x
        return jnp.concatenate([self.token.astype(x.dtype), x.reshape(rows * cols, x.shape[-1])])

    def __call__(
        self, image: Float[Array, "height width channels"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, " classes"]:
        """Raises SpecError (STM5202) where layers draw random numbers and there is no key."""

        def through(x: Array, turn: tuple[Cycle, Array | None]) -> tuple[Array, None]:
            cycle, own = eqx.combine(turn[0], shared), turn[1]
            keys: Sequence[Array | None] = [None] * len(cycle) if own is None else list(jax.random.split(own, len(cycle)))
            for layer, drawn in zip(cycle, keys, strict=True):
                x = layer(x, key=drawn)
            return x, None

        learned, shared = _learned(self.stacked)
        keys = None if key is None else jax.random.split(require_key(key), self.turns)
        step = cast(Any, jax.checkpoint(through, prevent_cse=False)) if self.remat else through
        x, _ = jax.lax.scan(step, self.tokens(require_floats("image", image)), (learned, keys))
        return self.head(pool(self.norm(x), self.pooling).astype(jnp.float32))

    def _nodes(self, image: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of patches of an image of a shape."""
        sides = [None if axis is None else axis * self.stride for axis in self.grid]
        if image[-1] != self.channels or any(side not in (None, length) for side, length in zip(sides, image, strict=False)):
            named = [name if side is None else side for name, side in zip(("height", "width"), sides, strict=True)]
            shown = f"({named[0]}, {named[1]}, {self.channels})"
            help = "a model of scans without sizes takes images of any size"
            raise call_error("STM5201", f"`image` must have the shape {shown}, not {image}", help=help)
        height, width = image[:2]
        if height % self.stride or width % self.stride:
            message = f"an image of {height}x{width} does not divide into squares of {self.stride}x{self.stride}"
            raise call_error("STM5201", message, help="crop or pad it, or choose another `stride`")
        return height // self.stride, width // self.stride


def _learned(stacked: Cycle) -> tuple[Cycle, Cycle]:
    """What differs from turn to turn, stacked, and what does not."""
    return cast(tuple[Cycle, Cycle], eqx.partition(stacked, eqx.is_inexact_array))


def _position(model: ImageModel) -> Array | None:
    return model.position


def _stack(*leaves: Any) -> Any:
    """What is learned of all turns, and of the first what all have in common: index tables, probabilities."""
    return jnp.stack(leaves) if eqx.is_inexact_array(leaves[0]) else leaves[0]
