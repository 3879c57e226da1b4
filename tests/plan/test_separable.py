"""Separable grids: what the strategy takes, refuses and costs."""

from __future__ import annotations

import pytest

import stmlang
from stmlang.check import load
from stmlang.compiler import Call, prepare
from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.lines import first_axis
from stmlang.cost.problem import Problem
from stmlang.cost.settings import settings_dict
from stmlang.strategies.separable import cost as separable
from tests.plan.scans import asked, diamond, grid, offered, problem

GATES = "source[out] = given()\n transition[out, in] = given()\n mark[in] = given()\n"
ONE, OTHER = ("transition[out = cols, in = rows] = 0\n", "transition[out = rows, in = cols] = 0\n")


def given(turns: str, axes: str = "rows = 6, cols = 4") -> Problem:
    text = f"scan test(heads = 2, key = 3, value = 2) on grid({axes}) {{\n{GATES}{turns}stabilize none\n}}\n"
    return prepare(load(text), Call()).problem


@pytest.mark.parametrize(("turns", "axis"), [(ONE, 1), (OTHER, 0), (ONE + OTHER, 1), ("", None)])
def test_which_axis_comes_first(turns, axis):
    facts = given(turns).facts
    assert facts is not None
    assert first_axis(facts) == axis


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (problem(grid(8)), "two axes"),
        (problem(diamond()), "two axes"),
        (problem(grid(3, 3)), "turn"),
        (problem(grid(4, 4), track=2), "track = 2"),
        (problem(grid(4, 4), transition=("key", "key'")), "(key, key')"),
        (given(""), "turn"),
        (given(ONE, "rows = 0, cols = 4"), "no nodes"),
    ],
)
def test_refusals(refused, words):
    (found,) = offered(separable.STRATEGY, refused)
    assert isinstance(found, Rejection)
    assert words in found.reason
    assert asked(separable.STRATEGY, refused, {"rows": 2}) == found


@pytest.mark.parametrize(
    ("config", "words"), [({}, "rows"), ({"rows": 0}, "0"), ({"rows": (2,)}, "rows"), ({"tile": 2}, "rows")]
)
def test_bad_settings_are_refused_in_words(config, words):
    found = asked(separable.STRATEGY, given(ONE), config)
    assert isinstance(found, Rejection)
    assert words in found.reason


def rows_of(entries: list[Candidate | Rejection]) -> list[object]:
    return [settings_dict(entry.settings)["rows"] for entry in entries if isinstance(entry, Candidate)]


def test_proposals_are_blocks_of_lines_and_the_whole():
    def rows(turns: str) -> list[object]:
        return [
            settings_dict(found.settings)["rows"]
            for found in offered(separable.STRATEGY, given(turns))
            if isinstance(found, Candidate)
        ]

    assert rows(ONE) == [1, 2, 4, 6]
    assert rows(OTHER) == [1, 2, 4]
    built = asked(separable.STRATEGY, given(ONE), {"rows": 100})
    assert isinstance(built, Candidate)
    assert settings_dict(built.settings) == {"rows": 6}


def test_too_many_pairs_are_refused():
    large = given(ONE, "rows = 256, cols = 256")
    assert isinstance(asked(separable.STRATEGY, large, {"rows": 256}), Rejection)
    assert [
        settings_dict(found.settings)["rows"] for found in offered(separable.STRATEGY, large) if isinstance(found, Candidate)
    ] == [1, 2, 4, 8]


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize(("side", "heads", "batch"), [(14, 3, 4), (24, 3, 4)])
def test_images_in_distribution_mode_take_it(side, heads, batch, mode):
    plan = stmlang.compile("std:plstm/image_d", rows=side, cols=side, heads=heads, batch=batch, mode=mode).plan
    assert plan.strategy == "separable"


def test_blocks_save_memory():
    large = given(ONE, "rows = 64, cols = 64")
    few, whole = (asked(separable.STRATEGY, large, {"rows": rows}) for rows in (1, 64))
    assert isinstance(few, Candidate)
    assert isinstance(whole, Candidate)
    assert 5 * few.memory_backward < whole.memory_backward
