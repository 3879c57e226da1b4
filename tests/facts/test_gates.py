"""What is said of single gates, equation by equation."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from stmlang.check.api import check
from stmlang.facts import Facts, analyse
from stmlang.facts.interval import FINITE
from stmlang.source.span import SourceFile

INF = float("inf")


def facts_of(body: str, topology: str = "grid(rows = 3, cols = 4)", head: str = "key = 4, value = 3") -> Facts:
    """The facts about a scan with these equations and `source = 1`."""
    text = f"scan test({head}) on {topology} {{\n    source = 1\n    {body}\n}}\n"
    return analyse(check(SourceFile("<test>", text)))


def with_g(equation: str, topology: str = "grid(rows = 3, cols = 4)") -> Facts:
    """The facts about a scan with equations for a gate `g`, which `direct` uses, since a gate that nothing uses is dropped."""
    indices = re.search(r"\bg(\[([^=]*?)\])? =", equation)[2]
    used = "g"
    for index in indices.split(", ") if indices else ():
        used = f"sum({used}, over = {index})"
    transition = "" if "transition" in equation else "; transition = 0.1"
    return facts_of(f"{equation}; direct = {used}{transition}", topology)


def interval_of(equation: str) -> tuple[float, float, bool]:
    facts = with_g(equation)
    found = facts.bounds.intervals.gates["g"]
    return float(found.low.min()), float(found.high.max()), bool(found.nan.any())


@pytest.mark.parametrize(
    ("equation", "low", "high", "nan"),
    [
        ("g = 2", 2, 2, False),
        ("g = sigmoid(linear(x))", 0, 1, False),
        ("g = tanh(5 * linear(x))", -1, 1, False),
        ("g = exp(linear(x))", 0, INF, False),
        ("g = softplus(linear(x))", 0, INF, False),
        ("g = relu(linear(x))", 0, INF, False),
        ("g = cos(3 * given(0, 1))", -1, 1, False),
        ("g = given(-0.5, 0.25)", -0.5, 0.25, False),
        ("g = 1 - given(0, 1)", 0, 1, False),
        ("g = 2 * given(-1, 3) - 1", -3, 5, False),
        ("g = given(-2, 3) * given(-5, 7)", -15, 21, False),
        ("g = given(-2, 3) ^ 2", 0, 9, False),
        ("g = given(-2, 3) ^ 3", -8, 27, False),
        ("g = given(2, 4) ^ (-1)", 0.25, 0.5, False),
        ("g = sigmoid(linear(x)) ^ (1 / 16)", 0, 1, False),
        ("g = given(1, 4) / given(2, 4)", 0.25, 2, False),
        ("g = 1 / given(-1, 1)", -INF, INF, False),
        ("g = given(-1, 1) / given(-1, 1)", -INF, INF, True),
        ("g = log(given(1, exp(1)))", 0, 1, False),
        ("g = log(linear(x))", -INF, math.log(FINITE), True),
        ("g = sqrt(given(4, 9))", 2, 3, False),
        ("g = abs(given(-3, 2))", 0, 3, False),
        ("g = cap(linear(x))", -1, 1, False),
        ("g = clip(linear(x), 0.1, 0.9)", 0.1, 0.9, False),
        ("g = min(exp(linear(x)), 2)", 0, 2, False),
        ("g = max(given(0, 1), 0.5)", 0.5, 1, False),
        ("g = exp(linear(x)) - exp(linear(x))", -INF, INF, True),
        ("g = tanh(exp(linear(x)) - exp(linear(x)))", -1, 1, True),
        ("h[out] = given(0, 2); g = sum(h[out], over = out)", 0, 4, False),
        ("h[out] = given(-1, 2); g = mean(h[out], over = out)", -1, 2, False),
        ("g[key] = given(-1, 2)", -1, 2, False),
        ("g = sum(abs(k[key]) ^ 0, over = key)", 4, 4, False),
        ("g[out] = softmax(linear(x), over = out)", 0, 1, False),
        ("g[key] = l2norm(k)", -1, 1, False),
        ("g[key] = l2norm(abs(k))", 0, 1, False),
        ("g[out] = l1norm(given(-3, 0.5), over = out)", -1, 0.5, False),
        ("a = given(0.25, 0.5); g[out] = split(a)[out]", 0.25, 0.75, False),
        ("g = exp(given(0, 89))", 1, INF, False),
    ],
)
def test_intervals(equation: str, low: float, high: float, nan: bool) -> None:
    found = interval_of(equation)
    assert found == (pytest.approx(low, abs=1e-12), pytest.approx(high, abs=1e-12), nan)


@pytest.mark.parametrize(
    ("equation", "positive"),
    [
        ("g = sigmoid(linear(x))", False),
        ("g = exp(linear(x))", False),
        ("g = sigmoid(given(-3, 3))", True),
        ("g = exp(given(-50, 0))", True),
        ("g = exp(given(-200, 0))", False),
        ("g = 1 - given(0, 0.5)", True),
        ("g = 1 - given(0, 0.9999)", False),
        ("g = 0.01 + sigmoid(linear(x))", True),
        ("g = log(given(1.000001, 2))", False),
        ("g = given(0.1, 1) * given(0.1, 1)", True),
    ],
)
def test_positive_only_where_no_precision_reaches_zero(equation: str, positive: bool) -> None:
    assert (interval_of(equation)[0] > 0) == positive


def test_intervals_by_port() -> None:
    facts = with_g("h[out] = given(0, 1); h[out = cols] = given(2, 3); g[in] = h[in] + 1")
    assert facts.bounds.intervals.gates["h"].low.tolist() == [[0], [2]]
    assert facts.bounds.intervals.gates["g"].high.tolist() == [[2, 4]]


@pytest.mark.parametrize(
    ("equation", "zero"),
    [
        ("g = 0", True),
        ("g = -0", True),
        ("g = 0 * linear(x)", True),
        ("g = tanh(0 * linear(x) + 0)", True),
        ("g = 0 * exp(linear(x))", True),
        ("g = 0 * log(linear(x))", False),
        ("g = 0 / linear(x)", False),
        ("g = 0 / max(1, linear(x))", True),
        ("g = (1 - 1) * linear(x)", True),
        ("g = (0.1 + 0.2 - 0.3) * linear(x)", False),
        ("g = linear(x) - linear(x)", False),
        ("g = exp(0)", False),
        ("g = 0 ^ 2", True),
        ("g = 0 ^ 0", False),
        ("g = given(0, 0)", True),
    ],
)
def test_structural_zeros(equation: str, zero: bool) -> None:
    assert bool(with_g(equation).bounds.zeros.gates["g"].all()) == zero


def test_structural_zeros_by_port() -> None:
    facts = facts_of("off = 0; transition[out, in] = tanh(linear(x)); transition[out = cols, in = rows] = off * linear(x)")
    assert facts.bounds.zeros.gates["transition"].tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize(
    ("equation", "varies", "inputs", "nodes"),
    [
        ("g[out, in] = linear(x)", {"out", "in"}, {"x"}, True),
        ("a = linear(x); g[out, in] = a", set(), {"x"}, True),
        ("a[out] = linear(x); g[in] = a[in]", {"in"}, {"x"}, True),
        ("a[out] = linear(x); g = a[out = rows]", set(), {"x"}, True),
        ("g[out] = param(1)", {"out"}, set(), False),
        ("g[out] = 3", set(), set(), False),
        ("g[key] = k * param(1)", {"key"}, {"k"}, True),
        ("g = sum(k[key] * q[key], over = key)", set(), {"q", "k"}, True),
        ("g[out] = 0 * linear(x)", set(), set(), False),
        ("g[out] = softmax(param(0), over = out)", {"out"}, set(), False),
        ("g[out] = param(0); g[out = rows] = 1", {"out"}, set(), False),
        ("a = sigmoid(param(0)); g[out] = split(a)[out]", {"out"}, set(), False),
        ("h[out] = param(0) ^ 0; g = sum(h[out], over = out)", set(), set(), False),
    ],
)
def test_dependence(equation: str, varies: set[str], inputs: set[str], nodes: bool) -> None:
    found = with_g(equation).bounds.dependence.gates["g"]
    assert (set(found.varies), set(found.inputs), found.nodes, found.graph) == (varies, inputs, nodes, False)


def test_degrees_depend_on_the_graph() -> None:
    facts = with_g(
        "h[out] = 1; g = sum(h[out], over = out); transition[out, in] = softmax(param(0), over = out)",
        "dag { a -> b, c; b -> c }",
    )
    assert facts.bounds.dependence.gates["g"].graph
    assert facts.bounds.dependence.gates["transition"].nodes
    assert not facts.constant


def test_leaves_and_directions() -> None:
    facts = facts_of("directions both; a = linear(x); transition[out, in] = tanh(a); direct = param(1)", "chain(time = 5)")
    dependence = facts.bounds.dependence
    assert [leaf.name for leaf in dependence.leaves(dependence.gates["transition"])] == ["a"]
    assert dependence.directional(dependence.gates["transition"])
    assert not dependence.directional(dependence.gates["direct"])


@pytest.mark.parametrize(
    ("body", "constant"),
    [
        ("a = sigmoid(param(0)); transition[out, in] = tanh(param(1)) * split(a)[out]; mark[in] = param(1)", True),
        ("transition[out, in] = tanh(param(1)); direct = linear(x)", True),
        ("transition[out, in] = tanh(param(1)); mark = linear(x)", False),
        ("transition[out, in] = tanh(linear(x))", False),
    ],
)
def test_constancy(body: str, constant: bool) -> None:
    assert facts_of(body).constant == constant


@pytest.mark.parametrize(
    ("equation", "total", "simplex"),
    [
        ("a = sigmoid(linear(x)); g[out] = split(a)[out]", 1, True),
        ("a = linear(x); g[out] = split(a)[out]", INF, False),
        ("g[out, in] = softmax(linear(x), over = out)", 1, True),
        ("g[out, in] = softmax(linear(x), over = in)", 2, False),
        ("g[out, in] = l1norm(linear(x), over = out)", 1, False),
        ("g[out] = 0.5", 1, True),
        ("g[out] = tanh(linear(x))", 2, False),
        ("g[out] = given(0, 0.25); g[out = rows] = given(0, 0.5)", 0.75, False),
        ("g[out] = 0.25; g[out = rows] = 0.75", 1, True),
        ("g[out] = 3 * tanh(linear(x)) * softmax(linear(x), over = out)", 3, False),
        ("a[out] = softmax(linear(x), over = out); g[out, in] = tanh(linear(x)) * a", 1, False),
        ("g[out] = tanh(0.75 * softmax(linear(x), over = out))", 0.75, False),
        ("g[out] = softmax(linear(x), over = out) ^ 2", 1, False),
        ("a = sigmoid(linear(x)); g[out] = 0.5 * softmax(linear(x), over = out) + 0.5 * split(a)[out]", 1, False),
        ("g[out] = softmax(linear(x), over = out) / 4", 0.25, False),
        ("g[out] = min(softmax(linear(x), over = out), 0.25)", 0.5, False),
    ],
)
def test_column_sums(equation: str, total: float, simplex: bool) -> None:
    found = with_g(equation).bounds.simplex.gates["g"]
    bound = float(found.total.max())
    assert bound == pytest.approx(total) if np.isfinite(total) else bound > 1e300
    assert bool(found.simplex.all()) == simplex


def test_ragged_edges_have_no_number_of_their_own() -> None:
    body = "g[out] = 0.25 * sigmoid(linear(x)); transition[out, in] = 0.1 * softmax(linear(x), over = out)"
    assert with_g(body, "dag(nodes <= 5, edges <= 9)").bounds.simplex.gates["g"].total.max() == INF
    assert with_g(body, "dag { a -> b, c, d; b, c -> d }").bounds.simplex.gates["g"].total.max() == 0.75
    assert with_g(body, "tree(arity = 3, depth = 2)").bounds.simplex.gates["g"].total.max() == 0.25
    assert with_g(f"directions both; {body}", "tree(arity = 3, depth = 2)").bounds.simplex.gates["g"].total.max() == 0.75
