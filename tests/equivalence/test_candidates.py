"""Every strategy agrees with the recurrence, in value, final states and gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stmlang.oracle.dense import gating_matrix
from tests.helpers.calls import as_tree, compiled, differentiated, error, errors, expected
from tests.helpers.cases import CASES, QUICK, Case, Way


def every(cases: Iterable[Case], kept: Callable[[Case, int], bool] = lambda _, __: True) -> list:
    """A parameter for each case and each strategy that must take it; `kept` chooses by the case and a running number."""
    pairs = [(case, way, number + place) for number, case in enumerate(cases) for place, way in enumerate(case.strategies)]
    return [
        pytest.param(case, way, id=f"{case.name}-{way[0]}{'' if way[1] is None else next(iter(way[1].values()))}")
        for case, way, number in pairs
        if kept(case, number)
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


def differentiates(case: Case, number: int) -> bool:
    """To compile a derivative takes three times as long as a value: every other pair goes without, save in the slow sweep."""
    return number % 2 == 0 or len(case.strategies) == 1


@pytest.mark.parametrize(("case", "way"), every(QUICK, differentiates))
def test_value_and_gradient(case: Case, way: Way) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize(("case", "way"), every(QUICK, lambda case, number: not differentiates(case, number)))
def test_value(case: Case, way: Way) -> None:
    wanted, op = expected(case), compiled(case, way)
    found = op(*as_tree(wanted.arguments), return_state=True)
    assert max(errors(found, wanted.result).values()) <= 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(CASES))
def test_double(case: Case, way: Way) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), every(CASES))
def test_single(case: Case, way: Way) -> None:
    check(case, way, "float32", 1e-5)


@pytest.mark.parametrize(
    ("case", "way"), every([case for case in QUICK if case.name in ("chain 17", "chain 9 delta", "dag D")])
)
def test_single_quick(case: Case, way: Way) -> None:
    check(case, way, "float32", 1e-5)


@pytest.mark.parametrize("name", ["chain 2", "chain 17", "grid 5x3", "dag D", "tree"])
def test_gating_matrix(name: str) -> None:
    """However the scan itself is evaluated, and though no strategy was asked for."""
    case = next(case for case in QUICK if case.name == name)
    wanted, op = expected(case), compiled(case)
    q, k, v, gates, _ = as_tree(wanted.arguments)
    oracle = gating_matrix(op.scan, op.dag, q, k, v, gates)
    assert error(op.gating_matrix(gates, q=q, k=k), oracle) < 1e-10
