"""The walk over nodes: how often training keeps a state, and what that costs."""

from __future__ import annotations

import pytest

import stmlang
from stmlang.strategies.walk import cost as walk
from stmlang.strategies.walk.settings import Walk
from tests.plan.scans import grid, offered, problem


@pytest.mark.parametrize(("length", "keeps"), [(16, "each"), (64, "each"), (256, "each"), (4096, "some")])
def test_short_chains_keep_each_state(length: int, keeps: str) -> None:
    """Those of Mamba fit in a cache up to 1,000 nodes, and none is made again: 0.57 to 0.93 of a plain scan's time for 0.77 to
    1.5 where every fourth is kept. On 4,096 nodes, 50 MB, it would take three times as long."""
    plan = stmlang.compile("std:chain/mamba", time=length, heads=1, key=16, value=192, mode="training", target="cpu").plan
    assert plan.strategy == "walk"
    assert (plan.config["every"] == 1) == (keeps == "each")


def test_what_is_kept_is_not_made_again() -> None:
    given = problem(grid(8), transition=("key", "value"), mode="training")
    every = {candidate.settings: candidate for candidate in offered(walk.STRATEGY, given)}
    stages = {settings: {stage.name for stage in candidate.backward} for settings, candidate in every.items()}
    assert "states again" not in stages[Walk(1)]
    assert "states again" in stages[Walk(4)]


@pytest.mark.parametrize(("spec", "copies"), [("std:chain/retnet", 0), ("std:plstm/chain", 1)])
def test_what_enters_is_copied_to_be_read(spec: str, copies: int) -> None:
    """Where a node reads what leaves it, nothing is."""
    plan = stmlang.compile(spec, time=8, mode="inference", strategy="walk", target="cpu").plan
    assert sum(stage.name == "copies of states" for stage in plan.chosen.candidate.forward) == copies
