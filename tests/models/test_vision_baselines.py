"""The other models of images: their sizes, and that each one runs and learns in every part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models import vision
from stmlang.models.counting import multiply_adds, parameters
from stmlang.models.vision.convolution import (
    Convolution,
    _convolved,  # pyright: ignore[reportPrivateUsage]
)
from stmlang.models.vision.vit import Attention

KEY = jax.random.key(0)
IMAGENET = jax.ShapeDtypeStruct((224, 224, 3), "float32")
TINY = {"classes": 3, "channels": 1, "patch": 8, "key": KEY}
SMALL: dict[str, Callable[[], Any]] = {
    "vit": partial(vision.vit, 16, heads=2, depth=2, size=(24, 16), layer_scale=0.5, **TINY),
    "convnext": partial(vision.convnext, 16, depth=2, **TINY),
    "vil": partial(vision.vil, 16, depth=2, heads=2, size=(24, 16), **TINY),
    "vim": partial(vision.vim, 16, depth=2, size=(24, 16), **TINY),
    "mamba_nd": partial(vision.mamba_nd, 16, depth=4, size=(24, 16), **TINY),
    "v2m": partial(vision.v2m, 16, depth=2, size=(24, 16), **TINY),
    "two_d_mamba": partial(vision.two_d_mamba, 16, depth=2, size=(24, 16), **TINY),
    "mamba2d": partial(vision.mamba2d, 16, depth=2, size=(24, 16), **TINY),
}
SIZES: dict[str, tuple[Callable[..., Any], int, float]] = {
    "ViT-T": (vision.vit_t, 6, 1.3),
    "ViT-S": (vision.vit_s, 22, 4.6),
    "ViT-B": (vision.vit_b, 87, 17.6),
    "EfficientNet-B0": (vision.EfficientNet, 5, 0.39),
    "ConvNeXt-S": (vision.convnext_s, 22, 4.3),
    "ConvNeXt-B": (vision.convnext_b, 87, 16.9),
    "Vim-T": (vision.vim_t, 7, 1.5),
    "Vim-S": (vision.vim_s, 26, 5.3),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_papers(name: str) -> None:
    """To the digits that it prints, multiply-adds within 4 %: DeiT-T's 1.254 is printed as 1.3."""
    make, millions, billions = SIZES[name]
    model = eqx.nn.inference_mode(eqx.filter_eval_shape(partial(make, key=KEY)))
    assert round(parameters(model) / 1e6) == millions
    assert multiply_adds(model, IMAGENET) / 1e9 == pytest.approx(billions, rel=0.04)


@pytest.mark.parametrize(("name", "millions"), [("vil_t", 6), ("vil_s", 23), ("vil_b", 89)])
def test_parameters_of_vision_lstm_are_the_papers(name: str, millions: int) -> None:
    assert round(parameters(eqx.filter_eval_shape(partial(getattr(vision, name), key=KEY))) / 1e6) == millions


@pytest.mark.parametrize("name", SMALL)
def test_gradient_reaches_every_parameter(name: str) -> None:
    model = SMALL[name]()
    image = jax.random.normal(jax.random.key(1), (24, 16, 1))

    def loss(model: Any) -> jax.Array:
        logits = model(image)
        assert logits.shape == (3,)
        return jnp.sum(logits**2)

    for path, slope in jax.tree_util.tree_leaves_with_path(eqx.filter_jit(eqx.filter_grad(loss))(model)):
        assert np.isfinite(slope).all(), path
        assert np.abs(slope).max() > 0, path


def test_attention_is_its_equation() -> None:
    layer, x = Attention(6, heads=2, key=KEY), np.asarray(jax.random.normal(jax.random.key(1), (5, 6)))
    q, k, v = np.split(x @ np.asarray(layer.into.weight).T, 3, axis=1)
    y = np.zeros((5, 6))
    for head in (slice(3), slice(3, 6)):
        score = np.exp(q[:, head] @ k[:, head].T / 3**0.5)
        y[:, head] = score / score.sum(1, keepdims=True) @ v[:, head]
    np.testing.assert_allclose(layer(x), y @ np.asarray(layer.out.weight).T, atol=1e-5)
    with pytest.raises(stmlang.SpecError, match="6 features cannot be divided among 4 heads"):
        Attention(6, heads=4, key=KEY)


@pytest.mark.parametrize(("rows", "cols", "side"), [(4, 5, 3), (1, 1, 7), (1, 2, 7), (7, 3, 7), (3, 13, 5), (2, 3, 4)])
def test_depthwise_convolution_is_its_equation(rows: int, cols: int, side: int) -> None:
    """Value and gradient, also of the way that platforms other than CPUs take."""
    layer = Convolution(2, 2, side, groups=2, key=KEY)
    x, slope = (np.asarray(jax.random.normal(jax.random.key(seed), (rows, cols, 2)), np.float64) for seed in (1, 2))
    before = (side - 1) // 2
    around = ((before, side - 1 - before), (before, side - 1 - before), (0, 0))
    padded, weight = np.pad(x, around), np.asarray(layer.weight, np.float64)[:, :, 0]
    y, of_weight, of_padded = np.zeros_like(x), np.zeros_like(weight), np.zeros_like(padded)
    for i, j in np.ndindex(side, side):
        seen = (slice(i, i + rows), slice(j, j + cols))
        y += padded[seen] * weight[i, j]
        of_weight[i, j] = (padded[seen] * slope).sum(axis=(0, 1))
        of_padded[seen] += slope * weight[i, j]
    of_x = of_padded[before : before + rows, before : before + cols]
    elsewhere = partial(_convolved, stride=1, groups=2)
    for call in (lambda x, w: eqx.tree_at(lambda layer: layer.weight, layer, w)(x), elsewhere):
        value, back = jax.vjp(call, jnp.asarray(x, jnp.float32), layer.weight)
        np.testing.assert_allclose(value, y, atol=1e-5)
        np.testing.assert_allclose(back(jnp.asarray(slope, jnp.float32))[0], of_x, atol=1e-5)
        np.testing.assert_allclose(back(jnp.asarray(slope, jnp.float32))[1][:, :, 0], of_weight, atol=2e-5)


def test_efficientnet_needs_a_key_in_training_only() -> None:
    model = vision.EfficientNet(classes=3, drop_path=0.1, key=KEY)
    image = jax.ShapeDtypeStruct((32, 48, 3), "float32")
    assert eqx.filter_eval_shape(lambda model, x: model(x, key=KEY), model, image).shape == (3,)
    assert eqx.filter_eval_shape(lambda model, x: model(x), eqx.nn.inference_mode(model), image).shape == (3,)
    with pytest.raises(stmlang.SpecError, match="`key` is missing"):
        eqx.filter_eval_shape(lambda model, x: model(x), model, image)


def test_depth_that_does_not_divide() -> None:
    with pytest.raises(stmlang.SpecError, match="`depth` must be a multiple of 4, not 6"):
        vision.mamba_nd(16, depth=6, **TINY)
