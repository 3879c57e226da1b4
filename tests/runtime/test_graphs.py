"""Graphs given at run time: each as by itself, whatever stands beside it; one program for many."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import DAG, Batch, Bucket, batch, packing
from stmlang.graph.build import complete_tree, ragged_dag
from stmlang.graph.levels import node_levels
from stmlang.graph.readers.d8 import read_flow
from stmlang.source.diagnostic import SpecError
from tests.graph.graphs import banded
from tests.graph.test_batch import tudataset
from tests.helpers.data import data_folder

HEAD = "topology g = dag(nodes <= 64, edges <= 160)\nscan s(heads = 2, key = 3, value = 4) on g {\n"
ENDS = "source[out] = sigmoid(linear(x))\nmark[in] = tanh(linear(x, e[in]))\ndirect = sigmoid(linear(x))\n"
BODIES = {
    "P": "directions both\ntransition[out, in] = softmax(linear(x, e[in], e[out]), over = out)\nstabilize P\n",
    "D": "directions both\ntransition[out, in] = tanh(2 * linear(x, e[in], e[out]))\nstabilize D\n",
    "rank one": "directions both\nshare[out] = softmax(linear(x, e[out]), over = out)\n"
    "decay[in] = tanh(linear(x, e[in]))\ntransition[out, in] = decay * share\nstabilize P\n",
    "backward": "directions backward\ntransition[out, in] = softmax(linear(x, e[in], e[out]), over = out)\nstabilize P\n",
    "apart": "directions both concat\ntransition[out, in] = 0.5 * sigmoid(linear(e[in], e[out]))\nstabilize none\n",
    "on the key axis": "transition[out, key] = 0.7 * sigmoid(linear(x, e[out]))\nstabilize none\n",
    "normalized": "transition = sigmoid(linear(x))\nstabilize none\nnormalize sum\n",
    "degrees": "directions both\nrate = param(-0.5)\n"
    "share = tanh(linear(x, log(1 + degree(in)))) * degree(in) ^ rate / degree(out)\ntransition = share\nstabilize P\n",
    "means": "decay[in] = sigmoid(linear(x, e[in]))\ntransition = mean(decay, over = in)\nstabilize none\n",
}


def spec(name: str) -> str:
    return HEAD + ENDS + BODIES[name] + "}"


def random_graph(nodes: int, edges: int, seed: int) -> DAG:
    """Any DAG: parallel edges, isolated nodes, numbers in no topological order."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, max(nodes, 1), (edges, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    number = random.permutation(nodes)
    return ragged_dag(nodes, number[pairs[:, 0]], number[pairs[:, 1]])


GRAPHS = [
    random_graph(5, 8, 0),
    ragged_dag(1, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    random_graph(13, 30, 1),
    complete_tree(2, 3).reversed(),
    ragged_dag(0, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    banded(20, 40, 4, 2),
]


@cache
def scan(name: str, strategy: str | None = None, dtype: Any = "float64") -> stmlang.GraphScan:
    found = stmlang.compile(spec(name), dtype=dtype, strategy=strategy)
    assert isinstance(found, stmlang.GraphScan)
    return found


def layer(name: str, strategy: str | None = None) -> stmlang.nn.ScanLayer:
    """Its parameters at random, so that no gate is the same everywhere."""
    made = stmlang.nn.ScanLayer(scan(name, strategy), dim=6, edge_dim=5, key=jax.random.key(0))
    arrays, rest = eqx.partition(made, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [leaf + 0.3 * jax.random.normal(key, leaf.shape, leaf.dtype) for leaf, key in zip(leaves, keys, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, moved), rest)


def features(dags: list[DAG]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    random = np.random.default_rng(7)
    return [random.standard_normal((dag.node_count, 6)) for dag in dags], [
        random.standard_normal((dag.edge_count, 5)) for dag in dags
    ]


def run(made: Any, on: Batch, x: list[np.ndarray], e: list[np.ndarray]) -> list[np.ndarray]:
    reads = {"edge_features": on.edges(e)} if made.leaves.reads_edges else {}
    return [np.asarray(part) for part in on.split_nodes(called(made, jnp.asarray(on.nodes(x)), made.op.at(on), reads))]


@eqx.filter_jit
def called(made: Any, x: Any, on: Any, reads: Any) -> Any:
    return made(x, on=on, **reads)


@pytest.mark.parametrize("name", BODIES)
def test_every_graph_is_as_by_itself(name: str) -> None:
    """Alone in a bucket for any of them, among others, in another order; and by turns in a larger bucket, or one in its own."""
    made, (x, e) = layer(name), features(GRAPHS)
    single = Bucket.covering(batch([dag]) for dag in GRAPHS)
    together = run(made, batch(GRAPHS), x, e)
    backwards = run(made, batch(GRAPHS[::-1]), x[::-1], e[::-1])[::-1]
    for number, dag in enumerate(GRAPHS):
        (alone,) = run(made, batch([dag], bucket=single), [x[number]], [e[number]])
        for among in (together[number], backwards[number]):
            np.testing.assert_allclose(among, alone, rtol=0, atol=1e-12)
    if list(BODIES).index(name) % 2:
        (own,) = run(made, batch(GRAPHS[:1]), x[:1], e[:1])
        np.testing.assert_allclose(together[0], own, rtol=0, atol=1e-12)
        return
    for among, roomy in zip(together, run(made, batch(GRAPHS, bucket=Bucket(100, 150, 9)), x, e), strict=True):
        np.testing.assert_allclose(among, roomy, rtol=0, atol=1e-12)


RANK_ONE = ("rank one", "on the key axis", "normalized", "degrees", "means")


def every_way() -> list[Any]:
    """The pairs that differ most are not slow."""
    always = {("packed", name) for name in BODIES} | {("recurrent", name) for name in ("D", "backward", "on the key axis")}
    always |= {(strategy, name) for strategy in ("nodes", "packed_nodes") for name in ("P", "rank one", "normalized")}
    always |= {("packed_nodes", "degrees")}
    return [
        pytest.param(name, strategy, marks=() if (strategy, name) in always else pytest.mark.slow)
        for name in BODIES
        for strategy in ("recurrent", "nodes", "packed", "packed_nodes")
    ]


@pytest.mark.parametrize(("name", "strategy"), every_way())
def test_value_and_gradient(name: str, strategy: str) -> None:
    """Against the recurrence; gradients against differences of it, along one direction at random."""
    reason = "rank-one" if strategy.endswith("nodes") and name not in RANK_ONE else None
    if strategy.startswith("packed") and name == "on the key axis":
        reason = "one number per head"
    if reason is not None:
        with pytest.raises(SpecError, match=reason):
            scan(name, strategy).at(batch(GRAPHS))
        return
    on = scan(name, strategy).at(batch(GRAPHS))
    q, k, v, gates = on.example(40)
    real = batch(GRAPHS).node_mask
    random = np.random.default_rng(3)
    weight = random.standard_normal(on.signature.result) * real[:, None, None]
    arguments = (q, k, v, gates)
    change = jax.tree.map(lambda array: random.standard_normal(array.shape), arguments)

    @jax.jit
    def derivatives(on: Any, arguments: Any, change: Any) -> Any:
        """The result; by forward mode and by reverse mode, the derivative of the weighted sum along the change."""

        def total(given: Any) -> tuple[Any, Any]:
            h = on(*given)
            return jnp.sum(h * weight), h

        gradient, h = jax.grad(total, has_aux=True)(arguments)
        _, (slope, _) = jax.jvp(total, (arguments,), (change,))
        return h, slope, sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), gradient, change)))

    h, slope, product = derivatives(on, arguments, change)
    np.testing.assert_allclose(h[real], on.reference(*arguments)[real], rtol=1e-12, atol=1e-12)

    def difference(step: float) -> float:
        ends = [on.reference(*jax.tree.map(lambda a, b, way=way: a + way * b, arguments, change)) for way in (step, -step)]
        return float(np.sum((ends[0] - ends[1]) * weight) / (2 * step))

    wanted = (4 * difference(1e-5) - difference(2e-5)) / 3  # normalizers near zero bend a result much
    assert abs(float(slope) - wanted) < 1e-7 * max(1, abs(wanted))
    assert abs(float(product) - wanted) < 1e-7 * max(1, abs(wanted))


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("P", "recurrent"),
        ("D", "packed"),
        ("rank one", "nodes"),
        ("degrees", "packed_nodes"),
        pytest.param("P", "packed", marks=pytest.mark.slow),
        pytest.param("rank one", "packed_nodes", marks=pytest.mark.slow),
    ],
)
def test_padding_touches_nothing(name: str, strategy: str) -> None:
    """NaN in all that padding brings leaves values and gradients of what is real as they are."""
    made, (x, e) = layer(name, strategy), features(GRAPHS)
    here = batch(GRAPHS)
    on, nodes, edges = made.op.at(here), jnp.asarray(here.nodes(x)), jnp.asarray(here.edges(e))
    q, k, v, gates = on.example(2)
    wrong = [np.where(here.node_mask.reshape(-1, 1, 1), array, np.nan) for array in (q, k, v)]
    real = here.node_mask[:, None, None]
    call = jax.jit(on)
    np.testing.assert_array_equal(np.where(real, call(*wrong, gates), 0), np.where(real, call(q, k, v, gates), 0))

    def loss(made: Any) -> Any:
        y = made(nodes, edge_features=edges, on=on)
        return jnp.sum(jnp.where(here.node_mask[:, None], y, 0) ** 2)

    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(loss))(made)))


@pytest.mark.parametrize("strategy", ["packed", "recurrent", None])
def test_one_program_for_many_graphs(strategy: str | None) -> None:
    """A function that takes the scan as an argument is traced once for all batches that take the same room. Of padding nothing
    is claimed but that it is finite: the recurrence runs along its edges, packed graphs leave them out."""
    count = 0

    @jax.jit
    def step(on: Any, q: Any, k: Any, v: Any, gates: Any) -> Any:
        nonlocal count
        count += 1
        return on(q, k, v, gates)

    found: list[np.ndarray] = []
    for seed in range(5):
        here = batch([banded(20, 40, 4, seed), banded(17, 33, 4, seed + 9)])
        on = scan("P", strategy).at(here)
        arguments = on.example(0)
        result, wanted = np.asarray(step(on, *arguments)), on.reference(*arguments)
        found.append(result[here.node_mask])
        np.testing.assert_allclose(found[-1], wanted[here.node_mask], rtol=0, atol=1e-12)
        assert np.isfinite(result).all()
    assert count <= 2
    assert len({array.tobytes() for array in found}) == 5


def shapes(on: stmlang.CompiledScan) -> tuple[Any, ...]:
    """What a compiled function that is given a scan is compiled anew for."""
    leaves, structure = jax.tree.flatten(on)
    return structure, *((leaf.shape, leaf.dtype) for leaf in leaves)


WIDE = "topology g = dag(nodes <= 1000, edges <= 4000)\n"


@pytest.mark.parametrize(
    ("name", "most"), [("MUTAG", 1), ("PTC_FM", 5), pytest.param("NCI1", 4, marks=pytest.mark.slow), ("PROTEINS", 6)]
)
def test_an_epoch_takes_a_handful_of_programs(name: str, most: int) -> None:
    """Shuffled batches of 64, the last one of what is left; how much padding each program brings is counted beside it."""
    dags, padding = tudataset(name), list[list[float]]()
    for seed, body in enumerate(("P", "D", "rank one")):
        op = stmlang.compile(WIDE + spec(body).split("\n", 1)[1], tuned=False)
        assert isinstance(op, stmlang.GraphScan)
        order, found = np.random.default_rng(seed).permutation(len(dags)).tolist(), set[Any]()
        for first in range(0, len(order), 64):
            here = batch([dags[number] for number in order[first : first + 64]])
            found.add(shapes(op.at(here)))
            real = (sum(here.needs.graphs), here.needs.edges, here.needs.arcs)
            room = (here.room.nodes, here.room.edges, here.room.line_edges)
            padding.append([a / b for a, b in zip(room, real, strict=True)])
        assert len(found) <= most
    assert (np.mean(padding, axis=0) < (1.35, 1.4, 1.55)).all()


@pytest.mark.parametrize("name", ["P", "rank one"])
def test_one_program_for_a_data_set(name: str) -> None:
    """In a bucket that covers its batches, however much they differ in levels, in large graphs and in how dense they are."""
    lists = [
        [banded(20, 40, 4, 0)] * 3,
        [ragged_dag(90, np.arange(89), np.arange(1, 90)), banded(5, 6, 2, 1)],
        [banded(130, 700, 9, 2)],
        [],
        [random_graph(9, 30, seed) for seed in range(6)],
    ]
    text = WIDE + spec(name).split("\n", 1)[1]
    for strategy in (None, "recurrent"):
        op = stmlang.compile(text, strategy=strategy, dtype="float64", tuned=False)
        assert isinstance(op, stmlang.GraphScan)
        traced = 0

        @jax.jit
        def step(on: Any, *arguments: Any) -> Any:
            nonlocal traced
            traced += 1
            return on(*arguments)

        bucket = Bucket.covering(batch(dags) for dags in lists)
        assert len({shapes(op.at(batch(dags, bucket=replace(bucket, room=None)))) for dags in lists}) > 3
        for dags in lists:
            here = batch(dags, bucket=bucket)
            on = op.at(here)
            arguments = on.example(0)
            wanted = on.reference(*arguments)[here.node_mask]
            np.testing.assert_allclose(np.asarray(step(on, *arguments))[here.node_mask], wanted, rtol=0, atol=1e-10)
        assert traced == 1


def test_the_program_does_not_grow_with_the_graph() -> None:
    def length(nodes: int) -> int:
        text = f"topology g = dag(nodes <= 5000, edges <= 9000)\n{spec('P').split(chr(10), 1)[1]}"
        op = stmlang.compile(text)
        assert isinstance(op, stmlang.GraphScan)
        return op.at(banded(nodes, 2 * nodes, 4, 0)).lower_text("stablehlo").count(" = ")

    assert length(200) == length(800) == length(3200)


def test_the_graph_is_known_outside_of_programs_only() -> None:
    here = batch(GRAPHS)
    on = scan("P").at(here)
    assert on.node_shape == (here.bucket.nodes,)
    assert on.edge_count == here.bucket.edges
    assert on.dag.tail.tolist() == here.tail.tolist()
    assert scan("backward").at(here).dag.head.tolist() == here.head.tolist()
    other = scan("P").at(batch(GRAPHS[::-1]))
    assert other.compilation is on.compilation
    assert other.dag.tail.tolist() != on.dag.tail.tolist()
    with pytest.raises(SpecError, match="STM3301"):
        jax.jit(lambda on: on.dag.tail)(on)


def test_forward_mode_batches_and_second_derivatives() -> None:
    """Of the sweep of rows, whose adjoint is written by hand."""
    for strategy in ("packed", "packed_nodes"):
        on = scan("rank one", strategy).at(batch(GRAPHS[:3]))
        arguments = jax.tree.map(np.asarray, on.example(0))
        change = jax.tree.map(lambda array: np.cos(7 * array), arguments)

        @jax.jit
        def slope(given: Any, on: Any = on, change: Any = change) -> Any:
            return jax.jvp(lambda given: jnp.sum(on(*given) ** 2), (given,), (change,))[1]

        ahead = jax.tree.map(lambda a, b: a + 1e-5 * b, arguments, change)
        back = jax.tree.map(lambda a, b: a - 1e-5 * b, arguments, change)
        wanted = float((slope(ahead) - slope(back)) / 2e-5)
        gradient = jax.jit(jax.grad(slope))(arguments)
        product = sum(map(np.vdot, jax.tree.leaves(gradient), jax.tree.leaves(change)))
        assert abs(float(product) - wanted) < 1e-6 * max(1, abs(wanted))
        two = jax.tree.map(lambda a, b: np.stack([a, b]), arguments, ahead)
        mapped, single = jax.jit(jax.vmap(on))(*two), jax.jit(on)
        for k, given in enumerate((arguments, ahead)):
            np.testing.assert_allclose(mapped[k], single(*given), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_small_data_types(dtype: str) -> None:
    for strategy in ("recurrent", "packed"):
        on = scan("P", strategy, dtype).at(batch(GRAPHS))
        arguments = on.example(0)
        real = batch(GRAPHS).node_mask
        found, wanted = np.asarray(on(*arguments), np.float64)[real], on.reference(*arguments)[real]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=(1e-5 if dtype == "float32" else 2e-2) * np.abs(wanted).max())


SEVERAL_CELLS = [
    banded(130, 300, 9, 2),
    banded(20, 40, 4, 0),
    random_graph(200, 500, 3),
    ragged_dag(0, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    banded(64, 120, 9, 2),
    random_graph(65, 90, 4),
]
"""Graphs as large as a cell, a node larger, and of three and four pieces; some in no topological order."""


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("P", "packed"),
        ("apart", "packed"),
        ("rank one", "packed_nodes"),
        pytest.param("D", "packed", marks=pytest.mark.slow),
        pytest.param("degrees", "packed_nodes", marks=pytest.mark.slow),
    ],
)
def test_graphs_of_several_cells(name: str, strategy: str) -> None:
    """Values against the recurrence, gradients against those of a sweep of states."""
    here = batch(SEVERAL_CELLS)
    assert here.room.pairs > 0
    text = WIDE + spec(name).split("\n", 1)[1]
    on, sweep = (stmlang.compile(text, strategy=way, dtype="float64", tuned=False) for way in (strategy, "recurrent"))
    assert isinstance(on, stmlang.GraphScan)
    assert isinstance(sweep, stmlang.GraphScan)
    arguments, real = on.at(here).example(5), here.node_mask
    weight = np.random.default_rng(3).standard_normal(on.at(here).signature.result) * real[:, None, None]

    @jax.jit
    def pulled(on: stmlang.CompiledScan) -> tuple[Any, list[Any]]:
        """The result and the gradient."""
        result, pull = jax.vjp(on, *arguments)
        return result, jax.tree.leaves(pull(jnp.asarray(weight)))

    (result, found), (_, wanted) = pulled(on.at(here)), pulled(sweep.at(here))
    np.testing.assert_allclose(result[real], on.at(here).reference(*arguments)[real], rtol=0, atol=1e-11)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("covered", [False, True])
def test_a_batch_is_packed_once(covered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its room, for both directions of two scans by two strategies, and for the tables of each when it comes again."""
    bucket = Bucket.covering([batch(SEVERAL_CELLS)]) if covered else None
    packings: list[int] = []

    def counting(counts: list[int], size: int) -> Any:
        packings.append(size)
        return best_fit(counts, size)

    best_fit = packing._best_fit
    monkeypatch.setattr(packing, "_best_fit", counting)
    here = batch(SEVERAL_CELLS, bucket=bucket)
    for name, strategy in (("P", "packed"), ("rank one", "packed_nodes")):
        on = stmlang.compile(WIDE + spec(name).split("\n", 1)[1], strategy=strategy, dtype="float64", tuned=False)
        assert isinstance(on, stmlang.GraphScan)
        for _ in range(2):
            assert jax.tree.leaves(on.at(here).tables)
    assert packings == [here.room.cell] == [64]
    assert here.packing is here.dag.packing is here.dag.reversed().packing


def test_graphs_too_large_for_cells() -> None:
    text = f"topology g = dag(nodes <= 5000, edges <= 9000)\n{spec('P').split(chr(10), 1)[1]}"
    with pytest.raises(SpecError, match="at most 1,024 nodes, and here one has more"):
        stmlang.compile(text, strategy="packed").at(banded(1100, 2000, 4, 0))
    with pytest.raises(SpecError, match="come at run time"):
        stmlang.compile("std:plstm/dag_p", strategy="packed")


def test_the_gating_matrix_is_that_of_the_batch() -> None:
    on = scan("P").at(batch(GRAPHS[:1]))
    first = GRAPHS[0]
    other = scan("P").at(batch([ragged_dag(first.node_count, 4 - first.tail, 4 - first.head)]))
    assert other.compilation is on.compilation
    for here in (on, other):
        q, k, v, gates = here.example(0)
        matrix = here.gating_matrix(gates, q, k, v)
        found = jnp.einsum("nhk,mhk,nmh,nhv->mhv", k, q, matrix, v)
        np.testing.assert_allclose(found, here.reference(q, k, v, gates), atol=1e-12)


def test_levels_of_padding_fit() -> None:
    for dag in GRAPHS:
        here = batch([dag])
        assert int(node_levels(here.dag).max(initial=0)) < here.room.levels


# --- refusals --------------------------------------------------------------------------------------------------------


def refused(code: str, words: str, action: Any) -> None:
    with pytest.raises(SpecError) as caught:
        action()
    assert caught.value.diagnostics[0].code == code
    assert words in str(caught.value)


def test_what_the_topology_does_not_allow() -> None:
    tree = stmlang.compile("scan s on tree(nodes <= 3) {\nsource = 1\nmark = 1\ntransition = 0.5\n}")
    assert isinstance(tree, stmlang.GraphScan)
    refused("STM3507", "graph 1 has 65 nodes", lambda: scan("P").at([GRAPHS[0], banded(65, 70, 4, 0)]))
    refused("STM3507", "graph 0 has 161 edges", lambda: scan("P").at(banded(60, 161, 4, 0)))
    refused("STM3507", "graph 0 has 4 nodes", lambda: tree.at(ragged_dag(4, np.asarray([0]), np.asarray([1]))))
    refused("STM3407", "2 edges leave node 0", lambda: tree.at(ragged_dag(3, np.asarray([0, 0]), np.asarray([1, 2]))))
    assert tree.at(ragged_dag(3, np.asarray([0, 1]), np.asarray([2, 2]))).node_shape == (16,)


def test_a_scan_without_graphs_says_so() -> None:
    refused("STM3301", "cannot be called", lambda: scan("P")(1, 2, 3, {}))
    refused("STM3301", "asked for `example`", lambda: scan("P").example())
    refused("STM3301", "asked for `reference`", lambda: scan("P").reference(1, 2, 3, {}))
    assert not hasattr(scan("P"), "colour")


def test_layers_want_graphs() -> None:
    made = layer("P")
    x = jnp.zeros((16, 6))
    refused("STM5202", "none are given", lambda: made(x))
    refused("STM5202", "`on` is scan `s`", lambda: made(x, on=scan("D").at(GRAPHS)))
    refused("STM5202", "`on` is Batch", lambda: made(x, on=batch(GRAPHS)))
    chain = stmlang.nn.ScanLayer(stmlang.compile("std:plstm/chain", time=5), dim=6, key=jax.random.key(0))
    refused("STM5202", "has its topology already", lambda: chain(x[:5], on=scan("P").at(GRAPHS)))


def test_the_scan_says_what_it_is() -> None:
    assert repr(scan("P")) == "<GraphScan s: graphs come with `at`>"
    assert jax.tree.leaves(scan("P")) == []


# --- a river ---------------------------------------------------------------------------------------------------------

RIVER = """topology basin = tree(nodes <= 400000)
scan river(heads = 1, key = 8, value = 8) on basin {
    source[out]    = sigmoid(linear(x, bias = -1))
    mark[in]       = sigmoid(linear(x, bias = -1))
    direct         = sigmoid(linear(x, bias = -6))
    transition[in] = sigmoid(linear(x, bias = 4))
    stabilize D
}"""


@pytest.mark.slow
def test_the_rhine_and_one_of_its_basins() -> None:
    """349,847 nodes, 1,674 levels: what a basin reads is what it reads by itself, which is what the recurrence says."""
    dag = read_flow(str(data_folder("data/dags/river") / "rhine_d8.tif")).dag
    op = stmlang.compile(RIVER, dtype="float64")
    assert isinstance(op, stmlang.GraphScan)
    here = batch([dag])
    on = op.at(here)
    q, k, v, gates = on.example(0)
    whole = np.asarray(on(q, k, v, gates))
    upstream = np.ones(dag.node_count, np.int64)
    for edge in np.argsort(node_levels(dag)[dag.tail], kind="stable"):
        upstream[dag.head[edge]] += upstream[dag.tail[edge]]
    mouth = int(np.argmin(np.abs(upstream - 700)))
    inside = np.zeros(dag.node_count, bool)
    inside[mouth] = True
    for edge in np.argsort(-node_levels(dag)[dag.tail], kind="stable"):
        inside[dag.tail[edge]] |= inside[dag.head[edge]]
    nodes = np.flatnonzero(inside)
    assert len(nodes) == upstream[mouth] > 300
    edges = np.flatnonzero(inside[dag.head])
    number = np.cumsum(inside) - 1
    basin = batch([ragged_dag(len(nodes), number[dag.tail[edges]], number[dag.head[edges]])])
    part = op.at(basin)
    rows = {"node": (nodes, basin.bucket.nodes), "edge": (edges, basin.bucket.edges)}

    def laid(array: Any, kind: str) -> np.ndarray:
        chosen, size = rows[kind]
        return np.concatenate([np.asarray(array)[chosen], np.zeros((size - len(chosen), *array.shape[1:]))])

    kinds = {leaf.name: "edge" if set(leaf.indices) & {"in", "out"} else "node" for leaf in op.scan.leaves}
    given = {name: laid(array, kinds[name]) for name, array in gates.items()}
    arguments = (laid(q, "node"), laid(k, "node"), laid(v, "node"), given)
    wanted = part.reference(*arguments)[: len(nodes)]
    np.testing.assert_allclose(whole[nodes], wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        np.asarray(part(*map(jnp.asarray, arguments[:3]), given))[: len(nodes)], wanted, rtol=0, atol=1e-12
    )
