"""What is trained: pLSTM in both modes and its ablations, and a ViT of the same width and depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.experiments.arrow.data import channels
from stmlang.experiments.arrow.settings import Model, Settings
from stmlang.models.parts import Linear, Perceptron
from stmlang.models.vision.patches import patches, pool
from stmlang.models.vision.position import resized
from stmlang.models.vision.vit import Attention
from stmlang.nn import RMSNorm, ScanLayer
from stmlang.runtime.compile import compile
from stmlang.runtime.open import OpenScan

Mode = Literal["P", "D"]
CLASSES = 2
D_CONSTANT = """
topology image = grid(rows, cols)
scan plstm_d_constant on image {
    directions all
    source[out] = sigmoid(param(-4))
    mark[in] = sigmoid(param(-4))
    direct = sigmoid(param(-6))
    transition[out, in] = tanh(5 * param(1))
    transition[out = cols, in = rows] = 0
    stabilize D
}
"""
"""`std:plstm/image_d` with gates that no token has a say in."""
SPECS: dict[tuple[Mode, bool], str] = {
    ("P", False): "std:plstm/image_p",
    ("D", False): "std:plstm/image_d",
    ("P", True): "std:plstm/image_constant",
    ("D", True): D_CONSTANT,
}
OPEN: Mapping[str, float] = {"strength": 0.0, "source": 0.0, "mark": 0.0, "direct": -2.0}
"""Where the biases of gates start that the paper has at -4, -4, -4 and -6, by leaf."""


@dataclass(frozen=True)
class Variant:
    """A pLSTM: the modes of its layers by turns, whether it has a table of positions, whether gates read tokens, and whether
    they start half open or nearly closed, as in the paper."""

    modes: tuple[Mode, ...] = ("P", "D")
    position: bool = True
    constant: bool = False
    open: bool = True


VARIANTS: dict[Model, Variant] = {
    "plstm": Variant(),
    "paper_start": Variant(open=False),
    "no_position": Variant(position=False),
    "p_mode": Variant(modes=("P",)),
    "d_mode": Variant(modes=("D",)),
    "constant": Variant(constant=True),
}


class Block(eqx.Module):
    """`x + mixer(norm(x))`, then `x + perceptron(norm(x))`."""

    norms: tuple[RMSNorm, RMSNorm]
    mixer: Callable[[Array], Array]
    perceptron: Perceptron

    def __call__(self, x: Float[Array, "*tokens dim"]) -> Float[Array, "*tokens dim"]:
        x = x + self.mixer(self.norms[0](x))
        return x + self.perceptron(self.norms[1](x))


class Network(eqx.Module):
    """Patches, a table of positions, a cycle of blocks several times, a norm, a head. The table is resized to the grid of an
    image (bicubic). With a `token` tokens are a row that it stands before, and the head reads it; else the four corners.

    Parameters of all turns of the cycle are stacked, and the turns run in a `lax.scan`.
    """

    embed: Linear
    position: Float[Array, "rows cols dim"] | None
    token: Float[Array, "1 dim"] | None
    stacked: Any
    shared: Any
    norm: RMSNorm
    head: Linear
    patch: int = eqx.field(static=True)

    def __call__(self, image: Float[Array, "height width channel"]) -> Float[Array, " classes"]:
        x = self.embed(patches(image, self.patch, self.patch))
        rows, cols, dim = x.shape
        if self.position is not None:
            x = x + resized(self.position, (rows, cols))
        if self.token is not None:
            x = jnp.concatenate([self.token, x.reshape(rows * cols, dim)])

        def turn(x: Array, learned: Any) -> tuple[Array, None]:
            for block in eqx.combine(learned, self.shared):
                x = block(x)
            return x, None

        x = self.norm(jax.lax.scan(turn, x, self.stacked)[0])
        return self.head(pool(x, "corners" if self.token is None else "class"))


def made(model: Model, settings: Settings, key: PRNGKeyArray) -> Network:
    """A model as it starts, for tokens or images of any size."""
    mixing, embedding = jax.random.split(key)
    dim, position = settings.dim, True
    if model == "vit":
        makers: list[Callable[[Array], Any]] = [lambda key: Attention(dim, heads=settings.heads, key=key)]
    else:
        variant = VARIANTS[model]
        position = variant.position
        scans = {mode: _scan(SPECS[mode, variant.constant], settings) for mode in variant.modes}
        makers = [lambda key, op=scans[mode]: _layer(op, dim, variant, key) for mode in variant.modes]
    turns = settings.depth // len(makers)
    cycles = [_cycle(makers, settings, turn) for turn in jax.random.split(mixing, turns)]
    learned: list[Any] = [eqx.filter(cycle, eqx.is_inexact_array) for cycle in cycles]
    embed, place, token, head = jax.random.split(embedding, 4)
    patch, vit = 1 if settings.cell else settings.patch, model == "vit"
    return Network(
        embed=Linear(patch * patch * channels(settings), dim, gain=1.0, key=embed),
        position=0.02 * jax.random.normal(place, (*settings.grid, dim)) if position else None,
        token=0.02 * jax.random.normal(token, (1, dim)) if vit else None,
        stacked=jax.tree.map(lambda *arrays: jnp.stack(arrays), *learned),
        shared=eqx.filter(cycles[0], eqx.is_inexact_array, inverse=True),
        norm=RMSNorm((dim,)),
        head=Linear(dim if vit else 4 * dim, CLASSES, gain=1.0, key=head),
        patch=patch,
    )


def scans(network: Network) -> list[OpenScan]:
    """The scans of a model, in the order of its layers."""
    return [cast(OpenScan, block.mixer.op) for block in network.shared if isinstance(block.mixer, ScanLayer)]


def _scan(spec: str, settings: Settings) -> OpenScan:
    width = settings.dim // settings.heads
    return cast(OpenScan, compile(spec, batch=settings.training.batch, heads=settings.heads, key=width, value=width))


def _layer(op: OpenScan, dim: int, variant: Variant, key: PRNGKeyArray) -> ScanLayer:
    """A layer whose gates start at their biases, as in the paper's experiments on arrows."""
    layer = ScanLayer(op, dim, key=key)
    started = {
        group: {name: _started(name, array, variant) for name, array in getattr(layer.leaves, group).items()}
        for group in ("bias", "constant")
    }
    weight = {name: jnp.zeros_like(array) for name, array in layer.leaves.weight.items()}
    return eqx.tree_at(_parameters_of_gates, layer, (started["bias"], started["constant"], weight))


def _parameters_of_gates(layer: ScanLayer) -> tuple[Any, Any, Any]:
    return layer.leaves.bias, layer.leaves.constant, layer.leaves.weight


def _started(name: str, array: Array, variant: Variant) -> Array:
    return jnp.full_like(array, OPEN[name]) if variant.open and name in OPEN else array


def _cycle(makers: Sequence[Callable[[Array], Any]], settings: Settings, key: PRNGKeyArray) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for make, own in zip(makers, jax.random.split(key, len(makers)), strict=True):
        mixer, perceptron = jax.random.split(own)
        dim = settings.dim
        behind = Perceptron(dim, settings.expansion * dim, key=perceptron)
        blocks.append(Block((RMSNorm((dim,)), RMSNorm((dim,))), make(mixer), behind))
    return tuple(blocks)
