"""The relations hold: of the recurrence itself, where nothing is compiled, and of every strategy on the table of scans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from stmlang.fuzz.memory import forget
from stmlang.fuzz.relations import RELATIONS, grid_relations
from stmlang.fuzz.relations.graphs import Rewiring, line_numbers, line_pairs, part_of, renumbered, topological_order, turned
from stmlang.fuzz.relations.instance import Given, Outcome, outcome
from stmlang.fuzz.relations.subject import Subject, subject
from stmlang.fuzz.trial import Check, Finding, NotApplicable, Trial, Way
from stmlang.graph.dag import DAG
from stmlang.oracle.recurrence import reference
from stmlang.scan.scan import Direction
from tests.helpers.cases import QUICK, Case
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]


def trial_of(case: Case) -> Trial:
    return Trial(case.text, case.name, "exact" if case.exact else "random", len(case.name))


# --- of the recurrence

SMALL_CASES = (
    "chain 2",
    "chain 9 delta",
    "chain 9 key",
    "chain 12 mlstm",
    "grid 3x4 turn",
    "grid 4x3 matrix",
    "grid 3x3 tracks",
    "grid 5x4 turn sum",
    "grid 2x4x3 constant",
    "dag given",
    "dag matrix",
    "tree",
    "factors sum",
    "factors product",
)
"""Chains, grids of two and three axes, graphs and a product; every kind of state, and each way to add directions up."""


class ByRecurrence(Subject):
    """A subject that calls nothing but the recurrence."""

    def call(self, given: Given) -> Outcome:
        found = reference(self.instance.scan, self.instance.dag, *given.tree)
        return outcome((found.h, found.state))

    def call_both(self, first: Given, second: Given) -> list[Outcome]:
        return [self.call(first), self.call(second)]


@pytest.fixture
def by_recurrence(monkeypatch: pytest.MonkeyPatch) -> Any:
    forget()
    for name in ("call", "call_both"):
        monkeypatch.setattr(Subject, name, getattr(ByRecurrence, name))
    yield
    forget()


def applied(relation: Check, names: tuple[str, ...]) -> dict[str, Finding | None]:
    """What a relation says of the scans that it applies to."""
    found: dict[str, Finding | None] = {}
    for case in QUICK:
        if case.name in names:
            try:
                found[case.name] = relation(trial_of(case), Way("recurrent", {}))
            except NotApplicable:
                continue
    return found


OTHERWISE = ("chunk size and depth", "each graph by itself")
"""A recurrence has no chunks, and no scan of the table is about several graphs."""


@pytest.mark.usefixtures("by_recurrence")
@pytest.mark.parametrize("name", [name for name in RELATIONS if name not in OTHERWISE])
def test_relations_hold_of_the_recurrence(name: str) -> None:
    found = applied(RELATIONS[name], SMALL_CASES)
    assert found
    assert {case: finding for case, finding in found.items() if finding is not None} == {}


@pytest.mark.usefixtures("by_recurrence")
def test_what_relations_apply_to() -> None:
    """None is silent about the scans that it is for."""
    graphs = {"dag given", "dag matrix", "tree", "factors sum", "factors product"}
    grids = {name for name in SMALL_CASES if name.startswith("grid")}
    assert set(applied(RELATIONS["relabel nodes"], SMALL_CASES)) == graphs
    assert set(applied(RELATIONS["transpose"], SMALL_CASES)) == grids
    assert set(applied(RELATIONS["cut and carry the state over"], SMALL_CASES)) == set(SMALL_CASES)


# --- of every strategy


def pairs() -> list[Any]:
    """Every case that stands by itself with each strategy that must take it."""
    return [
        pytest.param(case, way, id=f"{case.name}-{way[0]}{'' if way[1] is None else next(iter(way[1].values()))}")
        for case in QUICK
        if not case.files
        for way in case.strategies
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "way"), pairs())
def test_relations_hold_of_every_strategy(case: Case, way: tuple[str, Mapping[str, Any] | None]) -> None:
    strategy, config = way
    findings: list[Finding] = []
    for relation in RELATIONS.values():
        try:
            finding = relation(trial_of(case), Way(strategy, config or {}))
        except NotApplicable:
            continue
        findings += [] if finding is None else [finding]
    assert findings == []


# --- graphs rewritten

DIAMOND = DAG(
    (4,),
    np.asarray([-1, 0, 0, 1, 2, 3]),
    np.asarray([0, 1, 2, 3, 3, -1]),
    np.zeros(6, np.int64),
    ("edge",),
)


BATCHED = """scan s(heads = 2, key = 2, value = 2) on dag(nodes <= 9, edges <= 9) {
    directions both
    source[out] = sigmoid(linear(x, e[out]))
    mark[in] = tanh(linear(x, e[in]))
    share[out] = softmax(linear(x), over = out)
    transition[out, in] = mark * share
    stabilize P
}"""


@pytest.mark.parametrize("strategy", ["recurrent", "nodes", "packed", "packed_nodes"])
def test_each_graph_is_by_itself(strategy: str) -> None:
    graphs = ((5, ((0, 1), (0, 2), (1, 3), (2, 3))), (1, ()), (4, ((3, 1), (1, 0), (3, 0))))
    trial = Trial(BATCHED, "run-time dag", "random", 3, graphs)
    assert RELATIONS["each graph by itself"](trial, Way(strategy, {})) is None


def test_line_pairs_are_those_of_the_library() -> None:
    assert line_pairs(DIAMOND) == [tuple(pair) for pair in DIAMOND.line_edges.tolist()]


@pytest.mark.parametrize(
    "to",
    [
        renumbered(DIAMOND, np.asarray([2, 0, 3, 1]), np.asarray([5, 3, 0, 1, 4, 2])),
        turned(DIAMOND),
        part_of(DIAMOND, np.asarray([1, 3])),
    ],
    ids=["renumbered", "turned", "part"],
)
def test_line_edges_keep_their_edges(to: Rewiring) -> None:
    """The pair that a number of the new graph stands for joins the same two edges in the old one."""
    old = line_pairs(DIAMOND)
    for place, (into, out) in zip(line_numbers(DIAMOND, to), line_pairs(to.dag), strict=True):
        pair = (int(to.edge[into]), int(to.edge[out]))
        assert old[place] == (pair[::-1] if to.turned else pair)


def test_parts_are_open_where_they_were_cut() -> None:
    part = part_of(DIAMOND, np.asarray([1, 3])).dag
    assert part.tail.tolist() == [-1, 0, -1, 1]
    assert part.head.tolist() == [0, 1, 1, -1]


def test_orders_lead_forward() -> None:
    for seed in range(5):
        for direction, first in ((Direction((1,)), 0), (Direction((-1,)), 3)):
            order = topological_order(DIAMOND, direction, np.random.default_rng(seed)).tolist()
            assert order[0] == first
            assert sorted(order) == [0, 1, 2, 3]


# --- what they cannot say


def test_refusals() -> None:
    nothing = Trial(
        "scan test(key = 2, value = 2) on chain(t = 0) {\n source = 1; transition = param(1); mark = 1; direct = 1\n}",
        "",
        "random",
        0,
    )
    with pytest.raises(NotApplicable, match="no nodes"):
        subject(nothing, Way("recurrent", {}))


@pytest.mark.parametrize(
    ("axes", "before", "after", "expected"),
    [
        ((3, 5), (2, 1), (1, 2), ((2, 1), (1, 2))),
        ((4, 1, 1, 7), (2, 2, 2, 2), (2, 2, 2, 2), ((0, 0, 2, 2), (0, 0, 2, 2))),
        ((40, 40), (1, 0), (0, 0), ((1, 0), (0, 0))),
    ],
)
def test_margins_make_no_grid_a_hundred_times_as_large(axes, before, after, expected) -> None:
    assert grid_relations._narrowed(axes, before, after) == expected
