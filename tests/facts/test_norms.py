"""What the stabilizer divides matrices by: the spectral norm, whatever their form, and nothing where that is at most one."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import stmlang
from stmlang.check import load
from stmlang.facts import Facts, analyse
from stmlang.facts.bounding import NORM
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.dag import DAG
from stmlang.graph.shapes import leaf_shape, query_shape, value_shape
from stmlang.graph.topology import dag_of
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.functions import Spectrum, spectrum
from stmlang.oracle.gates import evaluate_gates
from stmlang.oracle.recurrence import reference
from stmlang.program.spectral import spectral_norm
from stmlang.scan.expression import SLACK, Spectral, inside
from stmlang.scan.scan import Scan
from stmlang.scan.show import show_expr
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

KEY = "@k[key] ^ 2, over = key"
TURNED = f"max(1, abs(1 - b * sum({KEY})))"
B = "b = given(0, 1); "
AB = f"a = given(0, 1); {B}"

FORMS = {
    "reflection": (f"{B}transition[key, key'] = eye[key, key'] - b * k[key] * k[key']", TURNED),
    "other order": (f"{B}transition[key, key'] = -k[key'] * b * k[key] + eye[key, key']", TURNED),
    "scaled": (f"{AB}transition[key, key'] = a * (eye[key, key'] - b * k[key] * k[key'])", f"abs(a) * {TURNED}"),
    "multiplied out": (f"{AB}transition[key, key'] = a * eye[key, key'] - a * b * k[key] * k[key']", f"abs(a) * {TURNED}"),
    "through gates": (
        f"{AB}ab = b * a; u[key] = k[key]; transition[key, key'] = -(u[key'] * ab * k[key] - eye[key', key] * a)",
        f"abs(a) * {TURNED}",
    ),
    "of a gate, transposed": (
        f"{AB}m[key, key'] = eye[key, key'] - b * k[key] * k[key']; transition[key, key'] = a * m[key', key]",
        f"abs(a) * {TURNED}",
    ),
    "other scales": (
        f"{AB}transition[key, key'] = a * eye[key, key'] - b * k[key] * k[key']",
        f"max(abs(a), abs(a - b * sum({KEY})))",
    ),
    "diagonal": ("d[key] = given(); transition[key, key'] = d[key'] * eye[key, key']", "largest(abs(d[key]), over = key)"),
    "outer product": (
        "u[key] = given(); w[key] = given(); transition[key, key'] = 2 * u[key] * w[key']",
        "2 * (sqrt(sum(u[key] ^ 2, over = key)) * sqrt(sum(w[key'] ^ 2, over = key')))",
    ),
    "number times a matrix": (
        "a = given(); m[key, key'] = given(); transition[key, key'] = -a * m[key, key']",
        "abs(a) * norm(@m[key, key'], over = key, key')",
    ),
    "matrix": ("transition[key, key'] = given()", "norm(transition.raw[key, key'], over = key, key')"),
    "diagonal times a matrix": (
        "d[key] = given(); m[key, key'] = given(); transition[key, key'] = d[key] * m[key, key']",
        "norm(transition.raw[key, key'], over = key, key')",
    ),
    "on two axes": (
        "m[key, key'] = given(); n[track, track'] = given(); "
        "transition[key, key', track, track'] = m[key, key'] * n[track, track']",
        "norm(@m[key, key'], over = key, key') * norm(@n[track, track'], over = track, track')",
    ),
    "on two axes at once": (
        "transition[key, key', track, track'] = given()",
        "norm(transition.raw[key, key', track, track'], over = key, key', track, track')",
    ),
    "one number for all entries": ("a = given(); transition[key, key'] = a", "2.0000000000000004 * abs(a)"),
}


def text(body: str, mode: str = "", key: int = 2) -> str:
    lines = "".join(f"    {line.strip()}\n" for line in body.split(";"))
    track = ", track = 2" if "track" in body else ""
    return f"scan s(heads = 1, key = {key}, value = 2{track}) on chain(t = 4) {{\n    source = 1\n{lines}    {mode}\n}}\n"


def norm_of(facts: Facts) -> str:
    return show_expr(facts.scan.gate(NORM).clauses[0].value)


@pytest.mark.parametrize("name", FORMS)
def test_each_form_has_its_norm(name: str) -> None:
    body, norm = FORMS[name]
    assert norm_of(analyse(load(text(body)))) == norm


# --- the numbers -----------------------------------------------------------------------------------------------------


@cache
def compiled(name: str, mode: str, dtype: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stmlang.compile(text(FORMS[name][0], mode, 3), dtype=dtype, strategy="recurrent")  # type: ignore[arg-type]


def norms(name: str, at: Arguments) -> np.ndarray:
    """The largest norm of the transition as it is written, at each node."""
    op = compiled(name, "stabilize none", "float64")
    (gates,) = evaluate_gates(op.scan, op.dag, at.q, at.k, at.v, at.gates)
    rows = int(np.prod(gates.transition.array.shape[2:])) ** 0.5
    array = gates.transition.array
    if gates.transition.states == ("key", "key'", "track", "track'"):
        array = array.transpose(0, 1, 2, 4, 3, 5)
    return np.linalg.norm(array.reshape(len(array), round(rows), round(rows)), 2, axis=(1, 2))


def scaled_to(name: str, norm: float, seed: int) -> Arguments:
    """Arguments at which the largest norm is as it is said, by the scale of leaves and keys."""
    op = compiled(name, "stabilize none", "float64")
    at = random_arguments(op, seed, "kept")
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        gates = {leaf: np.asarray(array) * middle for leaf, array in at.gates.items()}
        found = Arguments(at.q, np.asarray(at.k), at.v, gates, at.initial)
        low, high = (middle, high) if norms(name, found).max() <= norm else (low, middle)
    return Arguments(at.q, at.k, at.v, {leaf: np.asarray(array) * low for leaf, array in at.gates.items()}, at.initial)


def called(op: Any, at: Arguments) -> list[np.ndarray]:
    h, state = op(at.q, at.k, at.v, at.gates, at.initial, return_state=True)
    return [np.asarray(h), *(np.asarray(array) for ports in state for array in ports.values())]


QUICK = ("scaled", "outer product", "matrix")
"""Forms that stand for all where a test compiles."""


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float32") for name in FORMS),
        *(pytest.param(name, "float64", marks=() if name in QUICK else pytest.mark.slow) for name in FORMS),
    ],
)
def test_a_norm_of_at_most_one_changes_no_bit(dtype: str, name: str) -> None:
    for seed, norm in enumerate((1.0, 1.0, 0.7)):
        at = scaled_to(name, norm, seed)
        assert norms(name, at).max() <= 1
        here, written = (called(compiled(name, mode, dtype), at) for mode in ("", "stabilize none"))
        for one, other in zip(here, written, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", FORMS)
def test_a_larger_norm_becomes_one(name: str) -> None:
    op = compiled(name, "", "float64")
    at = random_arguments(op, 1)
    at = Arguments(
        at.q, 3 * np.asarray(at.k), at.v, {leaf: np.asarray(a) * 4 + 0.3 for leaf, a in at.gates.items()}, at.initial
    )
    before = norms(name, at)
    assert before.max() > 1
    (gates,) = evaluate_gates(op.scan, op.dag, at.q, at.k, at.v, at.gates)
    (raw,) = evaluate_gates(op.facts.spec, op.dag, at.q, at.k, at.v, at.gates)
    wide = (..., *(None,) * (raw.transition.array.ndim - 1))
    wanted = raw.transition.array / np.maximum(1, before)[wide]
    np.testing.assert_allclose(gates.transition.array, wanted, rtol=2e-6, atol=1e-12)
    if name in QUICK:
        np.testing.assert_allclose(
            called(op, at)[0], op.reference(at.q, at.k, at.v, at.gates, at.initial), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("name", ["scaled", "diagonal", "outer product", "matrix"])
def test_gradients_are_those_of_the_oracle(name: str) -> None:
    """Where it is divided and where it is not, and at norms of exactly one."""
    op = compiled(name, "", "float64")
    for seed, values in ((0, "random"), (1, "kept")):
        at = random_arguments(op, seed, values)
        at = Arguments(at.q, 1.5 * np.asarray(at.k) if seed == 0 else at.k, at.v, at.gates)
        rng = np.random.default_rng(3)
        along = jax.tree.map(lambda array, rng=rng: rng.normal(size=array.shape), (at.q, at.k, at.v, dict(at.gates)))
        wanted = derivative(op.scan, op.dag, at, Arguments(*along)).h
        _, found = jax.jvp(op, (at.q, at.k, at.v, dict(at.gates)), along)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)
        gradient = jax.grad(lambda args, op=op: op(*args).sum())((at.q, at.k, at.v, dict(at.gates)))
        product = sum(np.sum(g * t) for g, t in zip(jax.tree.leaves(gradient), jax.tree.leaves(along), strict=True))
        np.testing.assert_allclose(product, wanted.sum(), rtol=1e-8, atol=1e-8)


# --- equal equations -------------------------------------------------------------------------------------------------

EQUAL = (
    "transition[key, key'] = a * (eye[key, key'] - b * u[key] * u[key'])",
    "transition[key, key'] = a * eye[key, key'] - a * b * u[key] * u[key']",
    "transition[key, key'] = -(u[key'] * b * u[key] * a) + eye[key, key'] * a",
    "c = b * a; transition[key, key'] = eye[key, key'] * a - u[key] * c * u[key']",
    "m[key, key'] = eye[key, key'] - b * u[key] * u[key']; transition[key, key'] = m[key', key] * a",
    "n[key] = u[key]; transition[key, key'] = (-1) * (n[key] * b * u[key'] - eye[key, key']) * a",
    "m[key, key'] = a * eye[key, key']; transition[key, key'] = m[key, key'] - a * b * u[key'] * u[key]",
    "transition[key, key'] = a * eye[key, key'] / 2 + eye[key', key] * a / 2 * 1 - a * b * u[key] * u[key'] * 1 / 1",
)


@pytest.mark.parametrize(("vector", "kind"), [("l2norm(k, over = key)", "proved P"), ("k", "inserted P")])
def test_equal_equations_are_treated_alike(vector: str, kind: str) -> None:
    """The same verdict, the same fast path and the same numbers, however they are written."""
    head = f"{AB}u[key] = {vector}; "
    results: list[np.ndarray] = []
    for number, body in enumerate(EQUAL[:7]):
        facts = analyse(load(text(head + body, key=3)))
        assert facts.verdict.kind == kind
        assert facts.factored != (None,)
        dag = dag_of(facts.scan.topology)
        tree = arguments(facts.scan, dag)
        results.append(reference(facts.scan, dag, *tree).h)
        if number in (1, 3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                op = stmlang.compile(text(head + body, key=3), dtype="float64", strategy="delta", config={"chunk": 2})
            assert isinstance(op, stmlang.CompiledScan)
            results.append(np.asarray(op(*tree)))
    for one in results[1:]:
        np.testing.assert_allclose(one, results[0], rtol=1e-11, atol=1e-13)
    assert analyse(load(text(f"{head}{EQUAL[7]}"))).verdict.kind == kind  # not the fast path: the scale is no single factor


def arguments(scan: Scan, dag: DAG) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Random ones that do not depend on the order of leaves."""
    rng = np.random.default_rng(5)
    q, k, v = (rng.normal(size=shape) for shape in (query_shape(scan, dag), query_shape(scan, dag), value_shape(scan, dag)))
    names = sorted(leaf.name for leaf in scan.leaves)
    return q, k, v, {name: rng.uniform(0.1, 1, leaf_shape(scan, dag, scan.leaf(name))) for name in names}


# --- the norm itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 17, 64])
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e12])
def test_the_norm_in_single_precision(size: int, scale: float) -> None:
    """Of random matrices, and of orthogonal ones made in float32: within the slack."""
    matrices = np.random.default_rng(size).normal(size=(4, size, size)).astype(np.float32)
    orthogonal = np.linalg.qr(matrices)[0]
    for found in (matrices, orthogonal):
        wide = np.linalg.norm(found.astype(np.float64), 2, axis=(1, 2))
        np.testing.assert_allclose(spectral_norm(found * np.float32(scale)) / np.float32(scale), wide, rtol=SLACK * 0.8)
    assert np.all(np.asarray(spectral_norm(orthogonal)) <= 1 + SLACK)


def test_the_norm_of_what_has_none() -> None:
    """Zero, with a slope of zero; NaN of what is not finite, in that matrix only."""
    zero = np.zeros((2, 3, 3))
    assert np.all(np.asarray(spectral_norm(zero)) == 0)
    assert np.all(np.asarray(jax.grad(lambda m: spectral_norm(m).sum())(zero)) == 0)
    zero[1, 0, 0] = np.nan
    found, wanted = np.asarray(spectral_norm(zero)), spectrum(zero).norm
    assert found[0] == wanted[0] == 0
    assert np.isnan(found[1])
    assert np.isnan(wanted[1])


def slope(found: Spectrum) -> np.ndarray:
    return np.einsum("...rs,...s,...sc->...rc", found.left, found.weights, found.right)


def test_the_norm_has_all_derivatives() -> None:
    """First ones those of the singular values, second ones those of the first: forward over reverse, reverse over reverse."""
    rng = np.random.default_rng(0)
    matrix, along = rng.normal(size=(2, 1, 3, 3))
    gradient = jax.grad(lambda m: spectral_norm(m).sum())
    np.testing.assert_allclose(gradient(matrix), slope(spectrum(matrix)), rtol=1e-9, atol=1e-12)
    step = 1e-5
    wanted = (slope(spectrum(matrix + step * along)) - slope(spectrum(matrix - step * along))) / (2 * step)
    np.testing.assert_allclose(jax.jvp(gradient, (matrix,), (along,))[1], wanted, rtol=1e-6, atol=1e-6)
    twice = jax.grad(lambda m: (gradient(m) * along).sum())(matrix)
    np.testing.assert_allclose(twice, wanted, rtol=1e-6, atol=1e-6)
    single = jax.vmap(lambda m: spectral_norm(m[None])[0])(matrix)
    np.testing.assert_allclose(single, spectral_norm(matrix), rtol=1e-14)


def test_no_norm_is_made_where_a_form_tells_it() -> None:
    for name, (body, _) in FORMS.items():
        parts = inside(analyse(load(text(body))).scan.gate(NORM).clauses[0].value)
        assert any(isinstance(part, Spectral) for part in parts) == ("norm(" in FORMS[name][1])
