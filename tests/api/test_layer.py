"""`stmlang.nn` and the models: sizes, keys and scans that no layer is made of, arrays that do not fit it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.models.vision.model import ImageModel
from stmlang.models.vision.patches import patches
from stmlang.models.vision.plstm import plstm
from stmlang.nn import RMSNorm, ScanLayer
from tests.api.refusals import Refusal, refused, refused_cheaply

DIM = 8
KEY = jax.random.key(0)
CHAIN = "scan s(heads = 2, key = 3, value = 4) on chain(t = 6) { source = linear(x); transition = sigmoid(given(-1, 1)) }\n"
EDGES = "scan e(key = 2, value = 2) on dag { a -> b } { source[out] = linear(e[out]); transition = 0.5 }\n"
OP = stmlang.compile(CHAIN, strategy="recurrent")


def whole(name: str, least: int = 1) -> str:
    return f"`{name}` must be a whole number from {least} to 2^31 - 1"


PARTS: dict[str, tuple[dict[str, Any], Refusal]] = {
    "no scan": ({"op": None}, Refusal("STM5208", "`op`", "compile the spec")),
    "name as scan": ({"op": "std:plstm/chain"}, Refusal("STM5208", "not str", "compile the spec")),
    "no width": ({"dim": 0}, Refusal("STM5208", "not 0", whole("dim"))),
    "negative width": ({"dim": -1}, Refusal("STM5208", "not -1", whole("dim"))),
    "half a width": ({"dim": 2.5}, Refusal("STM5208", "not 2.5", whole("dim"))),
    "true width": ({"dim": True}, Refusal("STM5208", "not True", whole("dim"))),
    "text as width": ({"dim": "8"}, Refusal("STM5208", "not '8'", whole("dim"))),
    "width of 2^31": ({"dim": 2**31}, Refusal("STM5208", "not 2147483648", whole("dim"))),
    "width over memory": ({"dim": 2**31 - 1}, Refusal("STM5208", "12,884,901,882 numbers", "lower the layer's width")),
    "negative edge width": ({"edge_dim": -1}, Refusal("STM5208", "not -1", whole("edge_dim", 0))),
    "half an edge width": ({"edge_dim": 2.5}, Refusal("STM5208", "not 2.5", whole("edge_dim", 0))),
    "no key": ({"key": None}, Refusal("STM5208", "not None", "jax.random.key(0)")),
    "seed as key": ({"key": 0}, Refusal("STM5208", "not 0", "jax.random.key(0)")),
    "array as key": ({"key": np.ones(3)}, Refusal("STM5208", "not an array float64[3]", "jax.random.key(0)")),
    "several keys": ({"key": jax.random.split(KEY, 3)}, Refusal("STM5208", "not an array key<fry>[3]", "split it")),
    "negative epsilon": ({"eps": -1e-5}, Refusal("STM5208", "`eps`", "such as 1e-5")),
    "epsilon of no number": ({"eps": float("nan")}, Refusal("STM5208", "not nan", "such as 1e-5")),
    "text as epsilon": ({"eps": "small"}, Refusal("STM5208", "not 'small'", "such as 1e-5")),
    "bias": ({"use_bias": "no"}, Refusal("STM5010", "`use_bias`", "must be True or False, not 'no'")),
}


@pytest.mark.parametrize("name", PARTS)
def test_layers_that_cannot_be_made(name: str) -> None:
    given, wanted = PARTS[name]
    refused_cheaply(lambda: ScanLayer(**{"op": OP, "dim": DIM, "key": KEY, **given}), wanted)


@pytest.fixture(scope="module")
def layer() -> ScanLayer:
    """Of shapes only: whatever is refused is refused before any parameter is looked at."""
    return eqx.filter_eval_shape(ScanLayer, OP, DIM, key=KEY)


CONVERT = "jnp.asarray(x, jnp.float32)"
ARRAYS: dict[str, tuple[Any, Refusal]] = {
    "none": (None, Refusal("STM5203", "not NoneType", CONVERT)),
    "list": ([[1.0]], Refusal("STM5203", "not list", CONVERT)),
    "number": (1.0, Refusal("STM5203", "not float", CONVERT)),
    "bytes": (np.ones((6, DIM), np.uint8), Refusal("STM5205", "not uint8", CONVERT)),
    "truth": (np.ones((6, DIM), bool), Refusal("STM5205", "not bool", CONVERT)),
    "complex": (np.ones((6, DIM), complex), Refusal("STM5205", "not complex128", CONVERT)),
    "objects": (np.full((6, DIM), None), Refusal("STM5205", "not object", CONVERT)),
    "texts": (np.full((6, DIM), "a"), Refusal("STM5205", "not <U1", CONVERT)),
    "rank": (np.ones(DIM, np.float32), Refusal("STM5201", "not (8,)", "must have the shape (6, 8)")),
    "batch": (np.ones((2, 6, DIM), np.float32), Refusal("STM5201", "not (2, 6, 8)", "jax.vmap(layer)")),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_features_that_do_not_fit(layer: ScanLayer, name: str) -> None:
    """Whole numbers would give a layer whose output is cut to whole numbers; complex ones would lose a half of themselves."""
    x, wanted = ARRAYS[name]
    given = {"transition": jnp.zeros((6, 2), jnp.float32)}
    refused(lambda: layer(x, given=given), wanted)
    refused(lambda: layer.gates(x, given=given), Refusal(wanted.code, "`x`", wanted.culprit))


GIVEN: dict[str, tuple[Any, Refusal]] = {
    "none": (None, Refusal("STM5203", "`given`", "must be a dictionary of arrays by name")),
    "list": ([1], Refusal("STM5203", "not list", "must be a dictionary of arrays by name")),
    "nothing": ({}, Refusal("STM5202", "not []", "must hold ['transition']")),
    "another": ({"transition": 1.0, 5: 1.0}, Refusal("STM5202", "5", "must hold ['transition']")),
    "number": ({"transition": 1.0}, Refusal("STM5203", '`given["transition"]`', CONVERT)),
    "whole": ({"transition": np.ones((6, 2), int)}, Refusal("STM5205", "not int64", CONVERT)),
    "shape": ({"transition": np.ones((2, 6))}, Refusal("STM5201", "not (2, 6)", "must have the shape (6, 2)")),
}


@pytest.mark.parametrize("name", GIVEN)
def test_given_leaves_that_do_not_fit(layer: ScanLayer, name: str) -> None:
    given, wanted = GIVEN[name]
    refused(lambda: layer.gates(jnp.ones((6, DIM)), given=given), wanted)


def test_options_of_a_call(layer: ScanLayer) -> None:
    given = {"transition": jnp.zeros((6, 2), jnp.float32)}
    x = jnp.ones((6, DIM))
    refused(lambda: layer(x, given=given, return_state=[]), Refusal("STM5010", "`return_state`", "True or False, not []"))
    features = jnp.ones((5, 3))
    wanted = Refusal("STM5202", "scan `s` reads no edge features", "leave them out, or read them in the spec")
    refused(lambda: layer(x, given=given, edge_features=features), wanted)


def test_edge_features_that_do_not_fit() -> None:
    op = stmlang.compile(EDGES, strategy="recurrent")
    wanted = Refusal("STM5202", "scan `e` reads edge features", "edge_dim=...")
    refused(lambda: ScanLayer(op, DIM, key=KEY), wanted)
    layer, x = eqx.filter_eval_shape(ScanLayer, op, DIM, key=KEY, edge_dim=2), jnp.ones((2, DIM))
    refused(lambda: layer(x, edge_features=[1.0]), Refusal("STM5203", "`edge_features`", CONVERT))
    refused(lambda: layer(x, edge_features=np.ones((1, 2), int)), Refusal("STM5205", "`edge_features`", CONVERT))
    refused(lambda: layer(x, edge_features=np.ones((2, 2))), Refusal("STM5201", "not (2, 2)", "must have the shape (1, 2)"))


NORMS: dict[str, tuple[Any, Refusal]] = {
    "number": (lambda: RMSNorm(5), Refusal("STM5208", "not 5", "such as `(dim,)`")),
    "nothing": (lambda: RMSNorm(()), Refusal("STM5208", "not ()", "such as `(dim,)`")),
    "text": (lambda: RMSNorm("ab"), Refusal("STM5208", "not 'ab'", "such as `(dim,)`")),
    "empty": (lambda: RMSNorm((0,)), Refusal("STM5208", "not 0", whole("shape"))),
    "half": (lambda: RMSNorm((2.5,)), Refusal("STM5208", "not 2.5", whole("shape"))),
    "large": (lambda: RMSNorm((2**20, 2**20)), Refusal("STM5208", "1,099,511,627,776 numbers", "lower the layer's width")),
    "epsilon": (lambda: RMSNorm((4,), eps=-1.0), Refusal("STM5208", "not -1.0", "such as 1e-5")),
    "type": (lambda: RMSNorm((4,), dtype=jnp.int32), Refusal("STM5208", "int32", "such as `jnp.float32`")),
    "list": (lambda: RMSNorm((4,))([1.0] * 4), Refusal("STM5203", "not list", CONVERT)),
    "whole numbers": (lambda: RMSNorm((4,))(jnp.ones(4, int)), Refusal("STM5205", "not int64", CONVERT)),
    "other axes": (lambda: RMSNorm((4,))(jnp.ones(3)), Refusal("STM5201", "(3,)", "the last axes of `x` must be (4,)")),
    "one axis": (lambda: RMSNorm((4,))(jnp.ones(1)), Refusal("STM5201", "(1,)", "the last axes of `x` must be (4,)")),
    "no axis": (lambda: RMSNorm((4,))(jnp.ones(())), Refusal("STM5201", "()", "the last axes of `x` must be (4,)")),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name: str) -> None:
    refused(*NORMS[name])


# --- models


GRID = {"rows": 3, "cols": 2, "heads": 1, "key": 2, "value": 2, "strategy": "recurrent"}
P, D = (stmlang.compile(f"std:plstm/image_{mode}", **GRID) for mode in "pd")
OTHER = stmlang.compile("std:plstm/image_d", **{**GRID, "rows": 2})
OPEN = stmlang.compile("std:plstm/image_p", heads=1, key=2, value=2)
MODELS: dict[str, tuple[dict[str, Any], Refusal]] = {
    "no scan": ({"p": None}, Refusal("STM5208", "`p`", "compile the spec")),
    "chain": ({"d": OP}, Refusal("STM5208", "`d`, scan `s`", "must run on a grid of two axes")),
    "two grids": ({"d": OTHER}, Refusal("STM5208", "(3, 2) and (2, 2)", "compile both for the same sizes")),
    "open": ({"p": OPEN, "d": OPEN}, Refusal("STM5001", "`rows`, `cols`", "give them at compile time")),
    "classes": ({"classes": 0}, Refusal("STM5208", "not 0", whole("classes"))),
    "channels": ({"channels": -1}, Refusal("STM5208", "not -1", whole("channels"))),
    "patch": ({"patch": 0}, Refusal("STM5208", "not 0", whole("patch"))),
    "stride of none": ({"stride": 0}, Refusal("STM5208", "not 0", whole("stride"))),
    "stride": ({"stride": 3}, Refusal("STM5208", "patches of 2x2", "`patch` is `stride`, or larger by an even number")),
    "dim": ({"dim": 2.5}, Refusal("STM5208", "not 2.5", whole("dim"))),
    "pairs": ({"pairs": 0}, Refusal("STM5208", "not 0", whole("pairs"))),
    "expansion": ({"expansion": True}, Refusal("STM5208", "not True", whole("expansion"))),
    "pooling": ({"pooling": "max"}, Refusal("STM5010", "`max`", "choose one of corners, ends, mean, class")),
    "key": ({"key": 0}, Refusal("STM5208", "not 0", "jax.random.key(0)")),
    "position": ({"position": "yes"}, Refusal("STM5010", "`position`", "must be True or False, not 'yes'")),
}


def model(**given: Any) -> ImageModel:
    return plstm(**{"p": P, "d": D, "classes": 3, "channels": 1, "patch": 2, "dim": 4, "pairs": 1, "key": KEY, **given})


@pytest.mark.parametrize("name", MODELS)
def test_models_that_cannot_be_made(name: str) -> None:
    given, wanted = MODELS[name]
    refused(lambda: model(**given), wanted)


def test_images_that_do_not_fit() -> None:
    net = eqx.filter_eval_shape(model)
    images: dict[str, tuple[Any, Refusal]] = {
        "bytes": (np.ones((6, 4, 1), np.uint8), Refusal("STM5205", "not uint8", CONVERT)),
        "list": ([[1.0]], Refusal("STM5203", "not list", CONVERT)),
        "complex": (np.ones((6, 4, 1), complex), Refusal("STM5205", "not complex128", CONVERT)),
        "grey": (np.ones((6, 4)), Refusal("STM5201", "not (6, 4)", "(height, width, channels)")),
        "batch": (np.ones((2, 6, 4, 1)), Refusal("STM5201", "not (2, 6, 4, 1)", "jax.vmap(model)")),
        "colours": (np.ones((6, 4, 3)), Refusal("STM5201", "not (6, 4, 3)", "must have the shape (6, 4, 1)")),
        "larger": (np.ones((8, 4, 1)), Refusal("STM5201", "not (8, 4, 1)", "must have the shape (6, 4, 1)")),
        "empty": (np.ones((0, 0, 1)), Refusal("STM5201", "not (0, 0, 1)", "must have the shape (6, 4, 1)")),
        "odd": (np.ones((5, 4, 1)), Refusal("STM5201", "an image of 5x4", "crop or pad it")),
    }
    for image, wanted in images.values():
        refused(lambda image=image: net(image), wanted)


def test_patches_of_no_side() -> None:
    refused(lambda: patches(jnp.ones((4, 4, 1)), 0, 0), Refusal("STM5208", "not 0", whole("patch")))
    refused(lambda: patches(jnp.ones((4, 4, 1)), 2, -2), Refusal("STM5208", "not -2", whole("stride")))
