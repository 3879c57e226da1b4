"""The models: one residual network around each of several transitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

import stmlang
from stmlang.experiments.statetracking.groups import Form
from stmlang.experiments.statetracking.settings import Model, Run, form
from stmlang.models.blocks import GLA, DeltaNet
from stmlang.models.sequence import LanguageModel
from stmlang.nn import RMSNorm, ScanLayer

TRACKS = 3

TURN = """
    # Two reflections are a rotation, and every rotation of three dimensions is two reflections. S3 turns a triangle in space,
    # A5 an icosahedron. Nothing is lost on the way: a reflection keeps every length.
    first[track]  = l2norm(linear(x))
    second[track] = l2norm(linear(x))

    before[track, track'] = eye[track, track'] - 2 * first[track] * first[track']
    after[track, track']  = eye[track, track'] - 2 * second[track] * second[track']
    turn[track, track']   = sum(after[track, track''] * before[track'', track'], over = track'')

    # Sources may be exactly zero: what every node of a long word adds to the state, however little, would drown its start.
    # What is read has been turned by the node that reads.
    look[track] = tanh(linear(x))
"""
ROTATION = f"""
# pLSTM with state tracking on sequences, its transition the product of two Householder matrices.
scan rotation(heads = 4, key = 8, value = 8, track = 3, writes = 1) on chain(time) {{
    source[track, write] = relu(linear(x, bias = 0.1))
    direct[write]        = sigmoid(linear(x, bias = -6))
{TURN}
    transition[track, track'] = turn[track, track']
    mark[track]               = sum(look[track'] * turn[track', track], over = track')

    stabilize P
}}
"""
GRID_ROTATION = f"""
# The same on grids, in distribution mode: one path between two nodes, first along `cols`, then along `rows`.
topology image = grid(rows, cols)

scan rotation(heads = 4, key = 8, value = 8, track = 3, writes = 1) on image {{
    source[out, track, write] = relu(linear(x, bias = 0.1))
    direct[write]             = sigmoid(linear(x, bias = -6))
{TURN}
    transition[out, in, track, track']               = turn[track, track']
    transition[out = cols, in = rows, track, track'] = 0
    mark[in, track]                                  = sum(look[track'] * turn[track', track], over = track')

    stabilize D
}}
"""
PRODUCT = """
# DeltaProduct with two steps a token (Siems et al., 2025), without a decay.
scan deltaproduct(heads = 4, key = 8, value = 8, steps = 2) on chain(time) {
    k          = l2norm(k)
    beta[step] = 2 * sigmoid(linear(x))

    source[step]                = beta
    transition[step, key, key'] = eye[key, key'] - beta * k[step, key] * k[step, key']
    read after
}
"""

TRANSITIONS: dict[Model, str] = {
    "gla": "diagonal, between 0 and 1",
    "gated_deltanet": "one vector erased in part, and a decay",
    "deltaproduct": "two vectors erased or reflected",
    "plstm": "one number between -1 and 1",
    "reflection": "one vector erased or reflected, and a number between -1 and 1",
    "rotation": "two vectors reflected",
}
SPECS: dict[tuple[Model, Form], str] = {
    ("gla", "chain"): "std:chain/gla",
    ("gated_deltanet", "chain"): "std:chain/gated_deltanet",
    ("deltaproduct", "chain"): PRODUCT,
    ("plstm", "chain"): "std:plstm/chain",
    ("reflection", "chain"): "std:plstm/chain_tracking",
    ("rotation", "chain"): ROTATION,
    ("plstm", "grid"): "std:plstm/image_d",
    ("rotation", "grid"): GRID_ROTATION,
}


class Joint(eqx.Module):
    """What all heads read, divided by its root mean square over heads and values together. Each head by itself would keep no
    more than the sign where it reads one number."""

    norm: RMSNorm

    def __init__(self, heads: int, width: int) -> None:
        self.norm = RMSNorm((heads * width,), dtype=jnp.float32)

    def __call__(self, h: Float[Array, "*nodes head value"]) -> Float[Array, "*nodes head value"]:
        return self.norm(h.reshape(*h.shape[:-2], -1)).reshape(h.shape)


def scan(model: Model, on: Form, heads: int, width: int, writes: int = 1) -> Any:
    """The scan of a model, on chains or grids of any size; a node of `rotation` has so many `writes`. With one a head reads one
    number, a coordinate of a turned vector; with three it reads a row of the rotation itself."""
    sizes: dict[str, Any] = {"heads": heads, "key": width, "value": width}
    if model == "reflection":
        sizes |= {"track": TRACKS, "writes": 1, "reads": 1}  # one of each, as the others have
    if model == "rotation":
        sizes |= {"track": TRACKS, "writes": writes}
    return stmlang.compile(SPECS[model, on], **sizes)


def made(run: Run, order: int) -> LanguageModel:
    """A new network for words in a group of `order` elements: logits of the product at each node."""
    op = scan(run.model, form(run.problem), run.heads, run.width, run.writes)
    mixers: dict[Model, Callable[[Any], Any]] = {
        "gla": lambda key: GLA(op, run.dim, key=key),
        "gated_deltanet": lambda key: DeltaNet(op, run.dim, key=key),
    }
    mixer = mixers.get(run.model, lambda key: ScanLayer(op, run.dim, norm=Joint(run.heads, run.width), key=key))
    key = jax.random.key(run.training.seed)
    return LanguageModel(mixer, vocabulary=order + 1, dim=run.dim, depth=run.depth, hidden=2 * run.dim, tied=False, key=key)
