"""Layers made of layers: turned around, transposed, summed, and chains on grids. One after the other is `eqx.nn.Sequential`.

Each takes and gives arrays `(*nodes, features)`, and holds the layers that it is made of, whose parameters are its own.

    ViL         eqx.nn.Sequential([Raster(mlstm), Raster(Reversed(another_mlstm))])
    Vim         Summed([selective, Reversed(another_selective)])
    Mamba-ND    eqx.nn.Sequential([Raster(mamba), Raster(Reversed(...)), Transposed(Raster(...)), ...])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from stmlang.runtime.modules import equal, hash_of

Layer = Callable[[Array], Array]


class Reversed(eqx.Module):
    """A layer on nodes in the opposite order along some axes; its result is turned back."""

    layer: Layer
    axes: tuple[int, ...] = eqx.field(static=True)

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, layer: Layer, axes: Sequence[int] = (0,)) -> None:
        self.layer, self.axes = layer, tuple(axes)

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes out"]:
        del key
        return jnp.flip(self.layer(jnp.flip(x, self.axes)), self.axes)


class Transposed(eqx.Module):
    """A layer on a grid whose rows are its columns; its result is transposed back."""

    layer: Layer

    __hash__ = hash_of
    __eq__ = equal

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols out"]:
        del key
        return jnp.swapaxes(self.layer(jnp.swapaxes(x, 0, 1)), 0, 1)


class Summed(eqx.Module):
    """The sum of what several layers give of the same nodes, each with parameters of its own."""

    layers: tuple[Layer, ...]

    __hash__ = hash_of
    __eq__ = equal

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)

    def __call__(self, x: Float[Array, "*nodes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*nodes out"]:
        del key
        first, *others = (layer(x) for layer in self.layers)
        return sum(others, first)


class Raster(eqx.Module):
    """A layer of a chain on a grid, whose nodes it takes row by row as one chain."""

    layer: Layer

    __hash__ = hash_of
    __eq__ = equal

    def __call__(self, x: Float[Array, "*axes dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "*axes out"]:
        del key
        y = self.layer(x.reshape(prod(x.shape[:-1]), x.shape[-1]))
        return y.reshape(*x.shape[:-1], y.shape[-1])


class EachRow(eqx.Module):
    """A layer of a chain on every row of a grid by itself."""

    layer: Layer

    __hash__ = hash_of
    __eq__ = equal

    def __call__(self, x: Float[Array, "rows cols dim"], *, key: PRNGKeyArray | None = None) -> Float[Array, "rows cols out"]:
        del key
        return jax.vmap(self.layer)(x)
