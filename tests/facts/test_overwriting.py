"""The delta rule's form with edges, and what transition and source share."""

from __future__ import annotations

import pytest

from stmlang.check import load
from stmlang.facts.overwriting import DeltaRule, delta_rule
from stmlang.scan.show import show_expr

GRID = "grid(rows = 3, cols = 4)"
DAG = "dag { a -> b, c; b, c -> d; d -> e }"
STEP = "(eye[key, key'] - b * k[key] * k[key'])"
PARTS = "b = given(); cut = given(0, 1); d = given(); s = given(); "
MATRIX = "transition[out, in, key, key'] = "


def rule_of(body: str, topology: str = GRID) -> DeltaRule | None:
    text = f"scan test(key = 4, value = 3) on {topology} {{\n    {PARTS}{body}; stabilize none\n}}\n"
    return delta_rule(load(text))


SHARED = [
    (GRID, f"source[out] = s * split(cut)[out]; {MATRIX}d * split(cut)[out] * {STEP}", ("split(cut)[out]", "d", "s")),
    (GRID, f"p[out] = split(cut); source[out] = p[out]; {MATRIX}-d * {STEP} * p[out]", ("p[out]", "-d", "1")),
    (GRID, f"g[in] = given(); source = s; {MATRIX}d * g[in] * {STEP}", ("1", "d * g[in]", "s")),
    (DAG, f"p[out] = linear(e[out]); source[out] = s * p[out]; {MATRIX}p[out] * {STEP}", ("p[out]", "1", "s")),
    (DAG, f"source[key] = given(); transition[key, key'] = d * {STEP}", ("1", "d", "1")),
    # The source goes to other edges than what is passed on, or both depend on pairs of edges.
    (GRID, f"source[out] = given(); {MATRIX}d * split(cut)[out] * {STEP}", None),
    (GRID, f"a[out, in] = given(); source = 1; {MATRIX}a[out, in] * {STEP}", None),
    (GRID, f"source[out] = s * split(cut)[out]; {MATRIX}d * split(s)[out] * {STEP}", None),
    (
        GRID,
        f"source = 1; {MATRIX}d * {STEP}; transition[out = cols, in = rows, key, key'] = 0",
        None,
    ),
]


@pytest.mark.parametrize(("topology", "body", "shares"), SHARED)
def test_shares(topology: str, body: str, shares: tuple[str, str, str] | None) -> None:
    rule = rule_of(body, topology)
    assert rule is not None
    assert (show_expr(rule.transition.strength), show_expr(rule.transition.u)) == ("b", "@k[key]")
    parts = rule.sharing
    assert shares == (None if parts is None else tuple(show_expr(part) for part in (parts.share, parts.into, parts.written)))


def test_a_closed_turn_has_the_scale_zero() -> None:
    rule = rule_of(f"source = 1; {MATRIX}d * {STEP}; transition[out = cols, in = rows, key, key'] = 0")
    assert rule is not None
    assert [show_expr(clause.value) for clause in rule.transition.scale.clauses] == ["d", "0"]
    assert rule.transition.scale.indices == ("out", "in")


OTHERS = [
    # What is erased differs between edges, or between equations, or there is more than it.
    f"c[out] = given(); {MATRIX}eye[key, key'] - c[out] * k[key] * k[key']",
    f"{MATRIX}d * {STEP}; transition[out = cols, in, key, key'] = d * (eye[key, key'] - s * k[key] * k[key'])",
    f"{MATRIX}d * {STEP} + 0.1 * q[key] * q[key']",
    "transition[key, key', value] = given() * (eye[key, key'] - b * k[key] * k[key'])",
    "transition[key] = given()",
]


@pytest.mark.parametrize("body", OTHERS)
def test_other_transitions(body: str) -> None:
    assert rule_of(f"source = 1; {body}") is None
