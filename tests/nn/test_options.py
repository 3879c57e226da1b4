"""What a layer may be told: its norm, an output gate, dropout, and which nodes count."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer

SIZES = {"heads": 2, "key": 4, "value": 3, "tuned": False, "strategy": "recurrent"}
DIM = 5


@pytest.fixture(scope="module")
def op() -> stmlang.CompiledScan:
    return stmlang.compile("std:plstm/chain", time=6, **SIZES)


def layer_of(op: Any, **options: Any) -> ScanLayer:
    return ScanLayer(op, DIM, key=jax.random.key(0), **options)


def x_of(length: int = 6, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((length, DIM)).astype(np.float32)


def scanned(layer: ScanLayer, x: Any) -> jax.Array:
    """What the scan gives, before norm and gate."""
    query, key, value = (
        jnp.einsum("td,hwd->thw", x, part.weight) + part.bias for part in (layer.query, layer.key, layer.value)
    )
    return layer.op(query / layer.op.scan.key**0.5, key, value, layer.gates(x))


def test_without_a_norm_the_layer_is_linear_in_the_values(op: stmlang.CompiledScan) -> None:
    x = x_of()
    for norm, same in ((None, False), ("rms", True)):
        layer = layer_of(op, norm=norm, use_bias=False, eps=0.0)
        larger = eqx.tree_at(lambda layer: layer.value.weight, layer, replace_fn=lambda weight: 10 * weight)
        np.testing.assert_allclose(larger(x), layer(x) * (1 if same else 10), rtol=2e-4, atol=1e-5)
    assert layer_of(op, norm=None).norm is None


def test_any_function_that_keeps_the_shape_is_a_norm(op: stmlang.CompiledScan) -> None:
    layer = layer_of(op, norm=jnp.tanh)
    expected = jnp.einsum("thv,dhv->td", jnp.tanh(scanned(layer, x_of())), layer.out)
    np.testing.assert_allclose(layer(x_of()), expected, atol=1e-5)
    assert all(map(eqx.is_array, jax.tree.leaves(layer)))
    with pytest.raises(stmlang.SpecError, match="must keep the shape"):
        layer_of(op, norm=lambda heads: heads[..., 0])(x_of())


@pytest.mark.parametrize(("gate", "activation"), [("silu", jax.nn.silu), ("sigmoid", jax.nn.sigmoid)])
def test_output_gate_multiplies_what_is_normalized(op: stmlang.CompiledScan, gate: Any, activation: Any) -> None:
    layer, x = layer_of(op, gate=gate), x_of()
    assert layer.gate is not None
    assert layer.gate.bias is not None
    gated = activation(jnp.einsum("td,hwd->thw", x, layer.gate.weight) + layer.gate.bias)
    expected = jnp.einsum("thv,dhv->td", layer.norm(scanned(layer, x)) * gated, layer.out)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)
    plain = layer_of(op)
    np.testing.assert_array_equal(plain.out, layer.out)  # other parameters start as they do without it


def test_dropout_needs_a_key_until_inference(op: stmlang.CompiledScan) -> None:
    layer, x = layer_of(op, dropout=0.5), x_of()
    with pytest.raises(stmlang.SpecError, match="`key` is missing: the layer has dropout"):
        layer(x)
    dropped, whole = layer(x, key=jax.random.key(3)), eqx.nn.inference_mode(layer)(x)
    kept = np.asarray(dropped) != 0
    assert 0 < kept.sum() < kept.size
    np.testing.assert_allclose(np.asarray(dropped)[kept], 2 * np.asarray(whole)[kept], rtol=1e-5)
    np.testing.assert_array_equal(whole, layer_of(op)(x))
    np.testing.assert_array_equal(dropped, layer(x, key=jax.random.key(3)))


@pytest.mark.parametrize("options", [{}, {"norm": None, "gate": "silu"}], ids=["plain", "gated"])
def test_masked_layer_is_the_layer_of_the_shorter_sequence(options: dict[str, Any]) -> None:
    whole, short = (layer_of(stmlang.compile("std:chain/mlstm", time=n, **SIZES), **options) for n in (6, 4))
    mask = np.asarray([True, False, True, True, False, True])
    x = x_of()
    x[~mask] = np.nan

    def loss(layer: ScanLayer, x: Any, mask: Any) -> Any:
        y, state = layer(x, return_state=True, mask=mask)
        return jnp.sum(jnp.sin(y)) + jax.tree.reduce(jnp.add, jax.tree.map(jnp.sum, state)), (y, state)

    differentiate = eqx.filter_jit(eqx.filter_value_and_grad(loss, has_aux=True))
    (_, (y, state)), gradient = differentiate(whole, x, jnp.asarray(mask))
    (_, (expected, after)), other = differentiate(short, x[mask], None)
    np.testing.assert_allclose(y[mask], expected, atol=1e-5)
    assert np.all(np.asarray(y)[~mask] == 0)
    pairs = zip(jax.tree.leaves((state, gradient)), jax.tree.leaves((after, other)), strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"norm": "layer"}, "STM5010"),
        ({"norm": 3}, "STM5010"),
        ({"gate": "swish"}, "STM5010"),
        ({"gate": True}, "STM5010"),
        ({"dropout": 1.0}, "STM5208"),
        ({"dropout": "0.1"}, "STM5208"),
    ],
)
def test_what_is_no_option_is_refused(op: stmlang.CompiledScan, options: dict[str, Any], code: str) -> None:
    with pytest.raises(stmlang.SpecError) as error:
        layer_of(op, **options)
    assert error.value.diagnostics[0].code == code
