"""What one node reaches: a row of the gating matrix, drawn where its nodes are."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import stmlang
from stmlang.experiments.digits.settings import D_SPEC, P_SPEC, Settings
from stmlang.models.vision.plstm import PLSTM
from stmlang.nn import ScanLayer

START_SIDE, START_HEADS = 14, 4
"""Side of the grid on which the specs are shown as they start, before any training, and how many heads."""


@dataclass(frozen=True, eq=False)
class Field:
    """`reach[row, col, head]`: the factor with which what the source node writes arrives at each node."""

    title: str
    source: tuple[int, int]
    reach: Float[np.ndarray, "rows cols head"]


def trained(model: PLSTM, image: Float[np.ndarray, "8 8 1"]) -> list[Field]:
    """The fields of the first pair's P and D layer on one image."""
    x = model.tokens(jnp.asarray(image))
    p, d = model.pair(0)
    fields = [_field("P layer, trained", p.scan, p.before_scan(x))]
    x = p(x)
    return [*fields, _field("D layer, trained", d.scan, d.before_scan(x))]


def at_the_start(settings: Settings) -> list[Field]:
    """The fields of both specs on a larger grid with more heads, at the initial biases, without features."""
    fields: list[Field] = []
    for name, spec in (("P", P_SPEC), ("D", D_SPEC)):
        op = stmlang.compile(spec, rows=START_SIDE, cols=START_SIDE, heads=START_HEADS)
        layer = ScanLayer(op, settings.dim, key=jax.random.key(settings.seed))
        silence = jnp.zeros((START_SIDE, START_SIDE, settings.dim))
        fields.append(_field(f"{name} layer, before training", layer, silence))
    return fields


def _field(title: str, layer: ScanLayer, features: Float[Array, "rows cols dim"]) -> Field:
    rows, cols = features.shape[:2]
    source = (rows // 2, cols // 2)
    gating = layer.op.gating_matrix(layer.gates(features))
    return Field(title, source, np.asarray(gating[source], np.float32))
