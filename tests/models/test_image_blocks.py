"""Blocks of images, and layers made of layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models.blocks import (
    V2M,
    EachRow,
    Mamba,
    Mamba2D,
    Raster,
    Reversed,
    Summed,
    Transposed,
    TwoDMamba,
    ViL,
    Vim,
)
from tests.models.test_blocks import moved

DIM = 6
ROWS, COLS = 2, 3
STATES = {"key": 2, "value": 8}


def _vim(key: jax.Array) -> Any:
    return Raster(Vim(stmlang.compile("std:chain/mamba", **STATES), DIM, key=key))


def _vil(key: jax.Array) -> Any:
    return ViL(stmlang.compile("std:chain/vil", heads=2, key=4, value=4), DIM, key=key)


def _v2m(key: jax.Array) -> Any:
    return V2M(stmlang.compile("std:chain/v2m:v2m_rows", **STATES), stmlang.compile("std:chain/v2m", **STATES), DIM, key=key)


def _two_d_mamba(key: jax.Array) -> Any:
    return TwoDMamba(stmlang.compile("std:grid/2dmamba", **STATES), DIM, key=key)


def _mamba2d(key: jax.Array) -> Any:
    return Mamba2D(stmlang.compile("std:grid/mamba2d", **STATES), DIM, key=key)


BLOCKS: dict[str, Callable[[jax.Array], Any]] = {
    "vim": _vim,
    "vil": _vil,
    "v2m": _v2m,
    "two_d_mamba": _two_d_mamba,
    "mamba2d": _mamba2d,
}
each = pytest.mark.parametrize("name", BLOCKS)


@cache
def made(name: str) -> Any:
    return moved(BLOCKS[name](jax.random.key(0)))


def image(seed: int = 1, batch: tuple[int, ...] = ()) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal((*batch, ROWS, COLS, DIM)), jnp.float32)


@eqx.filter_jit
def call(block: Any, x: jax.Array) -> jax.Array:
    return block(x)


@each
def test_gradient_reaches_every_parameter_under_vmap(name: str) -> None:
    block, x = made(name), image(batch=(2,))

    def loss(block: Any) -> tuple[jax.Array, jax.Array]:
        y = jax.vmap(block)(x)
        return jnp.sum(y**2), y

    gradients, y = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))(block)
    np.testing.assert_allclose(y[1], call(block, x[1]), atol=1e-5)
    for path, gradient in jax.tree_util.tree_leaves_with_path(gradients):
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 0, path


REACHED = {"vim": 6, "vil": 6, "v2m": 6, "two_d_mamba": 5, "mamba2d": 4}
"""How many of six pixels see a change of the second: all where there are several directions, else those to the right and below;
the convolution of 2DMamba runs on into the next row."""


@each
def test_who_sees_a_pixel(name: str) -> None:
    block, x = made(name), image()
    change = jnp.abs(call(block, x.at[0, 1].add(1.0)) - call(block, x)).max(-1)
    assert int((change > 1e-6).sum()) == REACHED[name]


@each
def test_strict_ranks_and_types(name: str) -> None:
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert eqx.filter_eval_shape(made(name), image()).shape == (ROWS, COLS, DIM)


def test_vil_runs_forward_then_backward() -> None:
    block, x = made("vil"), image()
    line = x.reshape(ROWS * COLS, DIM)
    line = line + block.forward.layer(block.norms[0](line))
    line = line + block.backward.layer.layer(block.norms[1](line)[::-1])[::-1]
    np.testing.assert_allclose(call(block, x).reshape(line.shape), line, atol=1e-5)


def test_v2m_takes_rows_as_it_takes_columns() -> None:
    block, x = made("v2m"), image()
    np.testing.assert_allclose(jnp.swapaxes(call(block, jnp.swapaxes(x, 0, 1)), 0, 1), call(block, x), atol=1e-5)


def test_scans_of_grids_are_asked_for() -> None:
    with pytest.raises(stmlang.SpecError, match="a grid of 2 axes; scan `mamba`"):
        TwoDMamba(stmlang.compile("std:chain/mamba", **STATES), DIM, key=jax.random.key(0))


# --- layers made of layers


def running(x: jax.Array) -> jax.Array:
    """A layer of a chain whose result shows the order: the sum over all nodes so far."""
    return jnp.cumsum(x, axis=0)


X = np.arange(24.0).reshape(2, 3, 4)


def test_reversed_layers_run_from_the_other_end() -> None:
    np.testing.assert_array_equal(Reversed(running)(X[0]), X[0][::-1].cumsum(0)[::-1])
    np.testing.assert_array_equal(Reversed(EachRow(running), axes=(1,))(X), X[:, ::-1].cumsum(1)[:, ::-1])


def test_transposed_layers_have_columns_for_rows() -> None:
    np.testing.assert_array_equal(Transposed(EachRow(running))(X), X.cumsum(0))
    np.testing.assert_array_equal(EachRow(running)(X), X.cumsum(1))


def test_a_raster_is_one_chain() -> None:
    np.testing.assert_array_equal(Raster(running)(X), X.reshape(6, 4).cumsum(0).reshape(2, 3, 4))
    turned = Raster(Reversed(running))(X)
    np.testing.assert_array_equal(turned, X.reshape(6, 4)[::-1].cumsum(0)[::-1].reshape(2, 3, 4))


def test_sums_stacks_and_modules_within() -> None:
    op = stmlang.compile("std:chain/mamba", **STATES)
    first, second = (Mamba(op, DIM, key=jax.random.key(seed)) for seed in range(2))
    both, x = Summed([first, Reversed(second)]), image()[0]
    np.testing.assert_allclose(both(x), first(x) + second(x[::-1])[::-1], atol=1e-6)
    stacked = eqx.nn.Sequential([Raster(both), Transposed(Raster(first))])
    y = Raster(both)(image())
    expected = jnp.swapaxes(first(jnp.swapaxes(y, 0, 1).reshape(6, DIM)).reshape(COLS, ROWS, DIM), 0, 1)
    np.testing.assert_allclose(stacked(image()), expected, atol=1e-6)
    assert jax.tree.leaves(eqx.filter_grad(lambda both: jnp.sum(both(x)))(both))
