"""Scans whose nodes lie on several devices: value, states and gradient of one device, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import stmlang
from stmlang.cost.exchange import Border, Side, exchanges
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
VOLUME = """scan space(heads = 1, key = 2, value = 2) on grid(depth, rows, cols) {
    directions +depth -rows +cols, -depth -rows +cols
    source[out]         = sigmoid(linear(x))
    transition[out, in] = tanh(linear(x)) / 3
    mark[in]            = sigmoid(linear(x))
}"""
NORMALIZED = """scan means(heads = 1, key = 2, value = 2) on grid(rows, cols) {
    directions both concat
    normalize mlstm
    source[out]         = exp(linear(x))
    transition[out, in] = sigmoid(linear(x)) / 2
    mark[in]            = sigmoid(linear(x))
}"""
GATES = """scan constant(heads = 1, key = 2, value = 2) on {} {{
    directions both
    source     = {}
    transition = {}
    mark       = {}
}}"""
Pieces = dict[str, int]
"""Into how many pieces the axes are cut that are."""
# Text, pieces, how devices tell each other, sizes.
CASES: list[tuple[str, Pieces, str, dict[str, int]]] = [
    ("std:plstm/chain", {"time": 2}, "ring", {"time": 5, **SMALL}),
    ("std:plstm/chain", {"time": 8}, "rounds", {"time": 8, **SMALL}),
    (BOTH, {"time": 3}, "gather", {"time": 5}),
    (BOTH, {"time": 3}, "wavefront", {"time": 4}),
    (TRACKED, {"time": 3}, "rounds", {"time": 3}),
    ("std:chain/mlstm", {"time": 3}, "ring", {"time": 6, **SMALL}),
    (GRID, {"rows": 2}, "gather", {"rows": 2, "cols": 3}),
    (GRID, {"rows": 2, "cols": 2}, "wavefront", {"rows": 3, "cols": 2}),
    ("std:plstm/image_p", {"rows": 2, "cols": 4}, "wavefront", {"rows": 2, "cols": 4, **SMALL}),
    ("std:plstm/image_d", {"rows": 2, "cols": 2}, "ring", {"rows": 2, "cols": 4, **SMALL}),
    (GATES.format("chain(time)", 0, 0, 0), {"time": 2}, "ring", {"time": 5}),
    (GATES.format("chain(time)", 1, 0, "linear(x)"), {"time": 3}, "wavefront", {"time": 7}),
]
MESHES = [(2, 1), (1, 2), (2, 2), (2, 4), (4, 2), (3, 2)]
TILES = [
    (text, {"rows": rows, "cols": cols}, way, {"rows": 5, "cols": 7} | sizes)
    for text, sizes in ((GRID, {}), ("std:plstm/image_p", SMALL), ("std:plstm/image_d", SMALL))
    for rows, cols in MESHES
    for way in (("wavefront", "ring") if text is GRID else ("wavefront",))
]
SLOW: list[tuple[str, Pieces, str, dict[str, int]]] = [
    (BOTH, {"time": 4}, "rounds", {"time": 11}),
    ("std:chain/deltanet", {"time": 4}, "gather", {"time": 7, **SMALL}),
    ("std:chain/deltanet", {"time": 4}, "wavefront", {"time": 7, **SMALL}),
    ("std:chain/mamba", {"time": 3}, "rounds", {"time": 7, "key": 2, "value": 2}),
    ("std:chain/linear_attention", {"time": 2}, "ring", {"time": 5, **SMALL}),
    ("std:plstm/chain", {"time": 2}, "gather", {"time": 2, **SMALL}),
    ("std:plstm/chain", {"time": 3}, "gather", {"time": 13, **SMALL}),
    (GRID, {"rows": 3}, "rounds", {"rows": 4, "cols": 5}),
    (GRID, {"cols": 2}, "ring", {"rows": 2, "cols": 3}),
    ("std:plstm/image_d", {"rows": 4}, "rounds", {"rows": 4, "cols": 3, **SMALL}),
    ("std:plstm/image_p", {"rows": 2}, "gather", {"rows": 4, "cols": 3, **SMALL}),
    ("std:plstm/image_p", {"cols": 2}, "ring", {"rows": 2, "cols": 3, **SMALL}),
    ("std:plstm/image_tracking", {"rows": 2, "cols": 2}, "wavefront", {"rows": 2, "cols": 2, "heads": 1, "key": 2, "value": 1}),
    (NORMALIZED, {"rows": 2, "cols": 2}, "wavefront", {"rows": 2, "cols": 3}),
    (VOLUME, {"depth": 2}, "rounds", {"depth": 3, "rows": 2, "cols": 2}),
    (VOLUME, {"rows": 2}, "ring", {"depth": 1, "rows": 3, "cols": 2}),
    (VOLUME, {"cols": 2}, "wavefront", {"depth": 2, "rows": 1, "cols": 2}),
    (VOLUME, {"depth": 2, "cols": 2}, "wavefront", {"depth": 3, "rows": 2, "cols": 2}),
    (VOLUME, {"cols": 2, "rows": 2, "depth": 2}, "wavefront", {"depth": 2, "rows": 2, "cols": 3}),
    *(
        (GATES.format("chain(time)", *gates), {"time": 3}, way, {"time": 7})
        for gates in ((0, 1, 1), (1, 1, 0), ("param(0.5)", 0, 1), ("linear(x)", "param(0.5)", 0))
        for way in ("ring", "rounds", "gather", "wavefront")
    ),
    (GATES.format("grid(rows, cols)", 0, 0, 0), {"rows": 2, "cols": 3}, "wavefront", {"rows": 3, "cols": 5}),
    (GATES.format("grid(rows, cols)", 1, 0, "linear(x)"), {"rows": 2, "cols": 2}, "ring", {"rows": 3, "cols": 3}),
    *TILES,
]


def along(*sizes: int, kind: AxisType = AxisType.Auto) -> Mesh:
    """A mesh of axes x, y and so on."""
    types, devices = (kind,) * len(sizes), jax.devices()[: prod(sizes)]
    return jax.make_mesh(sizes, tuple("xyz"[: len(sizes)]), axis_types=types, devices=devices)


def sharded(text: str, pieces: Pieces, way: str | None = None, kind: AxisType = AxisType.Auto, **options: Any) -> ShardedScan:
    """The scan in pieces, by a way that may be another than the one that was chosen."""
    mesh, shard = along(*pieces.values(), kind=kind), dict(zip(pieces, "xyz", strict=False))
    op: Any = stmlang.compile(text, mesh=mesh, shard=shard, **options)
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
    ("text", "pieces", "way", "sizes"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_results_of_one_device(text: str, pieces: Pieces, way: str, sizes: Mapping[str, int]) -> None:
    op: Any = stmlang.compile(text, dtype="float64", **sizes)
    arguments, states = values(op)
    expected = both(op, arguments, states)
    actual = both(sharded(text, pieces, way, dtype="float64", **sizes), arguments, states)
    for one, several in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-10, atol=1e-11)


@pytest.mark.filterwarnings("ignore::stmlang.StabilityWarning")
@pytest.mark.parametrize("gates", [(1, "param(0.2)", 1), ("param(0.5)", 0.25, 1)])
def test_gates_of_which_some_are_numbers(gates: tuple[Any, Any, Any]) -> None:
    """Those that are differ along no axis of the mesh, the others do, and one impulse response is made of both in a loop."""
    text, sizes = GATES.format("grid(rows, cols)", *gates), {"rows": 3, "cols": 3}
    op: Any = stmlang.compile(text, dtype="float64", strategy="impulse", **sizes)
    arguments, states = values(op)
    expected = both(op, arguments, states)
    actual = both(sharded(text, {"rows": 2}, "ring", dtype="float64", strategy="impulse", **sizes), arguments, states)
    for one, several in zip(jax.tree.leaves(expected), jax.tree.leaves(actual), strict=True):
        np.testing.assert_allclose(several, one, rtol=1e-10, atol=1e-11)


@pytest.mark.filterwarnings("ignore::stmlang.StabilityWarning")
def test_a_gating_matrix_inside_of_shard_map() -> None:
    """Of gates that differ from device to device, and of such that do not."""
    op: Any = stmlang.compile(GATES.format("grid(rows, cols)", 1, "param(0.2)", 1), strategy="impulse", rows=3, cols=3)
    two = {name: jnp.stack([jnp.full(shape, 0.1), jnp.full(shape, 0.3)]) for name, shape in op.signature.gates.items()}

    def matrix(gates: dict[str, jax.Array]) -> jax.Array:
        return op.gating_matrix({name: array[0] for name, array in gates.items()})[None]

    lies = PartitionSpec("x")
    several = jax.jit(jax.shard_map(matrix, mesh=along(2), in_specs=lies, out_specs=lies))(two)
    for number, one in enumerate(several):
        close(op.gating_matrix({name: array[number] for name, array in two.items()}), one)


def close(one: Any, other: Any) -> None:
    """Results in float32."""
    np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)


def test_axes_of_a_mesh_in_another_order() -> None:
    """The first axis of the grid along the last one of the mesh, of which a third cuts nothing."""
    sizes = {"rows": 2, "cols": 4}
    one: Any = stmlang.compile(GRID, **sizes)
    arguments, states = values(one)
    several: Any = stmlang.compile(GRID, mesh=along(4, 1, 2), shard={"rows": "z", "cols": "x"}, strategy="recurrent", **sizes)
    jax.tree.map(close, *(op(*arguments, initial=states, return_state=True) for op in (one, several)))


def test_a_batch_of_tiles() -> None:
    """Mapped over a batch that lies along a third axis of the mesh."""
    one: Any = stmlang.compile(GRID, rows=2, cols=2)
    arguments, _ = values(one)
    batch = jax.tree.map(lambda array: jnp.stack([array, -array]), arguments)
    mesh = along(2, 2, 2)
    several: Any = stmlang.compile(GRID, mesh=mesh, shard={"rows": "x", "cols": "y"}, strategy="recurrent", rows=2, cols=2)
    spread = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("z")))
    close(jax.jit(jax.vmap(one))(*batch), jax.jit(jax.vmap(several))(*spread))


def test_arrays_stay_where_they_lie() -> None:
    """Nodes that lie along the mesh are not gathered: what is sent is states."""
    op = sharded("std:plstm/chain", {"time": 4}, "ring", time=64, **SMALL)
    arguments, _ = values(op)
    lies = NamedSharding(op.split.tiling.mesh, PartitionSpec("x"))
    placed = jax.tree.map(lambda array: jax.device_put(array, lies) if array.shape[0] == 64 else array, arguments)
    compiled = jax.jit(lambda *arguments: op(*arguments)).lower(*placed).compile()
    assert compiled(*placed).sharding.spec[0] == "x"
    text = compiled.as_text()
    assert text.count(" collective-permute(") + text.count(" collective-permute-start(") == 1
    assert not re.search(r" (all-gather|all-to-all|all-reduce)(-start)?\(", text)


def lowered(**sizes: int) -> Any:
    """The program of a grid in two by two tiles, whose nodes lie where they belong."""
    op = sharded(GRID, {"rows": 2, "cols": 2}, "wavefront", strategy="recurrent", config={}, **sizes)
    arguments, _ = values(op)
    placed = jax.device_put(arguments, NamedSharding(op.split.tiling.mesh, PartitionSpec("x", "y")))
    return jax.jit(lambda *arguments: op(*arguments)).lower(*placed)


def test_tiles_stay_where_they_lie() -> None:
    """In each of two rounds every direction hands states on along both axes, and nothing else is sent. The program is no longer
    for a larger grid."""
    text = lowered(rows=4, cols=6).compile().as_text()
    assert text.count(" collective-permute(") + text.count(" collective-permute-start(") == 2 * 2 * 4
    assert not re.search(r" (all-gather|all-to-all|all-reduce)(-start)?\(", text)
    small, large = (lowered(rows=rows, cols=6).as_text() for rows in (8, 32))
    assert small.count("\n") == large.count("\n")


def test_a_layer_and_an_explicit_mesh() -> None:
    key = jax.random.key(0)
    op: Any = stmlang.compile("std:plstm/chain", time=6, **SMALL)
    mesh = along(2, kind=AxisType.Explicit)
    other: Any = stmlang.compile("std:plstm/chain", mesh=mesh, shard={"time": "x"}, time=6, **SMALL)
    x = jax.random.normal(key, (6, 4))
    expected = ScanLayer(op, 4, key=key)(x)
    close(expected, jax.jit(lambda layer, x: layer(x))(ScanLayer(other, 4, key=key), x))


def test_tiles_on_an_explicit_mesh() -> None:
    one: Any = stmlang.compile(GRID, rows=3, cols=2)
    arguments, _ = values(one)
    several = sharded(GRID, {"rows": 2, "cols": 2}, kind=AxisType.Explicit, strategy="recurrent", rows=3, cols=2)
    close(one(*arguments), several(*arguments))


@pytest.mark.parametrize(
    ("code", "text", "options"),
    [
        ("STM5601", "std:plstm/chain", {"shard": {"time": "y"}}),
        ("STM5601", "std:plstm/chain", {"shard": {"time": "x"}, "mesh": 2}),
        ("STM5601", "std:plstm/chain", {"shard": {}}),
        ("STM5601", "std:plstm/chain", {}),
        ("STM5601", GRID, {"shard": {"rows": "x", "cols": "x"}, "time": None, "rows": 2, "cols": 2}),
        ("STM5602", "std:plstm/chain", {"shard": {"rows": "x"}}),
        ("STM5602", "std:plstm/chain", {"shard": {"time": "x"}, "time": 1}),
        ("STM5602", GRID, {"shard": {"rows": "x", "time": "y"}, "mesh": along(2, 2), "time": None, "rows": 2, "cols": 2}),
        ("STM5602", GRID, {"shard": {"rows": "x", "cols": "y"}, "mesh": along(2, 2), "time": None, "rows": 2, "cols": 1}),
        ("STM5602", GRID, {"shard": {"rows": "x"}, "time": None, "rows": 2, "cols": 0}),
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
    op = sharded("std:plstm/chain", {"time": 2}, time=4, **SMALL)
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
    border = Border(lanes=2, mixed=1, free=12, bytes=4, sides=(Side(pieces=4, edges=1, whole=1),))
    ways = {each.way: each for each in exchanges(border, 1, 1e-3, TARGETS["h200"], scaled=False)}
    assert border.least == 3 * 96
    assert (ways["gather"].bytes, ways["gather"].rounds) == (4 * 3 * (96 + 8), 1)
    assert (ways["rounds"].bytes, ways["rounds"].rounds) == ((3 + 3) * (96 + 8) + 2 * 96, 3)
    assert (ways["ring"].bytes, ways["ring"].rounds, ways["ring"].passes) == (3 * 3 * 96, 3, 3)
    assert (ways["wavefront"].bytes, ways["wavefront"].rounds, ways["wavefront"].passes) == (3 * 96, 3, 2)
    assert exchanges(border, 1, 1e-3, TARGETS["h200"], scaled=False)[0].passes == 2
    assert [each.way for each in exchanges(border, 1, 1e-3, TARGETS["h200"], scaled=True)] == ["ring"]


def test_the_bytes_that_tiles_are_sent() -> None:
    """A grid of 5 rows and 8 columns on 2 by 4 devices, whose tiles have 3 and 2 and whose edges 12 numbers: by hand."""
    border = Border(lanes=1, mixed=5, free=12, bytes=4, sides=(Side(2, edges=2, whole=8), Side(4, edges=3, whole=5)))
    ways = {each.way: each for each in exchanges(border, 2, 1e-3, TARGETS["h200"], scaled=False)}
    assert set(ways) == {"ring", "wavefront"}
    assert border.least == (8 * 1 + 5 * 3) * 48
    assert (ways["wavefront"].bytes, ways["wavefront"].rounds) == (2 * (2 * 4 + 3 * 3 * 2) * 48, 4)
    assert (ways["ring"].bytes, ways["ring"].passes) == (4 * ways["wavefront"].bytes, 4)


def test_explain_says_what_is_sent() -> None:
    op = sharded("std:plstm/chain", {"time": 4}, time=10, **SMALL)
    text = op.explain()
    assert "shared along time: 10 on 4 devices of the mesh axis x, 3 on the first 2, 2 on the rest" in text
    assert text.count("of the least possible") == len(op.split.ranked) == 4


def test_explain_says_what_tiles_are_sent() -> None:
    text = sharded(GRID, {"rows": 2, "cols": 2}, rows=3, cols=2).explain()
    assert "shared along rows: 3 on 2 devices of the mesh axis x, 2 on the first 1, 1 on the rest" in text
    assert "shared along cols: 2 on 2 devices of the mesh axis y, 1 each" in text
    assert "states that cross cuts are told over links of" in text
    assert "wavefront: 2 rounds, 2 passes of states" in text
