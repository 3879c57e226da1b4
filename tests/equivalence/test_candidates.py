"""Every strategy agrees with the recurrence, in value, final states and gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.verify.oracles import gating_matrix
from tests.helpers.calls import as_tree, compiled, differentiated, error, errors, expected
from tests.helpers.cases import CASES, QUICK, Case, Way


def every(cases: tuple[Case, ...]) -> list:
    """A parameter for each case and each strategy that must take it."""
    return [
        pytest.param(case, way, id=f"{case.name}-{way[0]}{'' if way[1] is None else next(iter(way[1].values()))}")
        for case in cases
        for way in case.strategies
    ]


def check(case: Case, way: Way, dtype: str, tolerance: float) -> None:
    """Value, states and gradient of a case by one strategy; each argument's gradient along a change of its own."""
    wanted, op = expected(case), compiled(case, way, dtype)
    assert op.plan.strategy == way[0]
    arguments = jax.tree.map(lambda array: jnp.asarray(array, dtype), as_tree(wanted.arguments))
    found, gradient = jax.jit(differentiated(op, wanted.cotangent))(arguments)
    assert found[0].dtype == jnp.dtype(dtype)
    table = errors(found, wanted.result)
    for number, (slope, change) in enumerate(zip(wanted.slopes, wanted.changes, strict=True)):
        array = np.asarray(jax.tree.leaves(gradient)[number], np.float64)
        scale = max(abs(slope), float(np.sqrt(np.sum((array * change) ** 2))), 1e-3)
        table[f"gradient {number}"] = abs(float(np.sum(array * change)) - slope) / scale
    assert {name: size for name, size in table.items() if not size <= tolerance} == {}


@pytest.mark.parametrize(("case", "way"), every(QUICK))
def test_double(case: Case, way: Way) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(tuple(case for case in CASES if not case.quick)))
def test_double_slow(case: Case, way: Way) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(CASES))
def test_single(case: Case, way: Way) -> None:
    check(case, way, "float32", 1e-5)


SINGLE = [case for case in QUICK if case.name in ("chain 17", "grid 5x3", "chain 9 delta", "asia")]


@pytest.mark.parametrize(("case", "way"), every(tuple(SINGLE)))
def test_single_quick(case: Case, way: Way) -> None:
    check(case, way, "float32", 1e-5)


GATED = [
    case for case in QUICK if len(case.strategies) > 1 and case.name in ("chain 2", "chain 17", "grid 5x3", "dag D", "tree")
]


@pytest.mark.parametrize(("case", "way"), every(tuple(GATED)))
def test_gating_matrix(case: Case, way: Way) -> None:
    wanted, op = expected(case), compiled(case, way)
    q, k, v, gates, _ = as_tree(wanted.arguments)
    oracle = gating_matrix(op.scan, op.dag, q, k, v, gates)
    assert error(jax.jit(lambda gates: op.gating_matrix(gates, q=q, k=k))(gates), oracle) < 1e-10
