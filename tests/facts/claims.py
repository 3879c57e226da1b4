"""Checks that what facts say of gates is true of the gates' values."""

from __future__ import annotations

import itertools

import numpy as np

from stmlang.facts import Facts, Verdict
from stmlang.facts.dependence import Dependence
from stmlang.facts.intervals import Intervals
from stmlang.facts.rewrite import renamed
from stmlang.facts.simplex import Simplex
from stmlang.facts.zeros import Zeros
from stmlang.oracle.gates import Evaluator
from stmlang.oracle.values import Value
from stmlang.scan.expression import STATE_INDICES, Expr, Eye, Power, Product, children
from tests.facts.build import mul, sub
from tests.helpers.scans import NOWHERE

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 0.7, 1e-30, -1e-300, 40.0, -40.0, 1e4, -1e30, 1e200, 2.0, 3.0])
TAME = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 0.7, 1.3, -2.0, 4.0, -40.0, 1e-12])


def by_class(evaluator: Evaluator, value: Value) -> dict[tuple[int, int], np.ndarray]:
    """The numbers of a value at each pair of port classes, 0 standing for an index that it lacks."""
    dag, sites = evaluator.dag, evaluator.frame.sites
    outs = sites.port(value.ports, "out") if "out" in value.ports else np.zeros(len(value.array), np.int64)
    ins = sites.port(value.ports, "in") if "in" in value.ports else np.zeros(len(value.array), np.int64)
    count = len(dag.ports)
    return {(o, i): value.array[(outs == o) & (ins == i)] for o, i in itertools.product(range(count), range(count))}


def at(array: np.ndarray, out: int, into: int) -> float:
    """An entry of a fact's array."""
    return array[out if array.shape[0] > 1 else 0, into if array.shape[1] > 1 else 0]


def slack(bound: float) -> float:
    """What rounding may add to a bound."""
    return 1e-12 * max(1.0, abs(bound)) if abs(bound) < 1e300 else 0.0


def check_intervals(intervals: Intervals, evaluator: Evaluator) -> None:
    for name, value in evaluator.gates.items():
        low, high, nan = intervals.gates[name]
        for (out, into), numbers in by_class(evaluator, value).items():
            bottom, top = at(low, out, into), at(high, out, into)
            if not at(nan, out, into):
                assert not np.isnan(numbers).any(), (name, out, into)
            found = numbers[~np.isnan(numbers)]
            assert (found >= bottom - slack(bottom)).all(), (name, out, into, bottom, found)
            assert (found <= top + slack(top)).all(), (name, out, into, top, found)
            assert bottom <= 0 or (found > 0).all()


def check_zeros(zeros: Zeros, evaluator: Evaluator) -> None:
    for name, value in evaluator.gates.items():
        for (out, into), numbers in by_class(evaluator, value).items():
            if at(zeros.gates[name], out, into):
                assert ((numbers == 0) | np.isnan(numbers)).all(), (name, out, into, numbers)


def same(first: np.ndarray, second: np.ndarray) -> bool:
    """Equal where both are finite: an overflow may make a NaN of what is the same, zero times infinity for one, and a division
    by zero an infinity of either sign."""
    close = np.isclose(first, second, rtol=1e-9, atol=1e-300)
    return bool((close | np.isnan(first) | np.isnan(second) | (np.isinf(first) & np.isinf(second))).all())


def divides_by_zero(zeros: Zeros, expr: Expr) -> bool:
    """Whether a structural zero, whose sign depends on what it is the product of, is divided by."""
    divisors = [factor for inverted, factor in expr.factors if inverted] if isinstance(expr, Product) else []
    divisors += [expr.base] if isinstance(expr, Power) else []
    return any(zeros.of(part).any() for part in divisors) or any(divides_by_zero(zeros, part) for part in children(expr))


def check_dependence(dependence: Dependence, evaluator: Evaluator) -> None:
    """A gate is the same along the indices, and at the nodes, that it is said not to depend on."""
    sites = evaluator.frame.sites
    if any(divides_by_zero(dependence.zeros, clause.value) for gate in evaluator.scan.gates for clause in gate.clauses):
        return
    for name, value in evaluator.gates.items():
        found = dependence.gates[name]
        for axis, index in enumerate(value.states):
            assert index in STATE_INDICES
            if index not in found.varies:
                assert same(value.array, np.take(value.array, [0], axis=2 + axis)), (name, index)
        for index in value.ports:
            if index in found.varies:
                continue
            rest = tuple(entry for entry in value.ports if entry != index)
            group = sites.within(rest, value.ports)
            first = {site: number for number, site in reversed(list(enumerate(group)))}
            assert same(value.array, value.array[[first[site] for site in group]]), (name, index)
        if not found.nodes:
            for numbers in by_class(evaluator, value).values():
                assert same(numbers, numbers[:1]) if len(numbers) else True, name


def matrices(value: Value) -> np.ndarray:
    """A value with its matrix axes last: `(sites, ..., rows, columns)`; without any it is a matrix of one number each."""
    pair = [2 + value.states.index(index) for index in ("key", "key'") if index in value.states]
    if len(pair) < 2:
        return value.array[..., None, None]
    return np.moveaxis(value.array, pair, (-2, -1))


def norms(value: Value) -> np.ndarray:
    """Spectral norms, `(sites, ...)`; infinite where an entry is, NaN where one is no number."""
    found = matrices(value)
    bad = np.isnan(found).any((-1, -2)), np.isinf(found).any((-1, -2))
    safe = np.where(np.isfinite(found), found, 0.0)
    size = np.maximum(np.abs(safe).max((-1, -2)), 1e-300)
    whole = np.linalg.norm(safe / size[..., None, None], 2, axis=(-2, -1)) * size
    return np.where(bad[0], np.nan, np.where(bad[1], np.inf, whole))


def column_sums(evaluator: Evaluator, value: Value) -> tuple[np.ndarray, np.ndarray]:
    """The sum over `out` of norms at each in-site, `(in-sites, ...)`, and the port class of each."""
    sites = evaluator.frame.sites
    whole = evaluator.frame.spread(value, ("out", "in"), value.states)
    found = norms(whole)
    total = np.zeros((sites.count(("in",)), *found.shape[1:]))
    np.add.at(total, sites.line[:, 1], found)
    return total, sites.port(("in",), "in")


def check_bounds(facts: Simplex, evaluator: Evaluator) -> None:
    """Norms, column sums and lengths are within their bounds, and points of the simplex sum to one."""
    operators = facts.operators
    for name, value in evaluator.gates.items():
        with np.errstate(all="ignore"):
            for (out, into), numbers in by_class(evaluator, Value(value.ports, value.states, norms(value))).items():
                bound = at(operators.gates[name].norm, out, into)
                assert not (numbers > bound + slack(bound)).any(), (name, out, into, bound, numbers)
            total, ports = column_sums(evaluator, value)
            for port in range(len(evaluator.dag.ports)):
                column, bound = total[ports == port], at(facts.gates[name].total, 0, port)
                assert not (column > bound + slack(bound)).any(), (name, port, bound, column)
                if at(facts.gates[name].simplex, 0, port):
                    check_simplex(evaluator, value, port)
            for index, bounds in operators.lengths.gates[name].lengths.items():
                axis = 2 + value.states.index(index)
                largest = np.maximum(np.abs(value.array).max(axis, keepdims=True), 1e-300)
                size = largest * np.linalg.norm(value.array / largest, axis=axis, keepdims=True)
                for (out, into), numbers in by_class(evaluator, Value(value.ports, value.states, size)).items():
                    bound = at(bounds, out, into)
                    assert not (numbers > bound + slack(bound)).any(), (name, index, bound, numbers)


def check_simplex(evaluator: Evaluator, value: Value, port: int) -> None:
    sites = evaluator.frame.sites
    whole = evaluator.frame.spread(value, ("out", "in"), value.states).array
    total = np.zeros((sites.count(("in",)), *whole.shape[1:]))
    np.add.at(total, sites.line[:, 1], whole)
    here = sites.port(("in",), "in") == port
    continued = np.isin(np.arange(len(here)), sites.line[:, 1])
    assert not (whole[here[sites.line[:, 1]]] < 0).any()
    assert not (np.abs(total[here & continued] - 1) > 1e-12).any(), total[here & continued]


def path_counts(evaluator: Evaluator, used: np.ndarray) -> np.ndarray:
    """How many paths lead from edge to edge through the line edges that are used: the inverse of one minus the adjacency."""
    sites, count = evaluator.frame.sites, evaluator.dag.edge_count
    steps = np.zeros((count, count))
    line = sites.line[used]
    np.add.at(steps, (sites.out_edge[line[:, 0]], sites.in_edge[line[:, 1]]), 1.0)
    return np.linalg.inv(np.eye(count) - steps)


def check_verdict(verdict: Verdict, evaluators: list[Evaluator]) -> None:
    """The mode that is said to hold holds."""
    for evaluator in evaluators:
        value = evaluator.gates["transition"]
        with np.errstate(all="ignore"):
            total, _ = column_sums(evaluator, value)
            entries = norms(evaluator.frame.spread(value, ("out", "in"), value.states))
        if verdict.mode == "P" or verdict.also:
            assert not (total > 1 + 1e-12).any(), (verdict, total)
        if verdict.mode == "D" or verdict.also:
            assert not (entries > 1 + 1e-12).any(), (verdict, entries)
            used = ((entries != 0) & ~np.isnan(entries)).any(tuple(range(1, entries.ndim)))
            assert path_counts(evaluator, used).max(initial=0) <= 1, verdict


def close(first: Value, second: Value, evaluator: Evaluator) -> bool:
    """Whether two values are the same wherever both are finite and not close to the ends of the number range."""
    _, _, (a, b) = evaluator.frame.together([first, second])
    with np.errstate(all="ignore"):
        bad = ~np.isfinite(a) | ~np.isfinite(b) | (np.abs(b) > 1e100) | (np.abs(b) < 1e-100)
        return bool((bad | np.isclose(a, b, rtol=1e-9)).all())


def times(evaluator: Evaluator, first: Value, second: Value) -> Value:
    ports, states, (a, b) = evaluator.frame.together([first, second])
    with np.errstate(all="ignore"):
        return Value(ports, states, a * b)


def check_forms(facts: Facts, evaluator: Evaluator) -> None:
    """The factors of a rank-one transition multiply to it; a clause in the delta rule's form is what the form says."""
    if facts.rank_one is not None:
        with np.errstate(all="ignore"):
            out, into = evaluator.evaluate(facts.rank_one.out_factor), evaluator.evaluate(facts.rank_one.in_factor)
        assert "in" not in out.ports
        assert "out" not in into.ports
        assert close(times(evaluator, out, into), evaluator.gates["transition"], evaluator)
    for form, clause in zip(facts.factored, facts.scan.gate("transition").clauses, strict=True):
        if form is not None:
            row, column = form.pair
            outer = mul(form.strength, form.u, renamed(form.u, {row: column}))
            whole = mul(form.scale, sub(Eye(row, column, NOWHERE), outer))
            with np.errstate(all="ignore"):
                assert close(evaluator.evaluate(whole), evaluator.evaluate(clause.value), evaluator)
