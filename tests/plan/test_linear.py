"""Linear attention's way through a chain: what it takes, refuses and costs."""

from __future__ import annotations

import pytest

import stmlang
from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.settings import settings_dict
from stmlang.cost.target import CPU
from stmlang.plan import make_plan
from stmlang.strategies.linear import cost as linear
from tests.plan.scans import asked, diamond, grid, offered, problem


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (problem(grid(4, 4)), "a chain"),
        (problem(diamond()), "a chain"),
        (problem(grid(0)), "no nodes"),
        (problem(grid(8), track=2), "tracks at all"),
        (problem(grid(8), transition=("key", "key'")), "(key, key')"),
        (problem(grid(8), transition=("key", "value")), "(key, value)"),
    ],
)
def test_refusals(given, words):
    (refused,) = offered(linear.STRATEGY, given)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    assert asked(linear.STRATEGY, given, {"chunk": 4}) == refused


@pytest.mark.parametrize("config", [{}, {"tile": (4,)}, {"chunk": (4,)}, {"chunk": 0}, {"chunk": 4, "tile": 4}])
def test_bad_chunks_are_refused_in_words(config):
    refused = asked(linear.STRATEGY, problem(grid(8)), config)
    assert isinstance(refused, Rejection)
    assert "chunk" in refused.reason


def test_chunks_longer_than_the_chain_are_the_chain():
    built = asked(linear.STRATEGY, problem(grid(9)), {"chunk": 64})
    assert isinstance(built, Candidate)
    assert settings_dict(built.settings) == {"chunk": 9}
    assert sum(stage.steps for stage in built.forward) == 1


def test_levels_are_paid_for():
    """A decay on the key axis has scores of its own at every level, one on the value axis outputs."""
    plain, key, value = (
        sum(stage.flops for stage in asked(linear.STRATEGY, problem(grid(64), transition=axes), {"chunk": 32}).forward)
        for axes in (("out", "in"), ("key",), ("value",))
    )
    assert plain < key < value


@pytest.mark.parametrize("length", [256, 1024, 4096, 65_536])
def test_it_wins_on_chains_in_training(length):
    """As it was measured to, from 256 nodes on."""
    plan = make_plan(problem(grid(length), key=64, value=64, heads=3, batch=4, mode="training"), CPU)
    assert plan.strategy == "linear"
    assert plan.config["chunk"] in (32, 64)


@pytest.mark.parametrize("length", [256, 4096])
def test_calls_alone(length):
    """It wins where a node reads what enters it, 13 ms for 23 on 4,096; the loop over nodes where it reads what leaves it,
    which takes no copy: 10 ms for 14."""
    assert stmlang.compile("std:plstm/chain", time=length, mode="inference").plan.strategy == "linear"
    assert stmlang.compile("std:chain/retnet", time=length, mode="inference").plan.strategy == "walk"


def test_the_library_takes_it():
    for name in ("mlstm", "gla"):
        plan = stmlang.compile(f"std:chain/{name}", time=1024).plan
        assert plan.strategy == "linear", name
