"""The parameters behind the gates: where they start, how many there are, which features they see."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer
from tests.nn.cases import CASES, DIM, EDGE_DIM, Case, features

SMALL = math.sqrt(0.4)


def parameters(layer: ScanLayer) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(layer, eqx.is_inexact_array)))


def test_image_p_starts_as_in_the_paper() -> None:
    layer = ScanLayer(stmlang.compile("std:plstm/image_p", rows=4, cols=4), 192, key=jax.random.key(0))
    bias = {name: np.asarray(array) for name, array in layer.leaves.bias.items()}
    assert {name: array.shape for name, array in bias.items()} == {
        "angle": (3, 4),
        "decay": (3, 4),
        "strength": (3, 4),
        "mark": (3, 4),
        "direct": (3,),
    }
    np.testing.assert_allclose(bias["angle"], np.repeat([[-2.0], [0.0], [2.0]], 4, axis=1))
    for name, start in {"strength": -4, "mark": -4, "direct": -6, "decay": 1}.items():
        assert (bias[name] == start).all(), name
    assert layer.norm.eps == 1e-5
    for name, weight in layer.leaves.weight.items():
        assert weight.shape == (*bias[name].shape, 192)
        np.testing.assert_allclose(np.std(weight), SMALL / math.sqrt(192), rtol=0.15, err_msg=name)
    for part in (layer.query, layer.key, layer.value):
        np.testing.assert_allclose(np.std(part.weight), SMALL / math.sqrt(192), rtol=0.05)
        assert not np.asarray(part.bias).any()


def test_image_d_starts_as_in_the_paper() -> None:
    layer = ScanLayer(stmlang.compile("std:plstm/image_d", rows=4, cols=4), 192, key=jax.random.key(0))
    shapes = {name: array.shape for name, array in layer.leaves.bias.items()}
    assert shapes == {"source": (3, 4, 2), "mark": (3, 4, 2), "direct": (3,), "transition": (3, 4, 2, 2)}
    starts = {name: set(np.unique(array)) for name, array in layer.leaves.bias.items()}
    assert starts == {"source": {-4.0}, "mark": {-4.0}, "direct": {-6.0}, "transition": {1.0}}


@pytest.mark.parametrize(
    ("case", "gates"),
    [
        (CASES[0], 4 * 2 * (DIM + 1)),  # a chain has one direction and no port index
        (CASES[1], (4 * 4 + 1) * 2 * (DIM + 1)),  # four gates for each of four directions, and direct
        (CASES[2], (4 * (2 + 2 + 4) + 1) * 2 * (DIM + 1)),
        (CASES[4], (3 * 2 + 1) * 2 * (DIM + 1)),
    ],
    ids=str,
)
def test_count_of_parameters(case: Case, gates: int) -> None:
    projections = 2 * (4 + 4 + 5) * (DIM + 1) + DIM * 2 * 5
    assert parameters(case.layer()) == projections + 2 * 5 + gates


def test_one_set_of_parameters_serves_all_edges() -> None:
    layer = CASES[6].layer()
    wide, both = DIM + EDGE_DIM, DIM + 2 * EDGE_DIM
    shapes = {name: array.shape for name, array in layer.leaves.weight.items()}
    assert shapes["source"] == (2, 2, wide)
    assert shapes["mark"] == (2, 2, wide)
    assert shapes["transition"] == (2, 2, both)
    assert shapes["direct"] == (2, DIM)


def test_edges_see_the_features_that_the_spec_names() -> None:
    """Edge by edge and pair by pair, in both senses, with plain loops."""
    layer = CASES[6].layer()
    dag = layer.op.dag
    x, named = features(layer)
    e = np.asarray(named["edge_features"])
    gates = layer.gates(x, **named)
    x = np.asarray(x)

    def value(name: str, direction: int, *parts: np.ndarray) -> np.ndarray:
        weight, bias = layer.leaves.weight[name], layer.leaves.bias[name]
        return np.asarray(weight[:, direction]) @ np.concatenate(parts) + np.asarray(bias[:, direction])

    for edge, (tail, head) in enumerate(zip(dag.tail, dag.head, strict=True)):
        for direction, (leaves, enters) in enumerate([(tail, head), (head, tail)]):
            if leaves >= 0:
                found = np.asarray(gates["source"])[edge, :, direction]
                np.testing.assert_allclose(found, value("source", direction, x[leaves], e[edge]), atol=1e-5)
            if enters >= 0:
                found = np.asarray(gates["mark"])[edge, :, direction]
                np.testing.assert_allclose(found, value("mark", direction, x[enters], e[edge]), atol=1e-5)
    for pair, (first, second) in enumerate(dag.line_edges):
        node = dag.head[first]
        for direction, (into, out) in enumerate([(first, second), (second, first)]):
            found = np.asarray(gates["transition"])[pair, :, direction]
            np.testing.assert_allclose(found, value("transition", direction, x[node], e[out], e[into]), atol=1e-5)


def test_open_edges_see_no_node() -> None:
    spec = """
    scan ends(heads = 1, key = 2, value = 2) on dag { -> a; a -> b; b -> } {
        source[out] = linear(x, e[out], bias = 3)
        mark[in]    = linear(x, e[in])
        transition  = 0.5
    }
    """
    layer = ScanLayer(stmlang.compile(spec), DIM, key=jax.random.key(0), edge_dim=EDGE_DIM)
    x, named = features(layer)
    dag, gates = layer.op.dag, layer.gates(x, **named)
    entering = int(dag.entering[0])
    weight = np.asarray(layer.leaves.weight["source"])[0, DIM:]
    np.testing.assert_allclose(gates["source"][entering, 0], weight @ named["edge_features"][entering] + 3, atol=1e-5)
    ends = np.arange(2 * EDGE_DIM, dtype=np.float32).reshape(2, EDGE_DIM)
    (leaving,) = dag.leaving
    seen = np.asarray(layer.gates(x, **named, end_features=ends)["source"] - gates["source"])[:, 0]
    np.testing.assert_allclose(seen[entering], weight @ ends[dag.head[entering]] / 2, atol=1e-5)
    np.testing.assert_allclose(seen[leaving], weight @ ends[dag.tail[leaving]] / 2, atol=1e-5)


@pytest.mark.parametrize("case", CASES[5:], ids=str)
def test_what_ends_hold_is_as_much_as_its_mean_in_the_features_of_edges(case: Case) -> None:
    layer = case.layer()
    x, named = features(layer)
    ends = np.random.default_rng(3).standard_normal((*layer.op.node_shape, EDGE_DIM)).astype(np.float32)
    table, dag = np.concatenate([ends, np.zeros((1, EDGE_DIM), np.float32)]), layer.op.dag
    between = named["edge_features"] + (table[dag.tail] + table[dag.head]) / 2
    found, wanted = layer.gates(x, **named, end_features=ends), layer.gates(x, edge_features=between)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-5, err_msg=name)


def test_ends_may_hold_what_nodes_do() -> None:
    layer = ScanLayer(CASES[6].op(), DIM, key=jax.random.key(0), edge_dim=DIM)
    x, _ = features(CASES[6].layer())
    e = np.random.default_rng(3).standard_normal((layer.op.edge_count, DIM)).astype(np.float32)
    one, other = (layer(x, edge_features=e, end_features=ends) for ends in (x, jax.numpy.array(x)))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_all_that_node_features_are_multiplied_with_is_one_matrix() -> None:
    layer = ScanLayer(CASES[6].op(), DIM, key=jax.random.key(0), edge_dim=DIM)
    x, _ = features(CASES[6].layer())
    e = np.zeros((layer.op.edge_count, DIM), np.float32)
    made = jax.make_jaxpr(lambda x: layer(x, edge_features=e, end_features=x))(x)
    products = [eqn for eqn in made.eqns if eqn.primitive.name == "dot_general"]
    assert len(products) == 3, "one for nodes, one for edges, and the projection back"


def test_weights_of_degrees_are_learned_like_others() -> None:
    """A map of node features and degrees is the one of the features, plus a weight for each number made of degrees."""
    text = """
scan s(heads = 400) on dag {{ a -> b, c; b, c -> d; alone }} {{
    source = 1
    transition = 0
    direct = linear({}log(1 + degree(in)), degree(out), bias = -4, weight = {})
}}
"""
    layer = ScanLayer(stmlang.compile(text.format("x, ", 3)), DIM, key=jax.random.key(0))
    slopes = [np.asarray(layer.leaves.constant[name]) for name in ("direct.2", "direct.3")]
    assert [slope.shape for slope in slopes] == [(400,), (400,)]
    np.testing.assert_allclose(np.std(slopes), 3 / math.sqrt(2), rtol=0.1)
    assert abs(np.corrcoef(slopes)[0, 1]) < 0.2
    still = ScanLayer(stmlang.compile(text.format("", 0)), DIM, key=jax.random.key(0))
    assert set(still.leaves.constant) == {"direct", "direct.2", "direct.3"}
    assert (np.asarray(still.leaves.constant["direct"]) == -4).all()
    assert not np.asarray(still.leaves.constant["direct.2"]).any()
