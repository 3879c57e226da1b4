"""Scans whose nodes lie on several devices: value, states and gradient of one device, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import stmlang
from stmlang.cost.exchange import Border, exchanges, least
from stmlang.cost.target import TARGETS
from stmlang.nn import ScanLayer
from stmlang.runtime.sharded import ShardedScan
from stmlang.source.diagnostic import SpecError

SMALL = {"heads": 2, "key": 3, "value": 2}
BOTH = """scan both(heads = 2, key = 2, value = 2) on chain(time) {
    directions both
    source[key]     = sigmoid(linear(x))
    transition[key] = sigmoid(linear(x, bias = 1))
    mark            = sigmoid(linear(x))
}"""
GRID = """scan crossing(heads = 1, key = 2, value = 2) on grid(rows, cols) {
    directions all
    source[out]         = sigmoid(linear(x))
    transition[out, in] = tanh(linear(x)) / 2
    mark[in]            = sigmoid(linear(x))
}"""
TRACKED = """scan tracked(heads = 1, key = 3, value = 2, track = 2) on chain(time) {
    k                                    = l2norm(k)
    source[track]                        = sigmoid(linear(x))
    transition[key, key', track, track'] = (eye[key, key'] - k[key] * k[key']) * [[0.5, 0.4], [-0.4, 0.5]][track, track']
    mark[track]                          = linear(x)
}"""
# Text, devices, the axis that is cut, how devices tell each other, sizes.
CASES: list[tuple[str, int, str, str, dict[str, int]]] = [
    ("std:plstm/chain", 2, "time", "ring", {"time": 5, **SMALL}),
    ("std:plstm/chain", 8, "time", "rounds", {"time": 8, **SMALL}),
    (BOTH, 3, "time", "gather", {"time": 5}),
    (TRACKED, 3, "time", "rounds", {"time": 3}),
    ("std:chain/mlstm", 3, "time", "ring", {"time": 6, **SMALL}),
    (GRID, 2, "rows", "gather", {"rows": 2, "cols": 3}),
]
SLOW: list[tuple[str, int, str, str, dict[str, int]]] = [
    (BOTH, 4, "time", "rounds", {"time": 11}),
    ("std:chain/deltanet", 4, "time", "gather", {"time": 7, **SMALL}),
    ("std:chain/mamba", 3, "time", "rounds", {"time": 7, "key": 2, "value": 2}),
    ("std:chain/linear_attention", 2, "time", "ring", {"time": 5, **SMALL}),
    ("std:plstm/chain", 2, "time", "gather", {"time": 2, **SMALL}),
    ("std:plstm/chain", 3, "time", "gather", {"time": 13, **SMALL}),
    (GRID, 3, "rows", "rounds", {"rows": 4, "cols": 5}),
    (GRID, 2, "cols", "ring", {"rows": 2, "cols": 3}),
    ("std:plstm/image_d", 4, "rows", "rounds", {"rows": 4, "cols": 3, **SMALL}),
    ("std:plstm/image_p", 2, "rows", "gather", {"rows": 4, "cols": 3, **SMALL}),
    ("std:plstm/image_p", 2, "cols", "ring", {"rows": 2, "cols": 3, **SMALL}),
]


def along(devices: int, kind: AxisType = AxisType.Auto) -> Mesh:
    return jax.make_mesh((devices,), ("x",), axis_types=(kind,), devices=jax.devices()[:devices])


def sharded(text: str, devices: int, axis: str, way: str | None = None, **options: Any) -> ShardedScan:
    """The scan in pieces, by a way that may be another than the one that was chosen."""
    op: Any = stmlang.compile(text, mesh=along(devices), shard={axis: "x"}, **options)
    assert isinstance(op, ShardedScan)
    chosen = next((each for each in op.split.ranked if each.way == way), op.split.exchange)
    assert way in (None, chosen.way)
    return ShardedScan(op.pieces, replace(op.split, exchange=chosen))


def values(op: Any) -> tuple[Any, Any]:
    """Arguments and a state that enters, drawn at random."""
    random = np.random.default_rng(0)

    def drawn(shape: tuple[int, ...]) -> jax.Array:
        return jnp.asarray(random.standard_normal(shape), op.dtype)

    signature = op.signature
    gates = {name: drawn(shape) for name, shape in signature.gates.items()}
    states = tuple({port: drawn(shape) for port, shape in ports.items()} for ports in signature.initial)
    return (*(drawn(shape) for shape in signature.inputs.values()), gates), states


def both(op: Any, arguments: Any, states: Any) -> Any:
    """The result, the final state, and the gradient of a sum of sines of them."""

    def loss(arguments: Any, states: Any) -> tuple[jax.Array, Any]:
        results = op(*arguments, initial=states, return_state=True)
        return sum((jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(results)), jnp.zeros(())), results

    return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(arguments, states)


@pytest.mark.filterwarnings("ignore::stmlang.StabilityWarning")
@pytest.mark.parametrize(
    ("text", "devices", "axis", "way", "sizes"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_results_of_one_device(text: str, devices: int, axis: str, way: str, sizes: Mapping[str, int]) -> None:
    op: Any = stmlang.compile(text, dtype="float64", **sizes)
    arguments, states = values(op)
    expected = both(op, arguments, states)
    actual = both(sharded(text, devices, axis, way, dtype="float64", **sizes), arguments, states)
    for one, several in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-10, atol=1e-11)


def test_arrays_stay_where_they_lie() -> None:
    """Nodes that lie along the mesh are not gathered: what is sent is states."""
    op = sharded("std:plstm/chain", 4, "time", "ring", time=64, **SMALL)
    arguments, _ = values(op)
    lies = NamedSharding(op.split.cut.mesh, PartitionSpec("x"))
    placed = jax.tree.map(lambda array: jax.device_put(array, lies) if array.shape[0] == 64 else array, arguments)
    compiled = jax.jit(lambda *arguments: op(*arguments)).lower(*placed).compile()
    assert compiled(*placed).sharding.spec[0] == "x"
    text = compiled.as_text()
    assert text.count(" collective-permute(") + text.count(" collective-permute-start(") == 1
    assert not re.search(r" (all-gather|all-to-all|all-reduce)(-start)?\(", text)


def test_a_layer_and_an_explicit_mesh() -> None:
    key = jax.random.key(0)
    op: Any = stmlang.compile("std:plstm/chain", time=6, **SMALL)
    mesh = along(2, AxisType.Explicit)
    other: Any = stmlang.compile("std:plstm/chain", mesh=mesh, shard={"time": "x"}, time=6, **SMALL)
    x = jax.random.normal(key, (6, 4))
    expected = ScanLayer(op, 4, key=key)(x)
    actual = jax.jit(lambda layer, x: layer(x))(ScanLayer(other, 4, key=key), x)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("code", "text", "options"),
    [
        ("STM5601", "std:plstm/chain", {"shard": {"time": "y"}}),
        ("STM5601", "std:plstm/chain", {"shard": {"time": "x"}, "mesh": 2}),
        ("STM5601", "std:plstm/chain", {"shard": {}}),
        ("STM5601", "std:plstm/chain", {}),
        ("STM5602", "std:plstm/chain", {"shard": {"rows": "x"}}),
        ("STM5602", "std:plstm/chain", {"shard": {"time": "x"}, "time": 1}),
        ("STM5603", "std:plstm/graph_p", {"shard": {"nodes": "x"}, "time": None}),
        ("STM5603", BOTH.replace("mark            = ", "mark[in] = neighbour(in) * "), {"shard": {"time": "x"}}),
    ],
)
def test_refusals(code: str, text: str, options: dict[str, Any]) -> None:
    settings = {"mesh": along(2), "time": 4, **options}
    settings = {name: value for name, value in settings.items() if value is not None}
    with pytest.raises(SpecError) as raised:
        stmlang.compile(text, **settings)
    assert [each.code for each in raised.value.diagnostics] == [code]
    assert raised.value.diagnostics[0].help


def test_a_mask_is_refused_and_what_only_one_device_knows() -> None:
    op = sharded("std:plstm/chain", 2, "time", time=4, **SMALL)
    arguments, _ = values(op)
    with pytest.raises(SpecError, match="STM5604"):
        op(*arguments, mask=jnp.ones(4, bool))
    with pytest.raises(SpecError, match="has no `gating_matrix`"):
        op.gating_matrix({})
    assert not hasattr(op, "export")
    with pytest.raises(AttributeError, match="'ShardedScan' object has no attribute 'nothing'"):
        op.nothing  # noqa: B018


def test_the_bytes_that_are_sent() -> None:
    """Of four devices, whose states are 24 numbers and transitions 2: counted by hand."""
    border = Border(lanes=2, mixed=1, free=12, bytes=4)
    ways = {each.way: each for each in exchanges(border, 1, 4, 1e-3, TARGETS["h200"], scaled=False)}
    assert least(border, 1, 4) == 3 * 96
    assert (ways["gather"].bytes, ways["gather"].rounds) == (4 * 3 * (96 + 8), 1)
    assert (ways["rounds"].bytes, ways["rounds"].rounds) == ((3 + 3) * (96 + 8) + 2 * 96, 3)
    assert (ways["ring"].bytes, ways["ring"].rounds, ways["ring"].passes) == (3 * 3 * 96, 3, 3)
    assert exchanges(border, 1, 4, 1e-3, TARGETS["h200"], scaled=False)[0].passes == 2
    assert [each.way for each in exchanges(border, 1, 4, 1e-3, TARGETS["h200"], scaled=True)] == ["ring"]


def test_explain_says_what_is_sent() -> None:
    op = sharded("std:plstm/chain", 4, "time", time=10, **SMALL)
    text = op.explain()
    assert "shared along time: 10 on 4 devices of the mesh axis x, 3 on the first 2, 2 on the rest" in text
    assert text.count("of the least possible") == len(op.split.ranked) == 3
