"""Graphs that are divided among devices: value and gradient of one device, nothing sent but sums of gradients."""

from __future__ import annotations

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

import stmlang
from stmlang.graph import Bucket, batch, shares
from stmlang.models.graph import PLSTM
from stmlang.nn import ScanLayer
from stmlang.source.diagnostic import SpecError
from tests.runtime.test_graphs import BODIES, GRAPHS, features, layer, spec

SENT = re.compile(r"(all-gather|all-to-all|collective-permute|all-reduce|reduce-scatter)(?:-start)?\(")
QUICK = [("P", 3), ("rank one", 2), ("means", 8), ("degrees", 4)]
CASES = [
    *QUICK,
    *(pytest.param(name, n, marks=pytest.mark.slow) for name in BODIES for n in (2, 3, 4, 8) if (name, n) not in QUICK),
]


def along(devices: int, kind: AxisType = AxisType.Auto) -> Mesh:
    return jax.make_mesh((devices,), ("x",), axis_types=(kind,), devices=jax.devices()[:devices])


def divided(name: str, devices: int, kind: AxisType = AxisType.Auto) -> Any:
    op = stmlang.compile(spec(name), dtype="float64", mesh=along(devices, kind), shard={"graphs": "x"})
    assert isinstance(op, stmlang.ShardedGraphScan)
    return op


def both(made: Any, on: Any, x: jax.Array, e: jax.Array | None) -> Any:
    """The result, and the gradient of a sum of sines of it in parameters and features."""

    def loss(arguments: Any) -> tuple[jax.Array, jax.Array]:
        made, x, e = arguments
        result = made(x, on=on, edge_features=e)
        return jnp.sum(jnp.where(x[..., :1] != 0, jnp.sin(result), 0)), result

    (_, result), gradient = eqx.filter_value_and_grad(loss, has_aux=True)((made, x, e))
    return result, gradient


def learned(slope: Any) -> list[jax.Array]:
    return jax.tree.leaves(eqx.filter(slope, eqx.is_inexact_array))


def close(actual: Any, expected: Any) -> None:
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10), actual, expected)


@pytest.mark.parametrize(("name", "devices"), CASES)
def test_results_of_one_device(name: str, devices: int) -> None:
    """Six graphs, one of them empty, so that shares are uneven, and some of eight have none. All are compared but padding."""
    made, (x, e) = layer(name), features(GRAPHS)
    here, there = batch(GRAPHS), shares(GRAPHS, devices)
    other = eqx.tree_at(lambda made: made.op, made, divided(name, devices))
    placed = [None if not made.leaves.reads_edges else jnp.asarray(on.edges(e)) for on in (here, there)]
    run = eqx.filter_jit(both)
    result, (slope, of_x, of_e) = run(made, made.op.at(here), jnp.asarray(here.nodes(x)), placed[0])
    on, x_there = other.op.at(there), jnp.asarray(there.nodes(x))
    result_there, (slope_there, of_x_there, of_e_there) = run(other, on, x_there, placed[1])
    close(there.split_nodes(result_there), here.split_nodes(result))
    close(there.split_nodes(of_x_there), here.split_nodes(of_x))
    close(
        jax.tree.leaves(eqx.filter(slope_there, eqx.is_inexact_array)), jax.tree.leaves(eqx.filter(slope, eqx.is_inexact_array))
    )
    if of_e is not None:
        close(there.split_edges(of_e_there), here.split_edges(of_e))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def test_nothing_is_sent_but_sums_of_gradients(kind: AxisType) -> None:
    made, (x, e) = layer("rank one"), features(GRAPHS)
    op, there = divided("rank one", 2, kind), shares(GRAPHS, 2)
    other, on = eqx.tree_at(lambda made: made.op, made, op), op.at(there)
    arguments = (other, on, *jax.device_put((there.nodes(x), there.edges(e)), op.along.lies))

    def forward(made: Any, on: Any, x: jax.Array, e: jax.Array) -> jax.Array:
        """What each graph's nodes sum up to: read-outs need nothing of other devices either."""
        y = made(x, on=on, edge_features=e)
        return on.each(lambda _, y, of: jax.ops.segment_sum(y, of.graph, len(of.graph_mask)), y, there.arrays)

    compiled = eqx.filter_jit(forward).lower(*arguments).compile()
    result = compiled(*arguments)
    assert result.sharding.spec[0] == "x"
    assert not SENT.findall(compiled.compiled.as_text())
    here = batch(GRAPHS)
    parts = here.split_nodes(made(here.nodes(x), on=made.op.at(here), edge_features=here.edges(e)))
    close(np.asarray(result)[there.arrays.graph_mask], np.stack([part.sum(0) for part in parts]))
    backward = eqx.filter_jit(both).lower(*arguments).compile()
    assert set(SENT.findall(backward.compiled.as_text())) == {"all-reduce"}


def test_a_call_and_a_model() -> None:
    """Arrays of a call have an axis of devices in front, constants none; a model is mapped over what is made of shares."""
    op = divided("degrees", 3)
    on, there = op.at(GRAPHS), shares(GRAPHS, 3)
    random = np.random.default_rng(0)
    signature = on.signature
    inputs = {name: jnp.asarray(random.standard_normal(shape)) for name, shape in signature.inputs.items()}
    gates = {name: jnp.asarray(random.standard_normal(shape)) for name, shape in signature.gates.items()}
    whole = {leaf.name for leaf in op.scan.leaves if leaf.kind == "param"}
    assert whole
    assert all((shape[0] == 3) != (name in whole) for name, shape in signature.gates.items())
    result = on(**inputs, gates=gates)
    assert result.shape == signature.result
    assert on.node_shape == (3, there.bucket.nodes)
    for k, part in enumerate(there.batches):
        own = {name: gate if name in whole else gate[k] for name, gate in gates.items()}
        alone = op.one.at(part)(**{name: array[k] for name, array in inputs.items()}, gates=own)
        close(part.split_nodes(result[k]), part.split_nodes(alone))

    ops = [stmlang.compile(f"std:plstm/graph_{mode}", heads=2, key=2, value=2) for mode in "pd"]
    model = PLSTM(*ops, dim=4, pairs=1, classes=3, node_features=6, edge_features=5, key=jax.random.key(0))
    x, e = features(GRAPHS)
    along_x = PartitionSpec("x")
    mapped = jax.shard_map(jax.vmap(model), mesh=op.along.mesh, in_specs=along_x, out_specs=along_x)
    logits = jax.jit(mapped)(model.prepare(there, x, e))
    expected = jax.jit(model)(model.prepare(batch(GRAPHS), x, e))
    np.testing.assert_allclose(np.asarray(logits)[there.arrays.graph_mask], expected[: len(GRAPHS)], rtol=1e-4, atol=1e-5)


def test_a_function_is_compiled_once_for_a_bucket() -> None:
    op = divided("means", 2)
    room = Bucket.covering([each for graphs in (GRAPHS, GRAPHS[:2]) for each in shares(graphs, 2).batches])
    traced: list[int] = []

    @jax.jit
    def call(on: Any, *arguments: Any) -> jax.Array:
        traced.append(1)
        return on(*arguments)

    for graphs in (GRAPHS, GRAPHS[:2]):
        on = op.at(shares(graphs, 2, bucket=room))
        shapes = on.signature.inputs, on.signature.gates
        inputs, gates = ({name: np.ones(shape) for name, shape in each.items()} for each in shapes)
        jax.eval_shape(call, on, *inputs.values(), gates)
    assert len(traced) == 1


def test_dropout_is_drawn_for_each_device() -> None:
    op = divided("means", 2)
    made = ScanLayer(op, 4, key=jax.random.key(0), edge_dim=1, dropout=0.5)
    there = shares([GRAPHS[2], GRAPHS[2]], 2)
    x, e = jnp.ones((*op.at(there).node_shape, 4)), jnp.ones((2, there.bucket.edges, 1))
    first, second = made(x, on=op.at(there), edge_features=e, key=jax.random.key(1))
    assert not np.array_equal(first == 0, second == 0)


def test_what_is_said_and_refused() -> None:
    op = divided("P", 3)
    on = op.at(GRAPHS)
    assert "a batch of one bucket on each of 3 devices of the mesh axis x" in on.explain()
    assert "0 rounds, 0 B between all devices, the least possible" in on.explain()
    assert "3 devices" in repr(on)
    assert "3 devices" in repr(op)
    with pytest.raises(SpecError, match=r"STM3508.*2 shares"):
        op.at(shares(GRAPHS, 2))
    with pytest.raises(SpecError, match="STM3301"):
        op(1, 2)
    with pytest.raises(SpecError, match="STM3301"):
        op.plan  # noqa: B018
    with pytest.raises(SpecError, match="STM5604"):
        on.gating_matrix({})
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        on.nothing  # noqa: B018
    made = ScanLayer(op, 6, edge_dim=5, key=jax.random.key(0))
    x = jnp.ones((*on.node_shape, 6))
    with pytest.raises(SpecError, match=r"STM5604.*`return_state`"):
        made(x, on=on, return_state=True)
    with pytest.raises(SpecError, match="STM5202"):
        made(x)
    with pytest.raises(SpecError, match="STM5201"):
        on(*(jnp.ones(shape[1:]) for shape in on.signature.inputs.values()), {})
