"""Every strategy agrees with the recurrence, in value, final states and gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import pytest

from stmlang.oracle.dense import gating_matrix
from tests.helpers.calls import as_tree, compiled, disagreement, error, errors, expected
from tests.helpers.cases import CASES, QUICK, Case, Way


def every(cases: Iterable[Case], *turns: int) -> list[Any]:
    """A parameter for each case and each strategy that must take it; of named `turns`, only the pairs in turn."""
    return [
        pytest.param(case, way, id=f"{case.name}-{way[0]}{'' if way[1] is None else next(iter(way[1].values()))}")
        for case, way, turn in in_turns(cases)
        if not turns or turn in turns
    ]


GRADIENT, VALUE, NEITHER = range(3)


def in_turns(cases: Iterable[Case]) -> Iterator[tuple[Case, Way, int]]:
    """The pairs, each with its turn.

    Compiling takes all the time, a gradient three times that of a value. So without the slow tests one of a case's strategies
    has its gradient compared and its value, a quarter of the others their value, and the rest neither: first those that were
    differentiated least in the cases before, of these the rarer ones. So each case has a gradient; and so has each strategy of
    the table, at the latest in the last case that it takes."""
    cases = tuple(cases)
    gradients, values, pairs = Counter[str](), Counter[str](), Counter(way[0] for case in cases for way in case.strategies)
    later = pairs.copy()
    for case in cases:
        later.subtract(way[0] for way in case.strategies)
        ways = sorted(case.strategies, key=lambda way: (gradients[way[0]], pairs[way[0]]))
        chosen = [way for way in ways if not gradients[way[0]] and not later[way[0]]] or ways[:1]
        others = [way for way in ways if way not in chosen]
        others.sort(key=lambda way: gradients[way[0]] + values[way[0]])
        valued = others[: (len(others) + 3) // 4]
        gradients.update(way[0] for way in chosen)
        values.update(way[0] for way in valued)
        for way in case.strategies:
            yield case, way, GRADIENT if way in chosen else VALUE if way in valued else NEITHER


def check(case: Case, way: Way, dtype: str, tolerance: float) -> None:
    """Value, states and gradient of a case by one strategy."""
    op = compiled(case, way, dtype)
    assert op.plan.strategy == way[0]
    assert {name: size for name, size in disagreement(op, expected(case), dtype).items() if not size <= tolerance} == {}


def check_value(case: Case, way: Way) -> None:
    """Value and states of a case by one strategy."""
    wanted, op = expected(case), compiled(case, way)
    assert op.plan.strategy == way[0]
    result = jax.jit(lambda *tree: op(*tree, return_state=True))(*as_tree(wanted.arguments))
    assert max(errors(result, wanted.result).values()) <= 1e-10


@pytest.mark.parametrize(("case", "way"), every(QUICK, GRADIENT))
def test_value_and_gradient(case: Case, way: Way) -> None:
    check(case, way, "float64", 1e-10)


@pytest.mark.parametrize(("case", "way"), every(QUICK, VALUE))
def test_value(case: Case, way: Way) -> None:
    check_value(case, way)


def test_no_case_and_no_strategy_is_left_out() -> None:
    """Each case has a gradient, and a value besides where it has two strategies; each strategy has two gradients at least."""
    pairs = list(in_turns(QUICK))
    for case in QUICK:
        turns = {turn for other, _, turn in pairs if other == case}
        assert turns >= ({GRADIENT} if len(case.strategies) == 1 else {GRADIENT, VALUE})
    gradients = Counter(way[0] for _, way, turn in pairs if turn == GRADIENT)
    assert all(gradients[way[0]] > 1 for _, way, _ in pairs)


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
