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
from stmlang.models.vision.convolution import Convolution
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


def test_depthwise_convolution_is_its_equation() -> None:
    layer, x = Convolution(2, 2, 3, groups=2, key=KEY), np.asarray(jax.random.normal(jax.random.key(1), (4, 5, 2)))
    padded, weight = np.pad(x, ((1, 1), (1, 1), (0, 0))), np.asarray(layer.weight)[:, :, 0]
    y = sum(padded[i : i + 4, j : j + 5] * weight[i, j] for i in range(3) for j in range(3))
    np.testing.assert_allclose(layer(jnp.asarray(x)), y, atol=1e-5)


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
