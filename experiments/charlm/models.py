"""The models: one residual network around each of several mixers, all as large as the transformer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

import stmlang
from stmlang.experiments.charlm.settings import Model, Sizes
from stmlang.models.blocks import GLA, MLSTM, DeltaNet, Mamba2
from stmlang.models.counting import parameters
from stmlang.models.sequence import Attention, LanguageModel
from stmlang.nn import ScanLayer

MakeMixer = Callable[[Any], Any]
EXPANSION = 4
"""Features between the maps of the transformer's perceptrons, in multiples of those of a character."""
SPECS: dict[Model, str] = {
    "gla": "std:chain/gla",
    "mlstm": "std:chain/mlstm",
    "mamba2": "std:chain/mamba2",
    "deltanet": "std:chain/deltanet",
    "plstm": "std:plstm/chain",
}


def mixer(model: Model, sizes: Sizes, room: int) -> MakeMixer:
    """What makes a model's mixer, as wide as its paper has it; attention keeps keys and values of `room` characters."""
    dim, heads, width = sizes.dim, sizes.heads, sizes.dim // sizes.heads
    match model:
        case "transformer":
            return lambda key: Attention(dim, heads=heads, context=room, key=key)
        case "gla":
            op = _scan(model, heads, width // 2, width)
            return lambda key: GLA(op, dim, key=key)
        case "mlstm":
            op = _scan(model, heads, 2 * width, 2 * width)
            return lambda key: MLSTM(op, dim, key=key)
        case "mamba2":
            op = _scan(model, heads, sizes.states, 2 * width)
            return lambda key: Mamba2(op, dim, key=key)
        case "deltanet":
            op = _scan(model, heads, width, width)
            return lambda key: DeltaNet(op, dim, key=key)
        case "plstm":
            op = _scan(model, heads, width, width)
            return lambda key: ScanLayer(op, dim, key=key)


def made(model: Model, sizes: Sizes, vocabulary: int, seed: int, room: int) -> LanguageModel:
    """A new model. Its perceptrons are as wide as bring it next to the parameters of the transformer."""
    make, hidden = mixer(model, sizes, room), EXPANSION * sizes.dim
    if model != "transformer":
        hidden = _hidden(parameters_of(mixer("transformer", sizes, room)) - parameters_of(make), sizes.dim)
    return LanguageModel(make, vocabulary=vocabulary, dim=sizes.dim, depth=sizes.depth, hidden=hidden, key=jax.random.key(seed))


def parameters_of(make: MakeMixer) -> int:
    """How many numbers a mixer learns."""
    return parameters(eqx.filter_eval_shape(make, jax.random.key(0)))


def state_numbers(model: LanguageModel) -> int:
    """How many numbers a model keeps between two steps."""
    return parameters(eqx.filter_eval_shape(model.init_state))


def _hidden(more: int, dim: int) -> int:
    """Features of a perceptron that has so many parameters more than the transformer's, a feature being a row, a column and a
    bias; at least one."""
    return max(1, EXPANSION * dim + round(more / (2 * dim + 1)))


def _scan(model: Model, heads: int, key: int, value: int) -> Any:
    return stmlang.compile(SPECS[model], heads=heads, key=key, value=value)
