"""pLSTM-Vis: its sizes, its switches, images of any size, and its layer beside the authors'."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models import vision
from stmlang.models.counting import multiply_adds, padded_attention, parameters
from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.position import resized
from stmlang.models.vision.residual import Path, Residual
from stmlang.models.vision.scanned import ImageScan
from tests.helpers.data import data_folder

KEY = jax.random.key(0)
KINDS = ("weight", "bias")
IMAGENET = jax.ShapeDtypeStruct((224, 224, 3), "float32")


def tiny(**options: Any) -> ImageModel:
    sizes = {"heads": 2, "depth": 2, "classes": 3, "channels": 1, "patch": 2, "size": (6, 4), "expansion": 2, "key": KEY}
    return vision.plstm_vis(16, **{**sizes, **options})


def image(seed: int = 1, shape: tuple[int, ...] = (6, 4, 1)) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


@eqx.filter_jit
def logits(net: ImageModel, picture: jax.Array, key: jax.Array | None = None) -> jax.Array:
    return net(picture, key=key)


@pytest.mark.parametrize(("size", "millions", "billions"), [("t", 6, 1.4), ("s", 23, 4.9), ("b", 89, 18.2)])
def test_sizes_are_the_papers(size: str, millions: int, billions: float) -> None:
    """The paper's numbers are rounded, its models fill a grid of 14x14 up to 16x16; ours do not, and do less."""
    model = eqx.filter_eval_shape(partial(getattr(vision, f"plstm_vis_{size}"), key=KEY))
    count = parameters(model)
    assert round(count / 1e6) == millions
    assert size == "t" or abs(count / 1e6 / millions - 1) < 0.03
    assert abs(multiply_adds(model, IMAGENET, of_scan=padded_attention) / 1e9 / billions - 1) < 0.03
    assert multiply_adds(model, IMAGENET) / 1e9 < billions


def test_ablations() -> None:
    """Each switch does what it says, and what the others do stays."""
    full = eqx.filter_eval_shape(tiny)
    for modes in ("P", "D"):
        alone = eqx.filter_eval_shape(partial(tiny, modes=(modes,)))
        names = [residual.layer.op.scan.name for residual in alone.stacked if isinstance(residual.layer, ImageScan)]
        assert (names, alone.turns) == ([f"plstm_{modes.lower()}"], 2)
    without = eqx.filter_eval_shape(partial(tiny, size=None))
    assert without.position is None
    assert parameters(full) - parameters(without) == 3 * 2 * 16
    constant = eqx.filter_eval_shape(partial(tiny, reads="constant"))
    kinds = (4, 8)  # angle, strength, decay, mark; two sources, two marks, four transitions
    assert parameters(full) - parameters(constant) == sum(kinds) * 2 * 4 * (16 // 8)


def test_gates_of_biases_alone_do_not_see_the_image() -> None:
    layer = tiny(reads="constant").turn(0)[0].layer
    shapes = layer.op.at((3, 2)).signature.gates
    gates = [layer.gates(jax.random.normal(jax.random.key(seed), (3, 2, 16)), shapes) for seed in (1, 2)]
    for name, shape in shapes.items():
        assert gates[0][name].shape == shape
        np.testing.assert_array_equal(gates[0][name], gates[1][name])


def test_gates_read_their_own_share() -> None:
    """Head 1, direction 2 is the seventh of eight ways, and reads features 12 and 13 of 16."""
    layer = tiny().turn(0)[0].layer
    shapes = layer.op.at((1, 1)).signature.gates

    def mark(x: jax.Array) -> jax.Array:
        return layer.gates(x, shapes)["mark"][0, 0, 1, 2]

    slope = jax.grad(mark)(jax.random.normal(KEY, (1, 1, 16)))[0, 0]
    assert set(np.flatnonzero(slope)) == {12, 13}


def test_starts() -> None:
    closed, opened = tiny().turn(0), tiny(start="open").turn(0)
    assert (closed[0].layer.gates.bias["strength"] == -4).all()
    assert (opened[0].layer.gates.bias["strength"] == 0).all()
    assert (opened[2].layer.gates.bias["direct"] == -2).all()
    assert all((weight == 0).all() for weight in tiny(gain=0.0).turn(0)[0].layer.gates.weight.values())


@pytest.mark.parametrize("shape", [(6, 4, 1), pytest.param((2, 2, 1), marks=pytest.mark.slow), (4, 10, 1)])
def test_images_of_any_size(shape: tuple[int, ...]) -> None:
    """A table resized for each image is the one resized once."""
    net, picture = tiny(), image(shape=shape)
    fixed = net.at(*shape[:2])
    assert fixed.position.shape == (shape[0] // 2, shape[1] // 2, 16)
    np.testing.assert_allclose(logits(net, picture), logits(fixed, picture), atol=1e-5)


def test_bicubic_tables() -> None:
    """A table that is linear along an axis stays so in the middle; a grid of its own size is left alone."""
    line = jnp.broadcast_to(jnp.arange(8.0)[:, None, None], (8, 3, 2))
    assert resized(line, (8, 3)) is line
    twice = resized(line, (16, 3))
    np.testing.assert_allclose(twice[6:10, 1, 0], [2.75, 3.25, 3.75, 4.25], atol=1e-5)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(stmlang.SpecError, match="an image of 5x4 does not divide"):
        tiny().at(5, 4)
    with pytest.raises(stmlang.SpecError, match="`modes`"):
        tiny(modes=("P", "Q"))
    with pytest.raises(stmlang.SpecError, match="`modes`"):
        tiny(depth=3)
    with pytest.raises(stmlang.SpecError, match="cannot be divided among 3 heads"):
        tiny(heads=3)
    with pytest.raises(stmlang.SpecError, match="16 features cannot be divided among 16 heads in 4 directions"):
        tiny(heads=16)


def test_rematerialization_changes_no_number() -> None:
    def slope(net: ImageModel) -> Any:
        return eqx.filter_jit(eqx.filter_grad(lambda net: jnp.sum(net(image()) ** 2)))(net)

    kept, again = slope(tiny(remat=False)), slope(tiny(remat=True))
    for one, other in zip(jax.tree.leaves(kept), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_bfloat16_on_float32_parameters() -> None:
    narrow = tiny(dtype="bfloat16")
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(eqx.filter(narrow, eqx.is_inexact_array))} == {"float32"}
    assert narrow.tokens(image()).dtype == jnp.bfloat16
    y = logits(narrow, image())
    assert y.dtype == jnp.float32
    np.testing.assert_allclose(y, logits(tiny(), image()), atol=0.1)


def test_stochastic_depth_keeps_or_drops_whole_branches() -> None:
    branch = Residual(None, lambda x: x + 1, 2, drop_path=0.25)
    x = jnp.ones((3, 2))
    seen = jax.vmap(lambda key: branch(x, key=key))(jax.random.split(KEY, 400))
    kept = np.isclose(seen, 1 + 2 / 0.75).all((1, 2))
    assert (kept | np.isclose(seen, 1).all((1, 2))).all()
    assert 0.68 < kept.mean() < 0.82
    np.testing.assert_allclose(eqx.nn.inference_mode(branch)(x), 3 * x)


def test_randomness_needs_a_key_and_ends_after_training() -> None:
    net = tiny(dropout=0.2, drop_path=0.2, layer_scale=1.0)
    with pytest.raises(stmlang.SpecError, match="`key` is missing"):
        net(image())
    one, same, other = (logits(net, image(), jax.random.key(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    np.testing.assert_allclose(logits(eqx.nn.inference_mode(net), image()), logits(tiny(), image()), atol=1e-5)


@pytest.mark.parametrize("probability", [1.0, -0.1, "much"])
def test_probabilities(probability: Any) -> None:
    with pytest.raises(stmlang.SpecError, match="must be a probability"):
        tiny(drop_path=probability)


def test_layer_scale_scales_each_feature() -> None:
    branch = Residual(None, lambda x: x, 3, layer_scale=1e-4)
    np.testing.assert_allclose(branch(jnp.ones((2, 3))), 1.0001 * np.ones((2, 3)), rtol=1e-6)
    assert not isinstance(branch.path, Path)


# --- beside the authors' layer


def p_leaves(param: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Weights and biases by leaf; their maps to angles are stored by direction, but read by head first."""
    angle = 0.5 / 24 * param["orientation_weight"].reshape(3, 4, 24), param["orientation_bias"].reshape(3, 4)
    named = {"strength": "source", "mark": "mark", "decay": "transition"}
    return {"angle": angle} | {ours: ways(param, theirs) for ours, theirs in named.items()}


def ways(param: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    middle = "eigenvalues_" if name.startswith("transition") else ""
    weight, bias = (param[f"{name}.{middle}{kind}"] for kind in KINDS)
    return weight.reshape(3, 4, 24), bias.reshape(3, 4)


def d_leaves(param: dict[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    def stacked(*names: str) -> tuple[np.ndarray, np.ndarray]:
        weights, biases = zip(*(ways(param, name) for name in names), strict=True)
        return np.stack(weights, 2), np.stack(biases, 2)

    r, rd, d = (ways(param, f"transition_{port}") for port in ("r", "rd", "d"))
    closed = [np.zeros_like(array) for array in d]
    by_out = [np.stack([np.stack([r[k], rd[k]], 2), np.stack([closed[k], d[k]], 2)], 2) for k in (0, 1)]
    return {
        "source": stacked("source_r", "source_d"),
        "mark": stacked("mark_l", "mark_u"),
        "transition": (by_out[0], by_out[1]),
    }


@pytest.mark.parametrize(
    ("name", "spec", "leaves"),
    [("P_4x4", "std:plstm/image_p_reference", p_leaves), ("D_L_6x6_pad8", "std:plstm/image_d", d_leaves)],
)
def test_layer_is_the_authors(name: str, spec: str, leaves: Any) -> None:
    """With their parameters, from features to features. All their gates read all features there, Direct too."""
    with np.load(data_folder("golden/plstm") / f"layer2dfused_{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    param = {key.removeprefix("param_"): array for key, array in arrays.items() if key.startswith("param_")}
    layer = ImageScan(stmlang.compile(spec, heads=3, key=8, value=8), 24, reads="all", key=KEY)
    gates = leaves(param) | {"direct": (param["direct.weight"].reshape(3, 24), param["direct.bias"].reshape(3))}
    assert {name: (w.shape, b.shape) for name, (w, b) in gates.items()} == {
        name: (layer.gates.weight[name].shape, layer.gates.bias[name].shape) for name in layer.gates.weight
    }
    into = [np.concatenate([param[f"{name}.{kind}"].reshape(24, -1) for name in ("query", "key", "value_")]) for kind in KINDS]
    filled = eqx.tree_at(
        lambda layer: (
            layer.into.weight,
            layer.into.bias,
            layer.gates.weight,
            layer.gates.bias,
            layer.norm.scale,
            layer.out.weight,
        ),
        layer,
        jax.tree.map(
            lambda array: jnp.asarray(array, jnp.float32),
            (
                into[0],
                into[1][:, 0],
                {name: weight for name, (weight, _) in gates.items()},
                {name: bias for name, (_, bias) in gates.items()},
                param["mhnorm.norm.scale"],
                param["outprojection.kernel"].T,
            ),
        ),
    )
    y = eqx.filter_jit(lambda layer, x: jax.vmap(layer)(x))(filled, jnp.asarray(arrays["x"], jnp.float32))
    np.testing.assert_allclose(y, arrays["y"], rtol=2e-3, atol=2e-4)
