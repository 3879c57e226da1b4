"""The image classifier and its parts."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.patches import patches, pool
from stmlang.models.vision.plstm import plstm


@eqx.filter_jit
def logits(net: ImageModel, picture: jax.Array) -> jax.Array:
    return net(picture)


@eqx.filter_jit
def pair_by_pair(net: ImageModel, picture: jax.Array) -> jax.Array:
    x = net.tokens(picture)
    for number in range(2):
        for layer in net.turn(number):
            x = layer(x)
    return net.head(pool(net.norm(x), net.pooling))


def model(pairs: int = 2, pooling: str = "corners", position: bool = True) -> ImageModel:
    sizes = {"rows": 3, "cols": 2, "heads": 2, "key": 4, "value": 4}
    p, d = (stmlang.compile(f"std:plstm/image_{mode}", **sizes) for mode in "pd")
    return plstm(
        p, d, classes=5, channels=2, patch=2, dim=8, pairs=pairs, pooling=pooling, position=position, key=jax.random.key(0)
    )


def image(seed: int = 1, batch: tuple[int, ...] = ()) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (*batch, 6, 4, 2))


@pytest.mark.parametrize(("pooling", "position"), [("corners", True), ("mean", False)])
def test_pairs_run_one_after_the_other(pooling: str, position: bool) -> None:
    net = model(pooling=pooling, position=position)
    np.testing.assert_allclose(logits(net, image()), pair_by_pair(net, image()), atol=1e-5)


def test_pairs_start_differently_and_share_the_scans() -> None:
    net = model()
    first, second = net.turn(0)[0].layer, net.turn(1)[0].layer
    assert not np.allclose(first.query.weight, second.query.weight)
    assert first.op.compilation is second.op.compilation


def test_deeper_models_are_no_larger_programs() -> None:
    def operations(pairs: int) -> int:
        net = model(pairs)
        text = eqx.filter_jit(lambda net, image: net(image)).lower(net, image()).as_text()
        return text.count(" = ")

    assert operations(6) < 1.2 * operations(2)


def test_gradient_reaches_every_parameter_of_every_pair() -> None:
    net = model()

    def loss(net: ImageModel) -> jax.Array:
        return jnp.sum(jax.vmap(net)(image(batch=(3,))) ** 2)

    for path, gradient in jax.tree_util.tree_leaves_with_path(eqx.filter_jit(eqx.filter_grad(loss))(net)):
        assert np.isfinite(gradient).all(), path
        parts = gradient if any(getattr(part, "name", "") == "stacked" for part in path) else gradient[None]
        assert all(np.abs(part).max() > 0 for part in parts), path


def test_bfloat16_images_give_float32_logits() -> None:
    net = model()
    found = logits(net, image().astype(jnp.bfloat16))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, logits(net, image()), atol=0.1)


def test_patches_tile_an_image() -> None:
    picture = jnp.arange(6 * 4 * 2.0).reshape(6, 4, 2)
    cut = patches(picture, 2, 2)
    assert cut.shape == (3, 2, 8)
    np.testing.assert_array_equal(cut[1, 1].reshape(2, 2, 2), picture[2:4, 2:4])


def test_overlapping_patches_reach_over_the_border() -> None:
    picture = jnp.ones((4, 4, 1))
    cut = patches(picture, 4, 2).reshape(2, 2, 4, 4)
    np.testing.assert_array_equal(cut[0, 0], np.pad(np.ones((3, 3)), ((1, 0), (1, 0))))


@pytest.mark.parametrize(
    ("size", "stride", "said"), [(1, 2, "cannot be centred"), (3, 2, "cannot be centred"), (4, 3, "6x4 does not divide")]
)
def test_patches_that_do_not_fit(size: int, stride: int, said: str) -> None:
    with pytest.raises(stmlang.SpecError, match=said):
        patches(jnp.zeros((6, 4, 1)), size, stride)
