"""The reference's evaluation of gates, against formulas written out for small cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from stmlang.check import load
from stmlang.graph.shapes import leaf_shape
from stmlang.graph.topology import dag_of
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.scan.scan import Scan
from tests.helpers.scans import random_inputs

HELPERS = """
    a[out] = given()
    b = given()
    t[out, in] = given()
    s[key] = given()
    m[key, key'] = given()
"""


def evaluated(text: str) -> tuple[Scan, dict[str, np.ndarray], DirectionGates, dict]:
    """A scan, its leaves, its gates in its first direction, and its other arguments."""
    scan = load(text)
    inputs = random_inputs(scan, dag_of(scan.topology), seed=0)
    del inputs["initial"]
    return scan, inputs["gates"], evaluate_gates(scan, dag_of(scan.topology), **inputs)[0], inputs


def grid_scan(lines: str) -> str:
    return (
        f"scan test(heads = 2, key = 3, value = 2) on grid(rows = 2, cols = 3) {{\n{HELPERS}{lines}\n    stabilize none\n}}\n"
    )


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


Formula = Callable[..., np.ndarray]
SIGMOID: Formula = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731

# Arrays are (rows, cols, head, ...): a (..., out), b (...), t (..., out, in).
SOURCES: dict[str, Formula] = {
    "a": lambda a, **_: a,
    "a[out] * b - 2": lambda a, b, **_: a * b[..., None] - 2,
    "a[out = cols] + b": lambda a, b, **_: np.stack([a[..., 1] + b] * 2, -1),
    "b / (1 + a ^ 2)": lambda a, b, **_: b[..., None] / (1 + a**2),
    "softmax(a, over = out)": lambda a, **_: softmax(a, -1),
    "l1norm(4 * a, over = out)": lambda a, **_: 4 * a / np.maximum(1, np.abs(4 * a).sum(-1, keepdims=True)),
    "a - sum(a, over = out)": lambda a, **_: a - a.sum(-1, keepdims=True),
    "a - mean(a, over = out) + largest(a, over = out)": lambda a, **_: a - a.mean(-1, keepdims=True) + a.max(-1, keepdims=True),
    "sum(t, over = in)": lambda t, **_: t.sum(-1),
    "split(sigmoid(b))[out]": lambda b, **_: np.stack([SIGMOID(b), 1 - SIGMOID(b)], -1),
    "cap(3 * a)": lambda a, **_: 3 * a / np.maximum(1, np.abs(3 * a)),
    "clip(a, -0.2, 0.3)": lambda a, **_: np.clip(a, -0.2, 0.3),
    "min(a, b) * max(a, 0.1)": lambda a, b, **_: np.minimum(a, b[..., None]) * np.maximum(a, 0.1),
    "softplus(a) * exp(b) + relu(a) - abs(a)": lambda a, b, **_: (
        np.log(1 + np.exp(a)) * np.exp(b)[..., None] + np.maximum(a, 0) - np.abs(a)
    ),
    "sqrt(abs(a)) + sin(a) * cos(b) + log(2 + a) + tanh(a)": lambda a, b, **_: (
        np.sqrt(np.abs(a)) + np.sin(a) * np.cos(b)[..., None] + np.log(2 + a) + np.tanh(a)
    ),
}
TRANSITIONS: dict[str, Formula] = {
    "t": lambda t, **_: t,
    "t[in, out]": lambda t, **_: t.swapaxes(-1, -2),
    "a[in] * a[out]": lambda a, **_: a[..., None] * a[..., None, :],
    "softmax(t, over = out) - b": lambda t, b, **_: softmax(t, -2) - b[..., None, None],
    "softmax(t, over = in)": lambda t, **_: softmax(t, -1),
    "t[out = cols, in]": lambda t, **_: np.stack([t[..., 1, :]] * 2, -2),
    "t[out, in = rows]": lambda t, **_: np.stack([t[..., 0]] * 2, -1),
}


@pytest.mark.parametrize("expression", SOURCES)
def test_sources(expression: str) -> None:
    _, leaves, values, _ = evaluated(grid_scan(f"    source[out] = {expression}\n    transition = 0"))
    wanted = np.broadcast_to(SOURCES[expression](**leaves), (2, 3, 2, 2))
    np.testing.assert_allclose(values.source.array.reshape(2, 3, 2, 2), np.moveaxis(wanted, 3, 2), rtol=1e-13)


@pytest.mark.parametrize("expression", TRANSITIONS)
def test_transitions(expression: str) -> None:
    _, leaves, values, _ = evaluated(grid_scan(f"    source = 1\n    transition[out, in] = {expression}"))
    wanted = np.moveaxis(np.broadcast_to(TRANSITIONS[expression](**leaves), (2, 3, 2, 2, 2)), 2, -1)
    np.testing.assert_allclose(values.transition.array.reshape(2, 3, 2, 2, 2), wanted, rtol=1e-13)


def test_state_indices() -> None:
    lines = """
    source[key, out] = s * a
    transition[key, key'] = m[key', key] - eye[key, key'] * s[key] + sum(m, over = key') * s[key']
    mark[in, key] = l2norm(s)
    direct = b + sum(s, over = key)
    k = k * s[key] - q
    v = softmax(v, over = value)
    """
    _, leaves, values, inputs = evaluated(grid_scan(lines))
    flat = {name: array.reshape(6, *array.shape[2:]) for name, array in (leaves | {n: inputs[n] for n in "qkv"}).items()}
    a, b, s, m = (flat[name] for name in "absm")
    wanted = np.einsum("nhk,nho->nohk", s, a)
    np.testing.assert_allclose(values.source.array.reshape(6, 2, 2, 3), wanted, rtol=1e-13)
    matrix = m.swapaxes(-1, -2) - np.eye(3) * s[..., None] + m.sum(-1, keepdims=True) * s[..., None, :]
    np.testing.assert_allclose(values.transition.array, np.repeat(matrix, 4, axis=0), rtol=1e-12)
    np.testing.assert_allclose(values.mark.array, np.repeat(s / np.sqrt((s**2).sum(-1, keepdims=True)), 2, axis=0), rtol=1e-9)
    np.testing.assert_allclose(values.direct.array, b + s.sum(-1), rtol=1e-13)
    np.testing.assert_allclose(values.key, flat["k"] * s - flat["q"], rtol=1e-13)
    np.testing.assert_allclose(values.value, softmax(flat["v"], -1), rtol=1e-13)


def test_most_specific_clause_wins() -> None:
    lines = """
    source = 1
    transition[out, in] = 1
    transition[out = cols, in] = 2
    transition[out, in = cols] = 3
    transition[out = cols, in = cols] = 4
    """
    _, _, values, _ = evaluated(grid_scan(lines))
    np.testing.assert_array_equal(values.transition.array.reshape(6, 2, 2, 2)[0, :, :, 0], [[1, 3], [2, 4]])


EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]
GRAPH = "dag { n0 -> n1; n0 -> n2; n1 -> n3; n2 -> n3; n0 -> n3; -> n0; n3 -> }"


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_ragged(direction: str) -> None:
    """Edge by edge, as the equations say, in both senses."""
    text = f"""scan test(heads = 2, key = 1, value = 1) on {GRAPH} {{
    directions {direction}
    source[out] = softmax(linear(x, e[out]), over = out)
    transition[out, in] = linear(x) * l1norm(given(), over = in)
    mark[in] = given() - largest(source, over = out)
    direct = sum(source, over = out) + mean(mark, over = in)
    stabilize none
    }}"""
    scan, leaves, values, _ = evaluated(text)
    dag, sites = dag_of(scan.topology), values.sites
    forward = direction == "forward"
    tail, head = (dag.tail, dag.head) if forward else (dag.head, dag.tail)
    source = np.zeros((dag.edge_count, 2))
    for node in range(4):
        out = np.flatnonzero(tail == node)
        if len(out):
            source[out] = softmax(leaves["source"][out], 0)
    np.testing.assert_allclose(values.source.array, source[sites.out_edge], rtol=1e-13)
    mark = np.zeros((dag.edge_count, 2))
    for edge in np.flatnonzero(head >= 0):
        out = np.flatnonzero(tail == head[edge])
        mark[edge] = leaves["mark"][edge] - (source[out].max(0) if len(out) else 0)
    np.testing.assert_allclose(values.mark.array, mark[sites.in_edge], rtol=1e-13)
    for node in range(4):
        into, out = np.flatnonzero(head == node), np.flatnonzero(tail == node)
        wanted = source[out].sum(0) + (mark[into].mean(0) if len(into) else 0)
        np.testing.assert_allclose(values.direct.array[node], wanted, rtol=1e-13)
    pairs = dag.line_edges if forward else dag.line_edges[:, ::-1]
    gate, factor = leaves["transition.2"], leaves["transition"]
    for row, (into, out) in enumerate(pairs):
        same = pairs[:, 1] == out
        wanted = factor[row] * gate[row] / np.maximum(1, np.abs(gate[same]).sum(0))
        np.testing.assert_allclose(values.transition.array[row], wanted, rtol=1e-13)
        assert tuple(sites.line[row]) == (np.flatnonzero(sites.out_edge == out)[0], np.flatnonzero(sites.in_edge == into)[0])


def test_product_ports() -> None:
    """Clauses and leaves of single ports on a product: an edge of the chain is one for each node."""
    text = f"""topology graph = {GRAPH}
    scan test(heads = 1, key = 1, value = 1) on chain(t = 2) * graph {{
    source[out] = given()
    source[out = t] = 2
    transition[out, in] = 0
    transition[out = t, in] = given()
    transition[out = edge, in = edge] = given()
    mark[in] = given()
    direct = 0
    stabilize none
    }}"""
    scan, leaves, values, _ = evaluated(text)
    dag, sites = dag_of(scan.topology), values.sites
    time = dag.port[sites.out_edge] == 0
    assert time.sum() == 8
    assert np.all(values.source.array[time] == 2)
    np.testing.assert_array_equal(values.source.array[~time], leaves["source"][sites.out_edge[~time]])
    for row, (into, out) in enumerate(dag.line_edges):
        node = np.unravel_index(sites.nodes(("out", "in"))[row], dag.node_shape)
        match dag.ports[dag.port[out]], dag.ports[dag.port[into]]:
            case "edge", "edge":
                wanted = leaves["transition[edge,edge]"][node]
            case "t", _:
                wanted = leaves["transition[t,in]"][into]
            case _:
                wanted = 0
        np.testing.assert_array_equal(values.transition.array[row], wanted)


def test_bounds_and_constants() -> None:
    text = grid_scan("    source[out] = given(0, 0.5)\n    transition = param(0.5)\n    mark[in] = param(spread(0, 1))")
    scan, leaves, values, _ = evaluated(text)
    assert leaf_shape(scan, dag_of(scan.topology), scan.leaf("mark")) == (2, 2)
    np.testing.assert_array_equal(
        values.source.array.reshape(6, 2, 2), np.clip(leaves["source"], 0, 0.5).reshape(6, 2, 2).swapaxes(1, 2)
    )
    np.testing.assert_array_equal(values.transition.array, np.broadcast_to(leaves["transition"], (24, 2)))
    np.testing.assert_array_equal(values.mark.array, np.tile(leaves["mark"].T, (6, 1)))


def test_wrong_arguments() -> None:
    scan, _, _, inputs = evaluated(grid_scan("    source = b\n    transition = 0"))
    dag = dag_of(scan.topology)
    for change in ({"b": np.zeros(3)}, {"c": np.zeros(())}):
        with pytest.raises(ValueError, match=next(iter(change))):
            evaluate_gates(scan, dag, **(inputs | {"gates": inputs["gates"] | change}))
    with pytest.raises(ValueError, match="no array for the leaf 'b'"):
        evaluate_gates(scan, dag, **(inputs | {"gates": {}}))
    with pytest.raises(ValueError, match="'q' has shape"):
        evaluate_gates(scan, dag, **(inputs | {"q": np.zeros(2)}))
