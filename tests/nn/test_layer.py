"""ScanLayer: what it computes, on every kind of topology and under every transformation."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer
from tests.nn.cases import CASES, DIM, Case, features

every_case = pytest.mark.parametrize("case", CASES, ids=str)
dense_and_ragged = pytest.mark.parametrize("case", [CASES[2], CASES[5]], ids=str)  # compiling takes seconds each


@eqx.filter_jit
def call(layer: ScanLayer, x: jax.Array, **options: Any) -> Any:
    return layer(x, **options)


@eqx.filter_jit
def gates_of(layer: ScanLayer, x: jax.Array, **options: Any) -> Any:
    return layer.gates(x, **options)


def projected(projection, x: np.ndarray) -> np.ndarray:
    weight, bias = np.asarray(projection.weight, np.float64), np.asarray(projection.bias, np.float64)
    return np.einsum("...d,hwd->...hw", x, weight) + bias


@every_case
def test_layer_is_the_scan_between_projections(case: Case) -> None:
    layer = case.layer()
    x, edges = features(layer)
    wide = np.asarray(x, np.float64)
    query, key, value = (projected(part, wide) for part in (layer.query, layer.key, layer.value))
    mixed = layer.op.reference(query / np.sqrt(layer.op.scan.key), key, value, gates_of(layer, x, **edges))
    normal = mixed / np.sqrt((mixed**2).mean(-1, keepdims=True) + 1e-5) * np.asarray(layer.norm.scale)
    expected = np.einsum("...hv,dhv->...d", normal, np.asarray(layer.out, np.float64))
    y = call(layer, x, **edges)
    assert y.shape == x.shape
    assert y.dtype == jnp.float32
    np.testing.assert_allclose(y, expected, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("case", [CASES[1], CASES[2], CASES[4], CASES[5]], ids=str)
def test_gradient_reaches_every_parameter(case: Case) -> None:
    layer = case.layer()
    x, edges = features(layer)
    # At the initial biases gates are nearly shut: move everything, so that no path is too faint to see.
    generator = np.random.default_rng(2)
    layer = jax.tree.map(
        lambda leaf: jnp.asarray(generator.normal(0, 0.7, leaf.shape), leaf.dtype) if eqx.is_inexact_array(leaf) else leaf,
        layer,
    )

    def loss(layer: ScanLayer) -> jax.Array:
        return jnp.sum(layer(x, **edges) ** 2)

    gradients = jax.tree_util.tree_leaves_with_path(eqx.filter_jit(eqx.filter_grad(loss))(layer))
    assert gradients
    for path, gradient in gradients:
        assert np.isfinite(gradient).all(), path
        assert np.abs(gradient).max() > 0, path


@dense_and_ragged
def test_map_over_a_batch_equals_one_by_one(case: Case) -> None:
    layer = case.layer()
    x, edges = features(layer, batch=(3,))
    together = eqx.filter_jit(jax.vmap(lambda x, edges: layer(x, **edges)))(x, edges)
    for number in range(3):
        alone = call(layer, x[number], **jax.tree.map(lambda array, number=number: array[number], edges))
        np.testing.assert_allclose(together[number], alone, atol=1e-5)


@dense_and_ragged
def test_bfloat16_scan_keeps_float32_parameters(case: Case) -> None:
    layer, exact = case.layer(dtype="bfloat16"), case.layer()
    x, edges = features(layer)
    assert {leaf.dtype for leaf in jax.tree.leaves(eqx.filter(layer, eqx.is_inexact_array))} == {jnp.dtype(jnp.float32)}
    assert call(layer, x.astype(jnp.bfloat16), **edges).dtype == jnp.bfloat16
    y, expected = call(layer, x, **edges), call(exact, x, **edges)
    assert y.dtype == jnp.float32
    np.testing.assert_allclose(y, expected, atol=0.05 * float(jnp.abs(expected).max()))


@dense_and_ragged
def test_states_pass_through(case: Case) -> None:
    layer = case.layer()
    x, edges = features(layer)
    y, state = call(layer, x, **edges, initial=layer.op.zero_state(), return_state=True)
    np.testing.assert_allclose(y, call(layer, x, **edges), atol=1e-6)
    assert tuple({port: array.shape for port, array in part.items()} for part in state) == layer.op.signature.final


def test_sequence_can_be_cut_and_continued() -> None:
    spec = "std:plstm/chain"
    whole = ScanLayer(stmlang.compile(spec, time=9, heads=2, key=4, value=5), DIM, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (9, DIM))
    first, second = (
        eqx.tree_at(lambda layer: layer.op, whole, stmlang.compile(spec, time=n, heads=2, key=4, value=5)) for n in (4, 5)
    )
    start, state = call(first, x[:4], return_state=True)
    end = call(second, x[4:], initial=state)
    np.testing.assert_allclose(jnp.concatenate([start, end]), call(whole, x), atol=1e-5)


def test_open_sizes_are_those_of_the_input() -> None:
    sizes = {"heads": 2, "key": 4, "value": 5}
    layer = ScanLayer(stmlang.compile("std:plstm/image_d", **sizes), DIM, key=jax.random.key(0))
    for rows, cols in ((2, 3), (4, 1)):
        x = jax.random.normal(jax.random.key(1), (rows, cols, DIM))
        bound = ScanLayer(stmlang.compile("std:plstm/image_d", rows=rows, cols=cols, **sizes), DIM, key=jax.random.key(0))
        np.testing.assert_array_equal(call(layer, x), call(bound, x))
        np.testing.assert_allclose(jax.jit(jax.vmap(layer))(x[None])[0], call(bound, x), atol=1e-5)
    with pytest.raises(stmlang.SpecError, match=r"begin with the axes \(rows, cols\), not \(3,\)"):
        layer(jnp.zeros((3, DIM)))


def test_layers_share_a_scan() -> None:
    op = CASES[1].op()
    layers = [ScanLayer(op, DIM, key=jax.random.key(seed)) for seed in range(2)]
    assert layers[0].op is layers[1].op
    x, _ = features(layers[0])

    @eqx.filter_jit
    def stack(layers: list[ScanLayer], x: jax.Array) -> jax.Array:
        for layer in layers:
            x = x + layer(x)
        return x

    assert np.isfinite(stack(layers, x)).all()


def test_given_leaves_and_constants() -> None:
    spec = """
    scan mixed(heads = 3, key = 4, value = 4) on chain(time = 5) {
        directions both concat
        source     = sigmoid(given(-1, 1))
        transition = sigmoid(param(spread(1, 3)))
        mark       = sigmoid(linear(x, weight = 0, bias = 2))
    }
    """
    layer = ScanLayer(stmlang.compile(spec), DIM, key=jax.random.key(0), use_bias=False)
    assert layer.query.bias is None
    assert layer.norm.scale.shape == (6, 4)
    np.testing.assert_allclose(layer.leaves.constant["transition"], np.repeat([[1.0], [2.0], [3.0]], 2, axis=1))
    assert not layer.leaves.weight["mark"].any()
    x, _ = features(layer)
    given = {"source": jnp.zeros(layer.op.signature.gates["source"])}
    assert layer(x, given=given).shape == (5, DIM)
    with pytest.raises(stmlang.SpecError, match=r"`given` must hold \['source'\], not \[\]"):
        layer(x)
    with pytest.raises(stmlang.SpecError, match=r"not \(2,\)"):
        layer(x, given={"source": jnp.zeros(2)})


def test_what_does_not_fit_is_named_on_both_sides() -> None:
    layer = CASES[1].layer()
    with pytest.raises(stmlang.SpecError, match=r"`x` must have the shape \(3, 4, 6\), not \(4, 3, 6\)"):
        layer(jnp.zeros((4, 3, DIM)))
    with pytest.raises(stmlang.SpecError, match=r"jax\.vmap\(layer\)"):
        layer(jnp.zeros((8, 3, 4, DIM)))


def test_edge_features_are_asked_for() -> None:
    op = CASES[5].op()
    with pytest.raises(stmlang.SpecError, match="reads edge features"):
        ScanLayer(op, DIM, key=jax.random.key(0))
    layer = CASES[5].layer()
    x, edges = features(layer)
    count = op.dag.edge_count
    with pytest.raises(stmlang.SpecError, match=rf"`edge_features` is missing; its shape is \({count}, 3\)"):
        layer(x)
    with pytest.raises(stmlang.SpecError, match=rf"`edge_features` must have the shape \({count}, 3\), not \({count}, 2\)"):
        layer(x, edge_features=edges["edge_features"][:, :2])


def test_a_graph_without_edges() -> None:
    """Index tables are empty then, and keep their shapes."""
    text = "scan s(key = 2, value = 2) on dag { a; b; c } { source[out] = linear(x, e[out]); transition = 0.5 }"
    op = stmlang.compile(text, strategy="parallel")
    layer = stmlang.nn.ScanLayer(op, dim=4, key=jax.random.key(0), edge_dim=3)
    assert layer(jnp.ones((3, 4)), edge_features=jnp.zeros((0, 3))).shape == (3, 4)


@pytest.mark.parametrize("gate", [None, "silu"])
def test_nodes_that_write_and_read_several_times(gate: str | None) -> None:
    """Each key, value, query and output has weights of its own, and each output is normalized by itself."""
    op = stmlang.compile("std:plstm/chain_tracking", time=5, heads=2, key=3, value=4, track=2, writes=3, reads=2)
    layer = ScanLayer(op, DIM, key=jax.random.key(0), gate=gate)
    shapes = [part.weight.shape for part in (layer.query, layer.key, layer.value)]
    assert shapes == [(2, 2, 3, DIM), (2, 3, 3, DIM), (2, 3, 4, DIM)]
    assert (layer.norm.scale.shape, layer.out.shape) == ((2, 2, 4), (DIM, 2, 2, 4))
    x = jax.random.normal(jax.random.key(1), (5, DIM))
    query, key, value = (jnp.einsum("td,hswd->thsw", x, part.weight) for part in (layer.query, layer.key, layer.value))
    mixed = op.reference(query / np.sqrt(3), key, value, gates_of(layer, x))
    mixed = mixed / np.sqrt((mixed**2).mean(-1, keepdims=True) + 1e-5)
    if layer.gate is not None:
        mixed = mixed * np.asarray(jax.nn.silu(jnp.einsum("td,hrvd->thrv", x, layer.gate.weight)))
    expected = np.einsum("thrv,dhrv->td", mixed, np.asarray(layer.out, np.float64))
    np.testing.assert_allclose(call(layer, x), expected, atol=2e-4 * np.abs(expected).max())
    gradient = eqx.filter_grad(lambda layer: jnp.sum(call(layer, x) ** 2))(layer)
    assert all(np.any(leaf) for leaf in (gradient.query.weight, gradient.key.weight, gradient.value.weight, gradient.out))
