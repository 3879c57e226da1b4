"""The form of transitions and the stability verdict, spec by spec."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stmlang.check import library_specs, load
from stmlang.check.invariants import verify
from stmlang.facts import Facts, analyse, facts_json, show_facts
from stmlang.graph.topology import dag_of
from stmlang.oracle.gates import Evaluator
from stmlang.scan.scan import Mode
from stmlang.scan.show import show_expr, show_scan
from stmlang.source.codes import CODES
from tests.facts.build import sample
from tests.facts.test_gates import facts_of
from tests.helpers.work import calls

GRID = "grid(rows = 3, cols = 4)"
CHAIN = "chain(time = 5)"
ASIA = "dag { asia -> tub; smoke -> lung, bronc; tub, lung -> either; either -> xray; either, bronc -> dysp }"
DIAMOND = "dag { a -> b, c; b, c -> d; d -> e }"
TREE = "tree(arity = 2, depth = 2)"
RUNTIME = "dag(nodes <= 9, edges <= 20)"

SPLIT = "angle = sigmoid(linear(x)); decay = {}; transition[out, in] = decay * split(angle)[out]"
DELTA = "k = l2norm(k); a = {}; b = {}; transition[out, in, key, key'] = a * (eye[key, key'] - b * k[key] * k[key'])"

SHARED = "cut = sigmoid(linear(x)); s[out] = split(cut)[out]"

VERDICTS = [
    (GRID, SPLIT.format("tanh(linear(x))"), "proved P"),
    (GRID, SPLIT.format("2 * tanh(linear(x))"), "inserted P"),
    (GRID, "transition[out, in] = 0.5 * tanh(linear(x))", "proved P"),
    (GRID, "transition[out, in] = tanh(linear(x)) / degree(out)", "proved P"),
    (RUNTIME, "transition = tanh(linear(x)) / degree(out)", "proved P"),
    (RUNTIME, "d = degree(out); transition = tanh(linear(x)) / d", "proved P"),
    (RUNTIME, "s = 1 / degree(out); transition[out, in] = tanh(linear(x, e[out])) * s", "proved P"),
    (RUNTIME, "s[out] = 1 / degree(out); transition[out, in] = tanh(linear(x, e[in])) * s; directions both", "proved P"),
    (RUNTIME, "transition[out, in] = sigmoid(linear(x, e[in])) / (degree(out) + exp(linear(e[out])))", "proved P"),
    (RUNTIME, "transition = tanh(linear(x)) / max(1, degree(out))", "proved P"),
    (RUNTIME, "transition = tanh(linear(x)) / degree(out) ^ 1.5", "proved P"),
    (RUNTIME, "transition = degree(out) ^ -1.5 * degree(in) ^ -2", "proved P"),
    (RUNTIME, "transition = tanh(linear(x)) / sqrt(degree(out))", "inserted P"),
    (RUNTIME, "transition = tanh(linear(x)) / degree(in)", "inserted P"),
    (RUNTIME, "transition = 1.01 * tanh(linear(x)) / degree(out)", "inserted P"),
    (RUNTIME, "transition[out, in] = sigmoid(linear(e[in])) / (degree(out) - sigmoid(linear(e[out])))", "inserted P"),
    (RUNTIME, "transition = linear(x) / degree(out)", "inserted P"),
    (TREE, "transition = tanh(linear(x)) / degree(in)", "proved D"),
    ("dag { r -> a; a -> b, c; b, c -> d; d -> e; d -> }", "transition = tanh(linear(x)) / degree(out)", "proved P"),
    (GRID, "transition[out, in] = 0.51 * tanh(linear(x))", "inserted P"),
    (GRID, "transition[out, in] = tanh(linear(x)); stabilize D", "inserted D"),
    (GRID, "transition[out, in] = linear(x); stabilize D", "inserted D"),
    (GRID, "transition[out, in] = tanh(linear(x)); transition[out = cols, in = rows] = 0", "proved D"),
    (GRID, "transition[out, in] = tanh(linear(x)); transition[out = rows, in = cols] = 0; stabilize D", "proved D"),
    (GRID, "transition[out, in] = linear(x); transition[out = cols, in = rows] = 0", "inserted D"),
    (GRID, "transition[out, in] = linear(x); transition[out = cols, in = rows] = 0; stabilize P", "inserted P"),
    (GRID, "transition[out, in] = tanh(linear(x)); stabilize none", "unbounded by request"),
    (GRID, "transition = tanh(linear(x))", "inserted P"),
    (GRID, "transition = 0.5 * tanh(linear(x))", "proved P"),
    (GRID, "transition = tanh(linear(x)); stabilize D", "inserted D"),
    (GRID, "a = sigmoid(linear(x)); transition[out = rows, in] = a; transition[out = cols, in] = 1 - a", "inserted P"),
    (CHAIN, "transition = tanh(linear(x))", "proved P"),
    (CHAIN, "transition = tanh(linear(x)); stabilize D", "proved D"),
    (CHAIN, "transition = linear(x)", "inserted P"),
    (CHAIN, "transition[key] = sigmoid(linear(x)) ^ (1 / 16)", "proved P"),
    (CHAIN, DELTA.format("1", "sigmoid(param(0))"), "proved P"),
    (CHAIN, DELTA.format("1", "2 * sigmoid(param(0))"), "proved P"),
    (CHAIN, DELTA.format("1", "2.01 * sigmoid(param(0))"), "inserted P"),
    (CHAIN, DELTA.format("1", "tanh(param(0))"), "inserted P"),
    (CHAIN, DELTA.format("sigmoid(param(0))", "sigmoid(param(0))"), "proved P"),
    (CHAIN, DELTA.format("1.5", "sigmoid(param(0))"), "inserted P"),
    (CHAIN, "b = sigmoid(param(0)); transition[key, key'] = eye[key, key'] - b * k[key] * k[key']", "inserted P"),
    (CHAIN, "a = tanh(param(0)); transition[key, key'] = a * eye[key, key']", "proved P"),
    (CHAIN, "a = tanh(linear(x)); transition[key, key'] = a", "inserted P"),
    (CHAIN, "transition[key, key', value] = softmax(linear(x), over = key)", "inserted P"),
    (GRID, f"{SHARED}; {DELTA.format('tanh(param(0))', 'sigmoid(param(0))').replace('a * ', 'a * s[out] * ')}", "proved P"),
    (GRID, DELTA.format("1", "sigmoid(param(0))"), "inserted P"),
    (GRID, f"{DELTA.format('1', 'sigmoid(param(0))')}; transition[out = cols, in = rows, key, key'] = 0", "proved D"),
    (TREE, "transition = tanh(linear(x))", "proved D"),
    (TREE, "directions both; transition[out, in] = linear(x)", "inserted D"),
    (TREE, "transition = tanh(linear(x)); stabilize P", "proved P"),
    (TREE, "directions both; transition = tanh(linear(x)); stabilize P", "inserted P"),
    (ASIA, "directions both; transition[out, in] = tanh(linear(x))", "proved D"),
    (DIAMOND, "transition[out, in] = tanh(linear(x))", "proved D"),
    (DIAMOND, "directions both; transition[out, in] = tanh(linear(x)); stabilize D", "proved D"),
    ("dag { r -> a; a -> b, c; b, c -> d; d -> e }", "transition[out, in] = tanh(linear(x)); stabilize D", "inserted D"),
    ("dag { r -> a; a -> b, c; b, c -> d; d -> e }", "transition[out, in] = tanh(linear(x))", "inserted P"),
    ("dag { r -> a; a -> b, c; b, c -> d; d -> e }", "transition = 0.5 * tanh(linear(x))", "proved P"),
    (RUNTIME, "transition[out, in] = tanh(linear(x)) * softmax(linear(x), over = out)", "proved P"),
    (RUNTIME, "transition[out, in] = linear(x)", "inserted P"),
    (RUNTIME, "transition[out, in] = tanh(linear(x)); stabilize D", "inserted D"),
    (f"{CHAIN} * {TREE}", "transition[out, in] = tanh(linear(x)); transition[out = edge, in = time] = 0", "proved D"),
    (f"{CHAIN} * {TREE}", "transition[out, in] = tanh(linear(x)); stabilize D", "inserted D"),
    (f"{CHAIN} * {RUNTIME}", "transition[out, in] = tanh(linear(x)); stabilize D", "inserted D"),
]


@pytest.mark.parametrize(("topology", "body", "kind"), VERDICTS)
def test_verdicts(topology: str, body: str, kind: str) -> None:
    facts = facts_of(body, topology)
    assert facts.verdict.kind == kind
    assert facts.verdict.reason
    assert all(note.code in CODES and note.span is not None for note in facts.notes)
    assert bool(facts.notes) == (kind in ("inserted P", "inserted D") or facts.verdict.mode is None)
    assert (facts.scan is facts.spec) != facts.verdict.inserted
    verify(facts.scan)
    json.dumps(facts_json(facts), allow_nan=False)
    assert show_facts(facts).endswith("\n")


def transitions(facts: Facts, seed: int = 0) -> tuple[Evaluator, dict[str, np.ndarray]]:
    """A stabilized scan's transition and the one it was made from, with all indices."""
    evaluator = sample(facts.scan, dag_of(facts.scan.topology), np.random.default_rng(seed))[0]
    found = {
        name: evaluator.frame.spread(value, ("out", "in"), value.states).array
        for name, value in evaluator.gates.items()
        if name.startswith("transition")
    }
    return evaluator, found


def test_inserted_p_leaves_small_columns_alone() -> None:
    _, found = transitions(facts_of("transition[out, in] = given()", GRID))
    shape = (-1, 2, 2)
    raw, bounded = found["transition.raw"].reshape(shape), found["transition"].reshape(shape)
    sums = np.abs(raw).sum(1, keepdims=True)
    assert (sums < 1).any()
    assert (sums > 1).any()
    np.testing.assert_allclose(bounded, raw / np.maximum(1, sums), rtol=1e-14)


def test_inserted_d_drops_the_turn_from_the_first_port_to_a_later_one() -> None:
    facts = facts_of("transition[out, in] = given(); stabilize D", GRID)
    _, found = transitions(facts)
    raw, bounded = found["transition.raw"].reshape(-1, 2, 2), found["transition"].reshape(-1, 2, 2)
    assert (bounded[:, 1, 0] == 0).all()
    kept = np.array([[True, True], [False, True]])
    np.testing.assert_allclose(bounded[:, kept], np.clip(raw, -1, 1)[:, kept], rtol=1e-14)
    assert facts.bounds.zeros.gates["transition"].tolist() == (~kept).tolist()


def test_inserted_d_keeps_turns_that_make_no_circle() -> None:
    body = "transition[out, in] = given(); transition[out = b, in = c] = 0; transition[out = b, in = a] = 0; stabilize D"
    facts = facts_of(body, "grid(a = 2, b = 2, c = 2)")
    allowed = facts.bounds.allowed
    assert int(allowed.sum()) == 6
    assert allowed[2, 1]
    assert allowed[0, 1]


def test_what_refers_to_the_transition_stays_well_formed() -> None:
    """`read after` makes the mark a transition; where D-mode gives the transition port indices, the mark keeps its own."""
    for topology, body in (
        (GRID, "transition = given(); read after; stabilize D"),
        (GRID, "transition = given(); read after; stabilize P"),
        (RUNTIME, "transition = given(); read after; stabilize D"),
    ):
        facts = facts_of(body, topology)
        assert facts.bounds.dependence.gates["mark"].varies == frozenset()
        verify(facts.scan)
        assert facts.scan.gate("mark").indices == facts.spec.gate("mark").indices
    evaluator, _ = transitions(facts_of("transition = given(); read after; stabilize D", GRID))
    assert np.abs(evaluator.gates["mark"].array).max() <= 1


RANKS = [
    (GRID, SPLIT.format("tanh(linear(x))"), "transition[out, in = rows]", "1"),
    (GRID, "transition[in] = tanh(linear(x))", "1", "transition[in]"),
    (GRID, "transition = tanh(linear(x))", "transition", "1"),
    (GRID, "f[out] = given(); g[in] = given(); transition[out, in] = f * g * given()", None, None),
    (GRID, "f[out] = given(); g[in] = given(); c = given(); transition[out, in] = f * g / c", "f[out] / c", "g[in]"),
    (GRID, "f[out] = given(); g[in] = given(); transition[out, in] = -(f * g)", "-f[out]", "g[in]"),
    (GRID, "f[out] = given(); g[in] = given(); transition[out, in] = abs(f * g) ^ 2", "abs(f[out]) ^ 2", "abs(g[in]) ^ 2"),
    (GRID, "f[out] = given(); g[in] = given(); h[out, in] = f * g; transition[out, in] = 0.5 * h", "0.5 * f[out]", "g[in]"),
    (GRID, "f[out] = given(); g[in] = given(); transition[out, in] = f + g", None, None),
    (GRID, "transition[out, in] = given()", None, None),
    (RUNTIME, "f[out] = given(); a[out, in] = f; transition[out, in] = a * tanh(linear(x, e[in]))", None, None),
    (RUNTIME, "f[out] = given(); g[in] = given(); a[out, in] = f; transition[out, in] = a * g", "f[out]", "g[in]"),
]


@pytest.mark.parametrize(("topology", "body", "out", "into"), RANKS)
def test_rank_one(topology: str, body: str, out: str | None, into: str | None) -> None:
    found = facts_of(f"{body}; stabilize none", topology).rank_one
    shown = (None, None) if found is None else (show_expr(found.out_factor), show_expr(found.in_factor))
    assert shown == (out, into)


FORMS = [
    ("k = l2norm(k); b = given(); transition[key, key'] = eye[key, key'] - b * k[key] * k[key']", ("1", "b", "k[key]")),
    ("b = given(); transition[key, key'] = b * (eye[key, key'] + 2 * (k[key'] * k[key]))", ("b", "-2", "@k[key]")),
    ("b = given(); transition[key, key'] = -(eye[key, key'] - k[key] * b * k[key'] / 3) / b", ("-(1 / b)", "b / 3", "@k[key]")),
    ("h[key, key'] = eye[key, key'] - k[key] * k[key']; transition[key, key'] = h[key', key]", ("1", "1", "@k[key]")),
    ("transition[key, key'] = eye[key, key'] - k[key] * q[key']", None),
    ("transition[key, key'] = eye[key, key'] - k[key] * k[key] * k[key']", None),
    ("transition[key, key'] = 2 * eye[key, key'] - k[key] * k[key']", ("2", "0.5", "@k[key]")),
    ("transition[key, key'] = k[key] * (eye[key, key'] - k[key] * k[key'])", None),
]


@pytest.mark.parametrize(("body", "form"), FORMS)
def test_delta_forms(body: str, form: tuple[str, str, str] | None) -> None:
    (found,) = facts_of(f"{body}; stabilize none", CHAIN).factored
    assert form == (None if found is None else (show_expr(found.scale), show_expr(found.strength), show_expr(found.u)))


LIBRARY = {
    "plstm/image_p": "proved P",
    "plstm/image_constant": "proved P",
    "plstm/volume_p": "proved P",
    "plstm/dag_p": "proved P",
    "plstm/graph_p": "proved P",
    "plstm/image_d": "proved D",
    "plstm/image_delta": "proved D",
    "plstm/volume_d": "proved D",
    "plstm/dag_d": "proved D",
    "plstm/graph_d": "inserted D",
    "plstm/tree": "proved D",
    "plstm/chain": "proved P",
    "plstm/chain_tracking": "proved P",
    "plstm/image_tracking": "proved P",
    "plstm/volume_tracking": "proved P",
    "plstm/dag_tracking": "proved P",
    "plstm/tree_tracking": "proved D",
    "plstm/image_p_reference": "unbounded by request",
    "chain/deltanet": "proved P",
    "chain/gla": "proved P",
    "chain/mlstm": "proved P",
}


@pytest.mark.parametrize("name", LIBRARY)
def test_library(name: str) -> None:
    assert name in library_specs()
    facts = analyse(load(f"std:{name}"))
    assert facts.verdict.kind == LIBRARY[name]
    several = ("plstm/image_d", "plstm/image_delta", "plstm/volume_d", "plstm/dag_d", "plstm/graph_d")
    assert (facts.rank_one is not None) == (name not in several)


def test_the_reference_form_of_p_mode_is_not_proved() -> None:
    from dataclasses import replace

    spec = load("std:plstm/image_p_reference")
    assert analyse(replace(spec, stabilize=Mode.P)).verdict.kind == "inserted P"
    assert analyse(replace(spec, stabilize=Mode.AUTO)).verdict.kind == "inserted P"
    (note,) = analyse(spec).notes
    assert note.code == "STM4003"
    assert any("binomial(rows + cols - 2, rows - 1)" in step for step in note.notes)


def test_reasons_name_gates_and_bounds() -> None:
    facts = analyse(load("std:plstm/image_p"))
    assert facts.verdict.reason == (
        "|decay| <= 1 because tanh lies in [-1, 1]",
        "split(angle)[out] sums to 1 over out because a split divides one between the ports",
        "so every column of transition sums to at most 1",
    )
    shown = show_facts(facts)
    assert shown.startswith("stability: proved P\n")
    assert "the same for all incoming edges (rank one)" in shown
    data = facts_json(facts)
    assert data["stability"]["verdict"] == "proved P"
    assert data["gates"]["decay"]["low"] == -1
    assert data["transition"]["column_sums"] == {"rows": 1.0, "cols": 1.0}


def test_path_counts_in_words() -> None:
    small = facts_of("transition[out, in] = 1; stabilize none", "grid(rows = 3, cols = 3)")
    assert any("binomial(rows + cols - 2, rows - 1) = 6" in step for step in small.verdict.reason)
    large = facts_of("transition[out, in] = 1; stabilize none", "grid(a = 64, b = 64, c = 64)")
    assert any("multinomial(a - 1, b - 1, c - 1), about 10^88" in step for step in large.verdict.reason)


@pytest.mark.parametrize(
    "body",
    [
        "a = " + " + ".join(["linear(x)"] * 2000) + "; transition = tanh(a)",
        "a = " + " * ".join(["tanh(linear(x))"] * 1000) + "; transition = a",
        "g0 = linear(x)\n" + "\n".join(f"g{n + 1} = tanh(g{n}) + linear(x)" for n in range(1000)) + "\ntransition = cap(g1000)",
    ],
    ids=["long sum", "long product", "many gates"],
)
def test_long_specs(body: str) -> None:
    facts = facts_of(body, GRID)
    assert calls(lambda: analyse(facts.spec)) < 10_000_000
    assert show_scan(analyse(facts.spec).scan) == show_scan(facts.scan)
