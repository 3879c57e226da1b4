"""Nodes that take several steps: every strategy agrees with the recurrence, in value, states and gradient, and so do gating
matrices, masks, segments, streaming, open sizes and layers; and all of it with the chain of all steps, written out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.nn import ScanLayer
from stmlang.oracle.dense import gating_by_paths, gating_matrix, solved
from tests.equivalence.test_candidates import GRADIENT, VALUE, check, check_value, every
from tests.helpers.calls import as_tree, compiled, error, expected
from tests.helpers.cases import ANY, BACKWARD, NONE, SYSTEM, Case, delta, impulse, linear, walk, ways

GIVEN = """
    source[out, step] = given()
    transition[out, in, step] = given()
    mark[in, step] = given()
    direct[step] = given()
"""
DELTA = """
    k = l2norm(k)
    beta[step] = 2 * sigmoid(linear(x))
    alpha[step] = exp(given(high = 0))
    source[step] = beta
    transition[step, key, key'] = alpha * (eye[key, key'] - beta * k[step, key] * k[step, key'])
    read after
"""
MAMBA = """
    dt[value, step] = softplus(linear(x))
    rate[key, value] = exp(param(0))
    transition[key, step, value] = exp(-rate * dt)
    source[value, step] = dt
    read after
"""
LEARNED = """
    v = v * param(0.5)
    source[step] = param(0.7)
    transition[step, track, track'] = l1norm(param(0.4), over = track)
    mark[track] = sigmoid(linear(x))
    direct = sum(q[key], over = key) * sigmoid(linear(x))
"""
SOURCES = """
    source[step] = given()
    transition = param(0.9)
"""
CONSTANT = """
    source = param(0.7)
    transition = param(0.4)
"""
MLSTM = """
    source[step] = exp(linear(x))
    transition[step] = sigmoid(linear(x, bias = 2))
    read after
    normalize mlstm
"""
WRITES = """
    source[step, write] = given()
    transition[step] = given()
    mark[read] = given()
    direct[read, write, step] = given()
"""


def case(name: str, length: int, body: str, strategies: tuple[Any, ...], steps: int, **options: Any) -> Case:
    return Case(name, f"chain(t = {length})", body, strategies, steps=steps, **options)


CASES = (
    case("1", 1, GIVEN + NONE, (*ways({"tile": (2,)}), *linear(2)), 2),
    case("2 backward", 2, GIVEN + BACKWARD + NONE, (*ways({"tile": (1,)}), *linear(3)), 3),
    case("7", 7, GIVEN + NONE, (*ways({"tile": (4,)}), *linear(5)), 2),
    case("5 delta", 5, DELTA, (*ANY, *delta(4), *SYSTEM), 2, key=4),
    case("7 delta backward", 7, DELTA + BACKWARD, (*ANY, *delta(5)), 3),
    case("5 mamba", 5, MAMBA + BACKWARD, (*ANY, *walk(3)), 2),
    case("5 learned", 5, LEARNED + NONE, (*ANY, *walk(4)), 3),
    case("5 sources", 5, SOURCES + NONE, (*ways({"tile": (4,)}), *linear(4)), 2),
    case("5 constant", 5, CONSTANT + NONE, impulse((3,)), 2),
    case("5 mlstm", 5, MLSTM, (*ways({"tile": (3,)}), *linear(3)), 2),
    case("3 writes", 3, WRITES + BACKWARD + NONE, (*ways({"tile": (2,)}), *linear(2)), 2, writes=2, reads=3),
)


def case_of(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize(("case", "way"), every(CASES, GRADIENT))
def test_value_and_gradient(case: Case, way: Any) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize(("case", "way"), every(CASES, VALUE))
def test_value(case: Case, way: Any) -> None:
    check_value(case, way)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(CASES))
def test_double(case: Case, way: Any) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize("name", ["7", "2 backward", "3 writes"])
def test_gating_matrix(name: str) -> None:
    """An entry for each step; by the other oracle, and by a sum over paths."""
    op, wanted = compiled(case_of(name)), expected(case_of(name))
    q, k, v, gates, initial = as_tree(wanted.arguments)
    assert error(wanted.result.h, solved(op.scan, op.dag, q, k, v, gates, initial).h) < 1e-10
    matrix = np.asarray(op.gating_matrix(gates, q, k, v))
    assert matrix.shape[3] == op.scan.steps
    for method in ({}, {"method": gating_by_paths}):
        assert error(matrix, gating_matrix(op.scan, op.dag, q, k, v, gates, **method)) < 1e-10


@pytest.mark.parametrize("word", ["forward", "backward"])
def test_chain_of_all_steps(word: str) -> None:
    """Two steps a node are two nodes, of which the second one is read. Against the edges nodes turn around, steps do not."""
    body = f"{{ directions {word}; source%s = given(); transition%s = given(); read after; stabilize none }}"
    sizes = "heads = 2, key = 3, value = 2"
    op = stmlang.compile(f"scan s({sizes}, steps = 2) on chain(t = 4) {body % ('[step]', '[step]')}", dtype="float64")
    flat = stmlang.compile(f"scan s({sizes}) on chain(t = 8) {{{body[1:].replace(word, 'forward') % ('', '')}", dtype="float64")
    q, k, v, gates = op.example()
    assert k.shape == (4, 2, 2, 3)
    turn = slice(None, None, 1 if word == "forward" else -1)

    def rows(array: Any) -> Any:
        return jnp.moveaxis(array[turn], 2, 1).reshape(8, 2, *array.shape[3:])

    h = flat(jnp.repeat(q[turn], 2, axis=0), rows(k), rows(v), {name: rows(array) for name, array in gates.items()})
    assert error(op(q, k, v, gates), h[1::2][turn]) < 1e-12


def test_masks_and_segments() -> None:
    op, arguments = compiled(case_of("7")), expected(case_of("7")).arguments
    q, k, v, gates, _ = as_tree(arguments)
    mask, numbers = np.asarray([True, False, True, True, True, False, True]), np.asarray([0, 0, 0, 1, 1, 1, 1])
    h = np.asarray(op(q, k, v, gates, mask=jnp.asarray(mask), segments=jnp.asarray(numbers)))
    for number in range(2):
        kept = mask & (numbers == number)
        short = stmlang.compile(case_of("7").text.replace("t = 7", f"t = {kept.sum()}"), dtype="float64")
        alone = short(q[kept], k[kept], v[kept], {name: array[kept] for name, array in gates.items()})
        assert error(h[kept], alone) < 1e-12
    assert not h[~mask].any()


def test_stream_and_open_sizes(tmp_path: Path) -> None:
    """Node by node, all of its steps at once; with sizes of the arrays; and from an artifact."""
    text = case_of("5 delta").text.replace("t = 5", "t")
    closed, op = stmlang.compile(text, t=5), stmlang.compile(text)
    arguments = closed.example()
    whole = closed(*arguments)
    assert error(op(*arguments), whole) < 1e-5
    state = op.init_state()
    for number in range(5):
        h, state = op.step(state, *op.step_arguments(number, *arguments))
        assert error(h, whole[number]) < 1e-5
    path = tmp_path / "steps.stmx"
    closed.export(path, step=True, batch=None)
    loaded = stmlang.load(path)
    assert error(loaded(*arguments), whole) < 1e-6
    first, _ = loaded.step(loaded.init_state(), *closed.step_arguments(0, *arguments))
    assert error(first, whole[0]) < 1e-5


def test_layer() -> None:
    """A projection for each step, and parameters for each."""
    layer = ScanLayer(stmlang.compile(case_of("5 learned").text), 6, key=jax.random.key(0))
    assert layer.query.weight.shape == (2, 2, 6)
    assert layer.key.weight.shape == (2, 3, 2, 6)
    assert layer.leaves.constant["source"].shape == (2, 3)
    y = layer(jax.random.normal(jax.random.key(1), (5, 6)))
    assert y.shape == (5, 6)


def test_one_step_has_no_axis() -> None:
    text = "scan s(key = 2, value = 3%s) on chain(t = 4) { source%s = given(); transition = 0.5 }"
    plain, said = (stmlang.compile(text % words, dtype="float64") for words in (("", ""), (", steps = 1", "[step]")))
    assert (plain.signature.inputs, plain.signature.gates) == (said.signature.inputs, said.signature.gates)
    np.testing.assert_array_equal(plain(*plain.example()), said(*plain.example()))


def test_gradients_of_what_steps_share_are_rounded_once() -> None:
    """In bfloat16 the gradient of a leaf that two steps share is their sum, rounded, and not a sum of rounded numbers."""
    text = "scan s(heads = 1, key = 1, value = 1, steps = 2) on chain(t = 99) { transition = 0.5; source = linear(x) }"
    narrow, wide = (stmlang.compile(text, dtype=dtype, strategy="walk") for dtype in ("bfloat16", "float64"))
    q, k, v, gates = narrow.example(0)

    def gradient(op: Any) -> Any:
        inputs = [array.astype(op.dtype) for array in (q, k, v)]
        result: Any = jax.grad(lambda source: op(*inputs, {**gates, "source": source}).astype(jnp.float64).sum())
        return np.asarray(result(gates["source"].astype(op.dtype)), np.float64)

    once = np.asarray(jnp.asarray(gradient(wide), jnp.bfloat16), np.float64)
    np.testing.assert_allclose(gradient(narrow), once, rtol=2.0**-8)
    assert (gradient(narrow) == once).mean() > 0.95
