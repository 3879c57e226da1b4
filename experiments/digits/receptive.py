"""What one node reaches: a row of the gating matrix, drawn where its nodes are, before training and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.residual import Residual
from stmlang.nn import ScanLayer


@dataclass(frozen=True, eq=False)
class Field:
    """`before[row, col, head]`, `after[row, col, head]`: the factor with which what the node `source` writes arrives at each
    node, in one layer of one network on one image, as it starts and once it is trained."""

    layer: str
    source: tuple[int, int]
    before: Float[np.ndarray, "rows cols head"]
    after: Float[np.ndarray, "rows cols head"]


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of the first pair of layers on an image."""

    pixels: Float[np.ndarray, "8 8 1"]
    label: int
    layers: Sequence[Field]


def compared(before: ImageModel, after: ImageModel, pixels: Float[np.ndarray, "8 8 1"], label: int) -> Fields:
    """The fields of a network before and after training, on the same image and of the same node."""
    source, start = _reach(before, pixels)
    _, end = _reach(after, pixels)
    names = ("P layer", "D layer")
    layers = [Field(name, source, untrained, other) for name, untrained, other in zip(names, start, end, strict=True)]
    return Fields(pixels, label, layers)


def _reach(
    model: ImageModel, pixels: Float[np.ndarray, "8 8 1"]
) -> tuple[tuple[int, int], list[Float[np.ndarray, "rows cols head"]]]:
    """The node in the middle of the grid, and what it reaches in the first pair's P and D layer."""
    x = model.tokens(jnp.asarray(pixels))
    source = (x.shape[0] // 2, x.shape[1] // 2)
    p, perceptron, d, _ = model.turn(0)
    return source, [_row(p, x, source), _row(d, perceptron(p(x)), source)]


def _row(around: Residual, x: Float[Array, "rows cols dim"], source: tuple[int, int]) -> Float[np.ndarray, "..."]:
    def row(x: Float[Array, "rows cols dim"]) -> Float[Array, "rows cols head"]:
        layer, features = cast(ScanLayer, around.layer), x if around.norm is None else around.norm(x)
        return layer.op.gating_matrix(layer.gates(features))[source]

    return np.asarray(jax.jit(row)(x), np.float32)
