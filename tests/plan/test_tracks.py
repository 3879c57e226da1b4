"""Chains with tracks in chunks: what they take, refuse and cost."""

from __future__ import annotations

import pytest

from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.chains import Chunk
from stmlang.strategies.tracks import cost as tracks
from tests.plan.scans import asked, diamond, grid, offered, problem


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (problem(grid(4, 4), track=2), "a chain"),
        (problem(diamond(), track=2), "a chain"),
        (problem(grid(0), track=2), "no nodes"),
        (problem(grid(8)), "tracking axis"),
        (problem(grid(8), track=2, transition=("key", "track", "track'")), "(key)"),
        (problem(grid(8), track=2, transition=("key", "key'")), "(key, key')"),
    ],
)
def test_refusals(given, words):
    (refused,) = offered(tracks.STRATEGY, given)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    assert asked(tracks.STRATEGY, given, {"chunk": 4}) == refused


@pytest.mark.parametrize("config", [{}, {"tile": (4,)}, {"chunk": (4,)}, {"chunk": 0}, {"chunk": 4, "tile": 4}])
def test_bad_chunks_are_refused_in_words(config):
    refused = asked(tracks.STRATEGY, problem(grid(8), track=2), config)
    assert isinstance(refused, Rejection)
    assert "chunk" in refused.reason


@pytest.mark.parametrize(("nodes", "chunk", "fitted"), [(1, 1, 1), (1, 9, 1), (100, 5, 8), (100, 64, 64), (100, 500, 128)])
def test_chunks_are_powers_of_two_that_the_chain_fills(nodes, chunk, fitted):
    candidate = asked(tracks.STRATEGY, problem(grid(nodes), track=2), {"chunk": chunk})
    assert isinstance(candidate, Candidate)
    assert candidate.settings == Chunk(fitted)


def test_every_source_meets_every_later_target_once():
    """A merge is a product over tracks of the sources of one half, and its tracks, with the targets of the other, and its."""
    (paths,) = [
        stage for stage in asked(tracks.STRATEGY, problem(grid(4), track=2), {"chunk": 4}).forward if stage.name == "paths"
    ]
    lanes = problem(grid(4), track=2).lanes
    assert paths.flops == lanes * 2 * (2 * (1 + 2) * (1 + 2) + (2 + 2) * (2 + 2))
