"""What people do with Equinox modules and JAX functions, done with ours: each gives the numbers of the plain call."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from itertools import compress
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import stmlang
import stmlang.models
import stmlang.nn
from stmlang.models.parts import Linear, Perceptron
from stmlang.models.vision.residual import Residual
from stmlang.nn import RMSNorm, ScanLayer
from stmlang.runtime.modules import equal, hash_of

DIM = 3
CHAIN = """scan s(heads = 1, key = 2, value = 2) on chain(t) {
    source = sigmoid(linear(x)); transition = sigmoid(param(1)); mark = 1; direct = 0
}"""
X = jnp.asarray(np.random.default_rng(0).normal(size=(4, DIM)), jnp.float32)
LAYERS: dict[str, Callable[[jax.Array], Any]] = {
    "scan": lambda key: ScanLayer(stmlang.compile(CHAIN, t=4), DIM, key=key),
    "open scan": lambda key: ScanLayer(stmlang.compile(CHAIN), DIM, key=key),
    "norm": lambda key: eqx.tree_at(lambda norm: norm.scale, RMSNorm((DIM,)), jax.random.normal(key, (DIM,))),
    "perceptron": lambda key: Perceptron(DIM, 4, key=key),
    "linear": lambda key: Linear(DIM, DIM, gain=1.0, key=key),
    "residual": lambda key: Residual(
        RMSNorm((DIM,)), ScanLayer(stmlang.compile(CHAIN, t=4), DIM, key=key), DIM, layer_scale=0.5
    ),
}
each = pytest.mark.parametrize("name", LAYERS)
some = pytest.mark.parametrize("name", ["scan", "norm"])


@cache
def made(name: str, seed: int = 0) -> Any:
    return LAYERS[name](jax.random.key(seed))


def close(found: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def loss(layer: Any, x: jax.Array = X) -> jax.Array:
    return jnp.sum(layer(x) ** 2)


def learned(layer: Any) -> Any:
    return eqx.filter(layer, eqx.is_inexact_array)


@each
def test_sequential(name: str) -> None:
    layer = made(name)
    model = eqx.nn.Sequential([layer, eqx.nn.Lambda(jax.nn.gelu), eqx.nn.Dropout(0.5, inference=True), layer])
    close(model(X, key=jax.random.key(0)), layer(jax.nn.gelu(layer(X))))
    close(eqx.nn.inference_mode(model)(X), model(X))


@each
def test_checkpoint(name: str) -> None:
    """In the gradient by the layer, traced and not, and not remembered for another layer of the same structure."""
    layer, other = made(name), made(name, 1)
    plain = eqx.filter_jit(eqx.filter_grad(loss))
    by_jax = eqx.filter_jit(eqx.filter_grad(lambda layer: loss(jax.checkpoint(layer))))
    by_equinox = eqx.filter_jit(eqx.filter_grad(lambda layer: loss(eqx.filter_checkpoint(layer))))
    for one in (layer, other):
        wanted = plain(one)
        close(by_jax(one), wanted)
        close(by_equinox(one), wanted)
        close(jax.checkpoint(one)(X), jax.jit(one)(X))


@each
def test_hash_and_equality(name: str) -> None:
    layer, other = made(name), made(name, 1)
    same = jax.tree.map(lambda array: array + 0, layer)
    assert (layer == same, hash(layer) == hash(same), layer == other, layer == "layer") == (True, True, False, False)
    assert bool(eqx.tree_equal(layer, same))


def modules() -> Iterator[type]:
    for package in (stmlang.nn, stmlang.models):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for kind in vars(import_module(found.name)).values():
                if inspect.isclass(kind) and issubclass(kind, eqx.Module) and kind.__module__ == found.name:
                    yield kind


def test_all_modules_are_compared_alike() -> None:
    found = list(modules())
    assert len(found) > 12
    for kind in found:
        assert (kind.__hash__, kind.__eq__) == (hash_of, equal), kind


def test_modules_that_take_one_argument_fit_into_sequential() -> None:
    for kind in modules():
        names = list(inspect.signature(kind.__call__).parameters) if "__call__" in vars(kind) else []
        required = [name for name in names[1:] if inspect.signature(kind.__call__).parameters[name].default is inspect._empty]
        assert len(required) != 1 or "key" in names, kind


@some
def test_ensembles(name: str) -> None:
    made_at_once = eqx.filter_vmap(LAYERS[name])(jax.random.split(jax.random.key(5), 2))
    found = eqx.filter_vmap(lambda layer, x: layer(x), in_axes=(eqx.if_array(0), None))(made_at_once, X)
    for number, key in enumerate(jax.random.split(jax.random.key(5), 2)):
        close(found[number], LAYERS[name](key)(X))


@some
def test_scan_over_layers(name: str) -> None:
    layers = [made(name), made(name, 1)]
    fixed = eqx.filter(layers[0], eqx.is_inexact_array, inverse=True)
    stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *map(learned, layers))

    def step(x: jax.Array, own: Any) -> tuple[jax.Array, None]:
        return eqx.combine(own, fixed)(x), None

    close(jax.jit(lambda x: jax.lax.scan(step, x, stacked)[0])(X), layers[1](layers[0](X)))


@each
def test_stored_and_replaced(name: str, tmp_path: Path) -> None:
    layer, other = made(name), made(name, 1)
    eqx.tree_serialise_leaves(tmp_path / "layer.eqx", layer)
    restored = eqx.tree_deserialise_leaves(tmp_path / "layer.eqx", other)
    close(restored(X), layer(X), 0)
    first = learned(layer)
    kept = [eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(layer)]
    moved = eqx.tree_at(lambda tree: list(compress(jax.tree.leaves(tree), kept)), other, jax.tree.leaves(first))
    close(moved(X), layer(X), 0)


@some
def test_training(name: str) -> None:
    """Masked weight decay, several steps at once, donated buffers, a running average of the weights."""
    layer = jax.tree.map(lambda array: array + 0, made(name))
    mask = jax.tree.map(lambda array: array.ndim > 1, learned(layer))
    optimizer = optax.MultiSteps(optax.chain(optax.add_decayed_weights(0.1, mask), optax.adam(1e-2)), 2)

    @eqx.filter_jit(donate="all")
    def train(layer: Any, state: Any, average: Any) -> tuple[Any, Any, Any]:
        gradient = eqx.filter_grad(loss)(layer)
        updates, state = optimizer.update(learned(gradient), state, learned(layer))
        layer = eqx.apply_updates(layer, updates)
        average = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, average, learned(layer))
        return layer, state, average

    state, average = optimizer.init(learned(layer)), jax.tree.map(lambda array: array + 0, learned(layer))
    for _ in range(4):
        layer, state, average = train(layer, state, average)
    assert jax.tree.structure(average) == jax.tree.structure(learned(layer))
    assert all(bool(jnp.isfinite(array).all()) for array in jax.tree.leaves(average))
    assert not eqx.tree_equal(learned(layer), learned(made(name)))


STRICT = {
    "ranks": lambda: jax.numpy_rank_promotion("raise"),
    "types": lambda: jax.numpy_dtype_promotion("strict"),
    "no NaN": lambda: jax.debug_nans(True),
    "leaks": jax.checking_leaks,
}


@pytest.mark.parametrize("switch", STRICT)
@each
def test_strict(name: str, switch: str) -> None:
    """With what makes JAX refuse more than it does: value, and gradient under `vmap`. NaNs are seen in numbers alone."""
    layer = made(name)
    gradient = eqx.filter_grad(lambda layer: jnp.sum(jax.vmap(layer)(X[None]) ** 2))
    with STRICT[switch]():
        if switch == "no NaN":
            eqx.filter_jit(lambda layer: (layer(X), gradient(layer)))(layer)
        else:
            eqx.filter_eval_shape(lambda layer: (layer(X), gradient(layer)), layer)
