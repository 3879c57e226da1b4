"""Batches along a mesh of devices, explicit and automatic: results of one device, and nothing sent but sums of gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import stmlang
from stmlang.graph import Bucket
from stmlang.graph import batch as graph_batch
from stmlang.models import vision
from stmlang.models.blocks import GLA
from stmlang.models.sequence import LanguageModel
from stmlang.nn import ScanLayer
from tests.graph.graphs import banded

DEVICES = 4
KEY = jax.random.key(0)
SMALL = {"heads": 2, "key": 3, "value": 3}
KINDS = pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto], ids=["explicit", "auto"])
SENT = re.compile(r"(all-gather|all-to-all|collective-permute|all-reduce|reduce-scatter)(?:-start)?\(")


def chain(**options: Any) -> tuple[Any, tuple[int, ...]]:
    return ScanLayer(stmlang.compile("std:plstm/chain", time=5, **SMALL, **options), 6, gate="silu", key=KEY), (5, 6)


def fixed() -> tuple[Any, tuple[int, ...]]:
    """Nothing is left to plan for a batch, so that a call is no primitive elsewhere."""
    return chain(strategy="recurrent", config={})


def image(name: str) -> Callable[[], tuple[Any, tuple[int, ...]]]:
    def made() -> tuple[Any, tuple[int, ...]]:
        return ScanLayer(stmlang.compile(f"std:plstm/{name}", rows=2, cols=3, **SMALL), 6, key=KEY), (2, 3, 6)

    return made


def graph() -> tuple[Any, tuple[int, ...]]:
    text = """scan graph(heads = 2, key = 3, value = 3) on dag { a -> b, c; b, c -> d } {
        directions both
        source[out] = sigmoid(linear(x, e[out]))
        transition[out, in] = tanh(linear(e[in], e[out])) / degree(out)
        mark[in] = sigmoid(linear(x, e[in]))
    }"""
    op = stmlang.compile(text)
    layer = ScanLayer(op, 6, edge_dim=2, key=KEY)
    edges = jax.random.normal(KEY, (op.edge_count, 2))
    return eqx.Partial(lambda layer, edges, x: layer(x, edge_features=edges), layer, edges), (4, 6)


LAYERS = {"chain": chain, "fixed": fixed, "P": image("image_p"), "D": image("image_d"), "graph": graph}
CASES = [
    pytest.param(
        name, kind, id=f"{name}-{kind.name.lower()}", marks=[] if kind is AxisType.Explicit or name == "P" else pytest.mark.slow
    )
    for name in LAYERS
    for kind in (AxisType.Explicit, AxisType.Auto)
]


def along(kind: AxisType) -> jax.sharding.Mesh:
    return jax.make_mesh((DEVICES,), ("batch",), axis_types=(kind,), devices=jax.devices()[:DEVICES])


def placed(mesh: jax.sharding.Mesh, model: Any, batch: jax.Array) -> tuple[Any, jax.Array]:
    arrays, rest = eqx.partition(model, eqx.is_array)
    whole = jax.device_put(arrays, NamedSharding(mesh, PartitionSpec()))
    return eqx.combine(whole, rest), jax.device_put(batch, NamedSharding(mesh, PartitionSpec("batch")))


def both(model: Any, batch: jax.Array) -> Any:
    """The result and the gradient of a mean over the batch."""

    def loss(model: Any) -> tuple[jax.Array, jax.Array]:
        result = jax.vmap(model)(batch)
        return jnp.mean(result**2), result

    return eqx.filter_grad(loss, has_aux=True)(model)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_layer(name: str, kind: AxisType) -> None:
    layer, shape = LAYERS[name]()
    batch = jax.random.normal(KEY, (2 * DEVICES, *shape))
    mesh = along(kind)
    expected = both(layer, batch)
    with jax.set_mesh(mesh):
        compiled = eqx.filter_jit(both).lower(*placed(mesh, layer, batch)).compile()
        actual = compiled(*placed(mesh, layer, batch))
    for one, several in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-5, atol=1e-6)
    assert actual[1].sharding.spec[0] == "batch"
    assert set(SENT.findall(compiled.compiled.as_text())) == {"all-reduce"}


@pytest.mark.parametrize("kind", [AxisType.Explicit, pytest.param(AxisType.Auto, marks=pytest.mark.slow)])
def test_batches_of_graphs(kind: AxisType) -> None:
    """A batch of graphs on each device: the tables of scans on batches of one bucket are stacked, and mapped over."""
    op = stmlang.compile("std:plstm/graph_p", **SMALL)
    assert isinstance(op, stmlang.GraphScan)
    graphs = [[banded(7, 10, 3, seed)] for seed in range(2)]
    room = Bucket.covering([graph_batch(each, bucket=Bucket(16, 24, 2)) for each in graphs])
    scans = [op.at(graph_batch(each, bucket=room)) for each in graphs]
    layer = ScanLayer(op, 6, edge_dim=2, key=KEY)
    nodes, edges = (jax.random.normal(KEY, (2, *shape)) for shape in ((*scans[0].node_shape, 6), (scans[0].edge_count, 2)))

    def single(layer: Any, scan: Any, x: jax.Array, e: jax.Array) -> jax.Array:
        return layer(x, on=scan, edge_features=e)

    expected = [single(layer, scan, nodes[k], edges[k]) for k, scan in enumerate(scans)]
    stacked = jax.tree.map(lambda *tables: jnp.stack(tables), *scans)
    mesh = jax.make_mesh((2,), ("batch",), axis_types=(kind,), devices=jax.devices()[:2])
    whole, shares = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))
    with jax.set_mesh(mesh):
        placed = jax.device_put((stacked, nodes, edges), shares)
        actual = jax.jit(jax.vmap(single, in_axes=(None, 0, 0, 0)))(jax.device_put(layer, whole), *placed)
    np.testing.assert_allclose(actual, jnp.stack(expected), rtol=1e-5, atol=1e-6)


def models() -> dict[str, tuple[Callable[[], Any], jax.Array]]:
    images, tokens = jnp.ones((DEVICES, 16, 16, 3)), jnp.ones((DEVICES, 5), jnp.int32)
    small = {"dim": 16, "classes": 3, "patch": 8, "key": KEY}
    turned = {name: {"depth": 4} for name in ("vil", "vim", "mamba2d", "mamba_nd", "two_d_mamba", "v2m", "convnext")}
    made: dict[str, tuple[Callable[[], Any], jax.Array]] = {
        name: (lambda name=name, own=own: getattr(vision, name)(**small, **own), images) for name, own in turned.items()
    }
    made["vit"] = (lambda: vision.vit(**small, heads=2, depth=2), images)
    for reads in ("own", "all", "constant"):
        made[f"plstm_vis {reads}"] = (
            lambda reads=reads: vision.plstm_vis(**small, heads=2, depth=2, size=(16, 16), reads=reads),
            images,
        )

    def language() -> Any:
        op = stmlang.compile("std:chain/gla", time=5, **SMALL)
        return LanguageModel(lambda key: GLA(op, 6, key=key), vocabulary=7, dim=6, depth=2, key=KEY)

    return {**made, "language": (language, tokens)}


MODELS = models()
QUICK = ("plstm_vis own", "language")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in MODELS])
def test_types_of_a_model(name: str) -> None:
    """Value and gradient are traced where every type says how an array lies along the mesh."""
    make, batch = MODELS[name]
    mesh = along(AxisType.Explicit)
    with jax.set_mesh(mesh):
        _, result = eqx.filter_eval_shape(both, *placed(mesh, make(), batch))
    assert result.sharding.spec[0] == "batch"


@KINDS
def test_parameters_are_the_same_on_every_mesh(kind: AxisType) -> None:
    expected, _ = chain()
    with jax.set_mesh(along(kind)):
        actual, _ = chain()
    for one, several in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        assert np.array_equal(one, several)
