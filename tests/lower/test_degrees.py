"""Degrees: counted by hand here, along every direction; and what is made of them where there is nothing to count."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.build import ragged_dag
from tests.helpers.calls import as_tree
from tests.helpers.turns import half, halves

COUNT = "scan count(heads = 1, key = 1, value = 1) on {} {{\n directions {}\n source = 0\n transition = 0\n direct = {}\n}}\n"
HUNDREDS = "100 * degree(in) + degree(out)"
OPEN = "dag { -> a; a -> b, c; b, c -> d; -> d; d ->; alone }"

COUNTED = {
    "dag": (OPEN, [1, 1, 1, 3, 0], [2, 1, 1, 1, 0]),
    "tree": ("tree { a, b, c -> d; d -> root; e -> root }", [0, 0, 0, 3, 2, 0], [1, 1, 1, 1, 0, 1]),
    "complete tree": ("tree(arity = 3, depth = 1)", [0, 0, 0, 3], [1, 1, 1, 0]),
    "product": ("chain(time = 2) * dag { a -> b, c }", [1, 2, 2, 1, 2, 2], [3, 1, 1, 3, 1, 1]),
    "product of dags": ("dag { a -> b } * dag { c -> d }", [0, 1, 1, 2], [2, 1, 1, 0]),
    "chain": ("chain(time = 3)", [1, 1, 1], [1, 1, 1]),
    "grid": ("grid(rows = 2, cols = 2)", [2, 2, 2, 2], [2, 2, 2, 2]),
}
"""Topologies with the degrees of their nodes, in and out, as declared. Nodes are numbered as they are first mentioned."""


def ones(op: Any) -> np.ndarray:
    """The result where query, key and value are one: the direct gate."""
    arrays = [jnp.ones(op.signature.inputs[name], op.dtype) for name in "qkv"]
    return np.asarray(op(*arrays, {})).reshape(len(arrays[0].reshape(-1)), -1)


@pytest.mark.parametrize("name", COUNTED)
def test_edges_are_counted(name: str) -> None:
    """Open ones too; against the edges those that enter and those that leave change places."""
    topology, into, out = COUNTED[name]
    along, against = 100 * np.array(into) + np.array(out), 100 * np.array(out) + np.array(into)
    for direction, wanted in (("forward", along), ("backward", against)):
        op = stmlang.compile(COUNT.format(topology, direction, HUNDREDS))
        assert ones(op)[:, 0].tolist() == wanted.tolist()
    if name not in ("chain", "grid"):
        beside = ones(stmlang.compile(COUNT.format(topology, "both concat", HUNDREDS)))
        assert beside.tolist() == np.stack([along, against], axis=1).tolist()
    if name == "dag":
        assert ones(stmlang.compile(COUNT.format(topology, "both", HUNDREDS)))[:, 0].tolist() == (along + against).tolist()


def test_every_edge_between_two_nodes_counts() -> None:
    """Of graphs that come at run time, each by itself."""
    tail, head = np.array([0, 0, 0, 1, 2]), np.array([1, 1, 1, 3, 3])
    graphs = [ragged_dag(5, tail, head), ragged_dag(1, tail[:0], tail[:0]), ragged_dag(2, tail[:1], head[:1])]
    op = stmlang.compile(COUNT.format("dag(nodes <= 9, edges <= 9)", "forward", HUNDREDS))
    assert isinstance(op, stmlang.GraphScan)
    assert ones(op.at(graphs))[:8, 0].tolist() == [3, 301, 1, 200, 0, 0, 1, 100]


NOTHING = {
    "quotient": "linear(x) / degree(out)",
    "inverse": "1 / degree(out)",
    "of two": "linear(x) / (degree(in) * degree(out))",
    "beside what is learned": "linear(x) / ((1 + softplus(linear(x))) * degree(out))",
    "below": "linear(x) / (linear(x) / degree(in))",
    "power": "linear(x) * degree(in) ^ -0.5",
    "learned power": "degree(out) ^ param(-0.5)",
    "logarithm": "param(1) * log(degree(in))",
    "root": "param(1) * sqrt(degree(in) - 1)",
    "through gates": "linear(x) / (2 * many)",
    "feature": "linear(log(degree(in)), 1 / degree(out))",
}
"""What has no finite value at a node without edges, as a direct gate."""


@halves
@pytest.mark.parametrize("name", NOTHING)
def test_nothing_to_count(name: str, late: bool) -> None:
    """Zero at a node without edges, and nothing there moves it: neither result nor gradient is other than finite."""
    (direction,) = half(("forward", "backward"), list(NOTHING).index(name), late)
    body = COUNT.format(OPEN, direction, NOTHING[name]).replace("direct =", "many = degree(in)\n direct =")
    op = stmlang.compile(body, dtype="float64")
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    alone = 4

    @jax.jit
    def result(gates: Any) -> Any:
        return op(q, k, v, gates)[..., 0]

    found, slopes = np.asarray(result(gates)), jax.jit(jax.jacrev(result))(gates) if gates else {}
    assert np.isfinite(found).all()
    assert (found[:alone] != 0).any()
    if name == "feature":  # its bias is there at every node
        found = found - np.asarray(result(gates | {"direct.2": 0 * gates["direct.2"], "direct.3": 0 * gates["direct.3"]}))
    assert found[alone] == 0
    for leaf, slope in slopes.items():
        assert np.isfinite(slope).all()
        assert (leaf == "direct" and name == "feature") or not np.asarray(slope)[alone].any()
    np.testing.assert_allclose(result(gates), op.reference(q, k, v, gates)[..., 0], rtol=1e-13, atol=1e-13)


def test_shares_of_states_that_nobody_takes_over() -> None:
    """The gradient of a share at nodes that no edge leaves, where the quotient is undefined and never read, is zero."""
    text = """
scan s(heads = 1, key = 2, value = 2) on dag(nodes <= 9, edges <= 9) {
    directions both
    rate = param(-0.5)
    share = tanh(linear(x, log(1 + degree(in)))) / degree(out)
    source = sigmoid(linear(x)) * degree(in) ^ rate
    mark = sigmoid(linear(x)) / sqrt(degree(in))
    transition = share
    stabilize P
}
"""
    op = stmlang.compile(text, dtype="float64")
    assert isinstance(op, stmlang.GraphScan)
    on = op.at([ragged_dag(5, np.array([0, 1, 1]), np.array([1, 2, 3])), ragged_dag(1, np.zeros(0, int), np.zeros(0, int))])
    assert on.facts.verdict.kind == "proved P"
    q, k, v, gates = on.example(0)
    slopes = jax.grad(lambda gates: jnp.sum(on(q, k, v, gates)[:6] ** 2))(gates)
    assert all(bool(jnp.isfinite(slope).all()) for slope in slopes.values())
    assert float(jnp.abs(slopes["rate"]).max()) > 0
