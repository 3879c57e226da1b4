"""The classifiers of graphs: each graph as by itself, whatever pads it; one function for all batches; sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph import DAG, Bucket, batch
from stmlang.graph.build import ragged_dag
from stmlang.models.graph.baselines import GNN
from stmlang.models.graph.inputs import GraphModel, Inputs, degree_code, mean_nodes
from stmlang.models.graph.plstm import PLSTM
from stmlang.source.diagnostic import SpecError
from tests.graph.graphs import banded

KINDS = ("gcn", "gat", "gin", "gine", "mpnn", "lstm")
MODELS = ("plstm", *KINDS)
CLASSES, NODE_FEATURES, EDGE_FEATURES = 3, 5, 2
NOTHING = np.zeros(0, np.int64)
GRAPHS = [banded(7, 10, 3, 0), ragged_dag(1, NOTHING, NOTHING), banded(12, 15, 4, 1), banded(9, 12, 3, 2)]
BUCKET = Bucket(48, 64, 8)
Data = tuple[list[DAG], list[np.ndarray], list[np.ndarray]]


@cache
def scans(mode: str) -> stmlang.GraphScan:
    found = stmlang.compile(f"std:plstm/graph_{mode}", heads=2, key=3, value=3)
    assert isinstance(found, stmlang.GraphScan)
    return found


@cache
def model(name: str, **options: Any) -> Any:
    """Small, its parameters moved at random, so that none is without effect."""
    sizes = {"classes": CLASSES, "node_features": NODE_FEATURES, "edge_features": EDGE_FEATURES, "dim": 8, **options}
    key = jax.random.key(0)
    made = PLSTM(scans("p"), scans("d"), key=key, **sizes) if name == "plstm" else GNN(name, depth=3, key=key, **sizes)
    arrays, rest = eqx.partition(made, eqx.is_inexact_array)
    random = np.random.default_rng(0)
    moved = jax.tree.map(lambda a: jnp.asarray(np.asarray(a) + 0.2 * random.standard_normal(a.shape), np.float32), arrays)
    return eqx.combine(moved, rest)


def data(graphs: list[DAG] = GRAPHS) -> Data:
    random = np.random.default_rng(1)
    nodes = [random.standard_normal((dag.node_count, NODE_FEATURES)) for dag in graphs]
    return graphs, nodes, [random.standard_normal((dag.edge_count, EDGE_FEATURES)) for dag in graphs]


def prepared(made: GraphModel, chosen: list[int], given: Data, bucket: Bucket = BUCKET) -> Inputs:
    graphs, nodes, edges = ([part[number] for number in chosen] for part in given)
    return made.prepare(batch(graphs, bucket=bucket), nodes, edges)


@eqx.filter_jit
def logits(made: GraphModel, inputs: Inputs) -> jax.Array:
    return made(inputs)


@pytest.mark.parametrize("name", MODELS)
def test_every_graph_is_as_by_itself(name: str) -> None:
    """Beside others, in another order, in a larger bucket; graphs that differ give different logits."""
    made, given = model(name), data()
    together = np.asarray(logits(made, prepared(made, [0, 1, 2, 3], given)))[:4]
    backwards = np.asarray(logits(made, prepared(made, [3, 2, 1, 0], given)))[3::-1]
    np.testing.assert_allclose(backwards, together, atol=1e-5)
    alone = np.asarray(logits(made, prepared(made, [2], given, Bucket(64, 64, 1))))[0]
    np.testing.assert_allclose(alone, together[2], atol=1e-5)
    assert min(np.abs(together[i] - together[j]).max() for i in range(4) for j in range(i)) > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_padding_reaches_nothing(name: str) -> None:
    """NaN in all features of padding changes no logit of a real graph; gradients stay finite, and reach every parameter."""
    made, given = model(name), data()
    inputs = prepared(made, [0, 1, 2, 3], given)
    node_mask, edge_mask = inputs.batch.node_mask[:, None], inputs.batch.edge_mask[:, None]
    wrong = inputs._replace(
        nodes=jnp.where(node_mask, inputs.nodes, jnp.nan), edges=jnp.where(edge_mask, inputs.edges, jnp.nan)
    )

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def graded(made: Any, inputs: Inputs) -> Any:
        found = made(inputs)
        return jnp.sum(jnp.where(inputs.batch.graph_mask[:, None], found, 0) ** 2), found[:4]

    (_, found), gradient = graded(made, wrong)
    (_, wanted), _ = graded(made, inputs)
    np.testing.assert_array_equal(found, wanted)
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        unread = name in ("gcn", "gat", "gin", "lstm") and 0 in leaf.shape
        assert unread or np.abs(leaf).max() > 0, path


@pytest.mark.parametrize("name", ["plstm", "gin", "gine", "mpnn"])
def test_a_readout_of_nodes_says_something_of_each(name: str) -> None:
    """A row for each node of the bucket, those of a graph as by itself; nodes that differ get different rows."""
    made, given = model(name, readout="nodes"), data()
    together = np.asarray(logits(made, prepared(made, [0, 1, 2, 3], given)))
    assert together.shape == (BUCKET.nodes, CLASSES)
    alone = np.asarray(logits(made, prepared(made, [2], given, Bucket(64, 64, 1))))
    np.testing.assert_allclose(alone[:12], together[8:20], atol=1e-5)
    assert min(np.abs(alone[i] - alone[j]).max() for i in range(12) for j in range(i)) > 1e-3


def test_a_sum_over_nodes_is_the_mean_of_a_graph_of_the_usual_size() -> None:
    """And tells a graph from two of it side by side, which the mean does not."""
    mean, total, given = model("plstm"), model("plstm", usual_nodes=12), data()
    found = [np.asarray(logits(made, prepared(made, [2, 0], given))) for made in (mean, total)]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    assert np.abs(found[0][1] - found[1][1]).max() > 1e-3
    (dag, *_), (nodes, *_), (edges, *_) = given
    pair = ragged_dag(14, np.concatenate([dag.tail, dag.tail + 7]), np.concatenate([dag.head, dag.head + 7]))
    doubled: Data = [dag, pair], [nodes, np.tile(nodes, (2, 1))], [edges, np.tile(edges, (2, 1))]
    once, twice = (np.asarray(logits(made, prepared(made, [0, 1], doubled)))[:2] for made in (mean, total))
    np.testing.assert_allclose(once[0], once[1], atol=1e-5)
    assert np.abs(twice[0] - twice[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["gine", "mpnn"])
def test_directed_links_tell_an_edge_from_its_reverse(name: str) -> None:
    made, (graphs, nodes, edges) = model(name, directed=True), data()
    found = [
        np.asarray(logits(made, prepared(made, [0, 2], (dags, nodes, edges))))
        for dags in (graphs, [dag.reversed() for dag in graphs])
    ]
    assert np.abs(found[0] - found[1])[:2].max() > 1e-3


@pytest.mark.parametrize("name", ["plstm", "gine", "mpnn"])
def test_edge_features_are_read(name: str) -> None:
    made, (graphs, nodes, edges) = model(name), data()
    here = prepared(made, [0, 2], (graphs, nodes, edges))
    there = prepared(made, [0, 2], (graphs, nodes, [edges[0], *edges[1:2], -edges[2], edges[3]]))
    before, after = np.asarray(logits(made, here)), np.asarray(logits(made, there))
    np.testing.assert_allclose(after[0], before[0], atol=1e-5)
    assert np.abs(after[1] - before[1]).max() > 1e-3


@pytest.mark.parametrize("name", KINDS)
def test_messages_go_both_ways(name: str) -> None:
    """To the baselines an edge is one whichever way it is drawn."""
    made, (graphs, nodes, edges) = model(name), data()
    turned = [dag.reversed() for dag in graphs]
    found = [np.asarray(logits(made, prepared(made, [0, 2], (dags, nodes, edges)))) for dags in (graphs, turned)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize("features", [(7, 4), (37, 0)])
@pytest.mark.parametrize(("name", "depth"), [("plstm", 2), *((kind, depth) for kind in KINDS for depth in (4, 8))])
def test_sizes_of_the_paper(name: str, depth: int, features: tuple[int, int]) -> None:
    """Below 300,000 parameters, with the labels of MUTAG and of NCI1."""
    sizes = {"classes": 2, "node_features": features[0], "edge_features": features[1]}

    def make() -> Any:
        key = jax.random.key(0)
        if name != "plstm":
            return GNN(name, depth=depth, key=key, **sizes)
        p, d = (stmlang.compile(f"std:plstm/graph_{mode}") for mode in "pd")
        return PLSTM(p, d, pairs=depth, key=key, **sizes)

    shapes = eqx.filter_eval_shape(make)
    count = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    assert 75_000 < count < 300_000


def test_one_program_for_many_batches() -> None:
    """The graphs are among its arguments: it is traced once."""
    made, given, count = model("plstm"), data(), 0

    @jax.jit
    def step(inputs: Inputs) -> Any:
        nonlocal count
        count += 1
        return made(inputs)

    for chosen in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        jax.eval_shape(step, prepared(made, chosen, given))
    assert count == 1


def test_degrees_are_coded_by_sines_and_cosines() -> None:
    found = degree_code(jnp.asarray([0.0, 3.0]), 4)
    wanted = [[0, 1, 0, 1], [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)]]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_the_mean_is_over_real_nodes() -> None:
    empty = ragged_dag(0, NOTHING, NOTHING)
    here = batch([GRAPHS[0], empty, GRAPHS[2]])
    x = np.random.default_rng(0).standard_normal((here.bucket.nodes, 3)).astype(np.float32)
    found = mean_nodes(here.arrays, jnp.asarray(x))
    np.testing.assert_allclose(found, [x[:7].mean(axis=0), np.zeros(3), x[7:19].mean(axis=0), np.zeros(3)], atol=1e-6)


# --- refusals --------------------------------------------------------------------------------------------------------


def refused(code: str, words: str, action: Any) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        action()
    assert caught.value.diagnostics[0].code == code


def test_what_no_model_can_be_made_of() -> None:
    sizes: dict[str, Any] = {"classes": 2, "node_features": 3, "edge_features": 0, "key": jax.random.key(0)}
    refused("STM5208", "`node_features` must be", lambda: GNN("gcn", **{**sizes, "node_features": 0}))
    refused("STM5208", "`depth` must be", lambda: GNN("gcn", depth=0, **sizes))
    refused("STM5010", "readout", lambda: GNN("gcn", readout="edges", **sizes))  # pyright: ignore[reportArgumentType]
    refused("STM5010", "readout", lambda: PLSTM(scans("p"), scans("d"), readout="edges", **sizes))  # pyright: ignore
    refused("STM5010", "kind", lambda: GNN("transformer", **sizes))  # pyright: ignore[reportArgumentType]
    refused("STM5208", "`usual_nodes` must be", lambda: PLSTM(scans("p"), scans("d"), usual_nodes=0, **sizes))
    chain = stmlang.compile("std:plstm/chain", time=5)
    refused("STM5208", "`p`, scan `plstm`, must run on graphs", lambda: PLSTM(chain, scans("d"), **sizes))
    refused("STM5208", "`d` must be a compiled scan", lambda: PLSTM(scans("p"), "std:plstm/graph_d", **sizes))  # pyright: ignore


def test_inputs_of_another_model() -> None:
    plstm, gcn, given = model("plstm"), model("gcn"), data()
    refused("STM5202", "hold 0 scans", lambda: plstm(prepared(gcn, [0], given)))
    narrow = given[0], [array[:, :4] for array in given[1]], given[2]
    refused("STM5201", "`nodes` must have the shape", lambda: gcn(prepared(gcn, [0], narrow)))
    swapped = PLSTM(scans("d"), scans("p"), classes=CLASSES, node_features=5, edge_features=2, dim=8, key=jax.random.key(0))
    refused("STM5202", "`on` is scan `plstm_d`", lambda: plstm(prepared(swapped, [0], given)))
