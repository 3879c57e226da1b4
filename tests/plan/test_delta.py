"""The delta rule's way through a chain: what it refuses and costs."""

from __future__ import annotations

import pytest

import stmlang
from stmlang.cost.candidate import Rejection
from stmlang.strategies.delta import cost as delta
from tests.plan.scans import asked, diamond, grid, offered, problem


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (problem(grid(4, 4)), "a chain"),
        (problem(diamond()), "a chain"),
        (problem(grid(0)), "no nodes"),
        (problem(grid(8), track=2), "track = 2"),
        (problem(grid(8)), "of the form scale[out, in] * (eye[key, key'] - strength"),
        (problem(grid(8), transition=("key", "key'")), "of the form"),
    ],
)
def test_refusals(given, words):
    (refused,) = offered(delta.STRATEGY, given)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    assert asked(delta.STRATEGY, given, {"chunk": 4}) == refused


@pytest.mark.parametrize("length", [256, 1024, 4096])
def test_the_library_takes_it_in_training(length):
    """A call alone was measured to be faster node by node: 15 ms for 24 on 4,096."""
    plan = stmlang.compile("std:chain/deltanet", time=length, mode="training").plan
    assert plan.strategy == "delta"
    assert plan.config["chunk"] in (32, 64)
    assert stmlang.compile("std:chain/deltanet", time=length, mode="inference").plan.strategy == "walk"


@pytest.mark.parametrize("spec", ["std:chain/deltanet", "std:plstm/image_delta"])
def test_keys_of_one_entry_are_no_delta_rule(spec):
    """Where `1 - beta u^2` is zero at two nodes in a row, a system in what is erased leaves rounding of a state that is gone:
    found by the fuzzer on a grid of 1x8, 2e-16 in float64."""
    sizes = {"time": 8} if spec == "std:chain/deltanet" else {"rows": 1, "cols": 8}
    plan = stmlang.compile(spec, key=1, mode="training", **sizes).plan
    refused = {entry.strategy: entry.reason for entry in plan.rejections}
    for name in ("delta", "delta_dense", "delta_separable"):
        assert "two entries" in refused[name] or "a chain" in refused[name]
    assert "two entries" in refused["delta_dense"]
    assert plan.strategy not in refused
