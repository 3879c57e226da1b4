"""What each strategy proposes, refuses and costs."""

from __future__ import annotations

import itertools
from math import prod

import pytest

from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.settings import settings_dict
from stmlang.cost.work import boundary, regular_merges
from stmlang.strategies.chunkwise import cost as chunkwise
from stmlang.strategies.dense import cost as dense
from stmlang.strategies.parallel import cost as parallel
from stmlang.strategies.recurrent import cost as recurrent
from stmlang.strategies.registry import strategies
from tests.plan.scans import asked, diamond, grid, offered, problem

TOPOLOGIES = [grid(1), grid(17), grid(1, 1), grid(5, 3), grid(14, 14), grid(3, 4, 5), diamond()]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_strategy_answers_everywhere(topology):
    given = problem(topology, directions=2)
    for strategy in strategies():
        found = list(offered(strategy, given))
        assert found, strategy.name
        for entry in found:
            assert entry.strategy == strategy.name
            if isinstance(entry, Rejection):
                assert entry.reason
                continue
            assert entry.memory_backward >= entry.memory_forward > 0
            assert entry.op_count_backward > entry.op_count > 0
            for stage in entry.forward + entry.backward:
                assert stage.flops >= 0
                assert stage.bytes >= 0
            assert asked(strategy, given, settings_dict(entry.settings)) == entry


@pytest.mark.parametrize("transition", [("key", "key'"), ("key",), ("out", "in", "key", "value")])
def test_only_the_recurrence_takes_state_transitions(transition):
    given = problem(grid(8, 8), transition=transition)
    assert isinstance(asked(recurrent.STRATEGY, given, {}), Candidate)
    for strategy in (parallel.STRATEGY, dense.STRATEGY):
        refused = asked(strategy, given, {})
        assert isinstance(refused, Rejection)
        assert "key" in refused.reason
    (refused,) = offered(chunkwise.STRATEGY, given)
    assert isinstance(refused, Rejection)


def test_tracks_are_walked_or_merged():
    """Level by level, node by node, in blocks of a chain, or as so many edges."""
    given = problem(grid(8), track=2)
    names = {entry.strategy for s in strategies() for entry in offered(s, given) if isinstance(entry, Candidate)}
    assert names == {"recurrent", "tracks", "walk", "parallel", "chunkwise", "dense"}


def test_a_normalizer_is_one_more_column():
    plain, normalized = problem(grid(64)), problem(grid(64), normalize="mlstm")
    assert normalized.value == plain.value + 1
    for strategy in strategies():
        candidates = [
            [entry for entry in offered(strategy, given) if isinstance(entry, Candidate)] for given in (plain, normalized)
        ]
        for a, b in zip(*candidates, strict=all(candidates)):
            assert sum(stage.flops for stage in b.forward) > sum(stage.flops for stage in a.forward)


def test_matrix_transitions_cost_a_matrix_product():
    plain = asked(recurrent.STRATEGY, problem(grid(64), transition=("key",)), {}).forward[-1].flops
    matrix = asked(recurrent.STRATEGY, problem(grid(64), transition=("key", "key'")), {}).forward[-1].flops
    assert matrix > 2 * plain


def test_proposed_tiles_divide_and_lie_near_powers_of_two():
    tiles = chunkwise.proposed_tiles((14, 14))
    assert (7, 7) in tiles
    assert (8, 8) in tiles
    assert (4, 4) in tiles
    assert (14, 14) not in tiles
    assert (1, 1) not in tiles
    assert len(tiles) == len(set(tiles))
    assert chunkwise.proposed_tiles((1, 1)) == []
    assert (13,) in chunkwise.proposed_tiles((169,))
    assert all(
        side <= size for tile in chunkwise.proposed_tiles((3, 4, 500)) for side, size in zip(tile, (3, 4, 500), strict=True)
    )


def test_prime_axes_still_get_tiles():
    assert [tile for tile in chunkwise.proposed_tiles((127,)) if tile != (127,)] == [(2,), (4,), (8,), (16,), (32,), (64,)]


@pytest.mark.parametrize("tile", [(7,), (7, 7, 7), (0, 7), (-1, 2), 7])
def test_bad_tiles_are_refused_in_words(tile):
    refused = asked(chunkwise.STRATEGY, problem(grid(14, 14)), {"tile": tile})
    assert isinstance(refused, Rejection)
    assert "tile" in refused.reason


@pytest.mark.parametrize("block", [0, 3, -4, (2,)])
def test_bad_blocks_are_refused_in_words(block):
    refused = asked(chunkwise.STRATEGY, problem(diamond()), {"block": block})
    assert isinstance(refused, Rejection)
    assert "block" in refused.reason


def test_tiles_larger_than_the_grid_are_the_grid():
    built = asked(chunkwise.STRATEGY, problem(grid(5, 3)), {"tile": (64, 2)})
    assert settings_dict(built.settings) == {"tile": (5, 2)}


def test_chunkwise_steps_are_tile_wavefronts():
    built = asked(chunkwise.STRATEGY, problem(grid(14, 14)), {"tile": (7, 4)})
    assert sum(stage.steps for stage in built.forward) == 2 + 4 - 1


def test_dense_is_for_small_graphs():
    assert isinstance(asked(dense.STRATEGY, problem(grid(16, 16)), {}), Candidate)
    refused = asked(dense.STRATEGY, problem(grid(64, 64)), {})
    assert isinstance(refused, Rejection)
    assert "8,320 edges" in refused.reason


def test_parallel_refuses_what_cannot_be_numbered():
    assert isinstance(asked(parallel.STRATEGY, problem(grid(50_000)), {}), Rejection)
    assert isinstance(asked(parallel.STRATEGY, problem(grid(0, 3)), {}), Rejection)


@pytest.mark.parametrize("sides", [(1,), (2,), (7,), (17,), (5, 3), (8, 8), (3, 4, 5)])
def test_merges_reach_the_whole_box(sides):
    steps = list(regular_merges(sides))
    pairs = sum(side.bit_length() - 1 for side in sides)
    left_over = sum(side.bit_count() - 1 for side in sides)
    assert len(steps) == pairs + left_over
    if steps:
        largest = max(steps, key=lambda step: step.nodes)
        assert (largest.count, largest.nodes, largest.edges) == (1, prod(sides), boundary(sides))
    for step in steps:
        assert step.a + step.b == step.nodes
        assert step.a_edges + step.b_edges == step.edges + step.shared


def test_costs_grow_with_batch_but_steps_do_not():
    one, many = (problem(grid(14, 14), batch=batch) for batch in (1, 32))
    for strategy in strategies():
        for a, b in zip(offered(strategy, one), offered(strategy, many), strict=True):
            if isinstance(a, Rejection):
                assert a == b
                continue
            assert b.memory_backward == 32 * a.memory_backward
            for first, second in zip(a.forward, b.forward, strict=True):
                assert (second.flops, second.steps, second.ops) == (32 * first.flops, first.steps, first.ops)


def test_op_count_grows_with_the_logarithm_of_the_size():
    counts = [asked(parallel.STRATEGY, problem(grid(side, side)), {}).op_count for side in (8, 16, 32, 64, 128)]
    assert len({b - a for a, b in itertools.pairwise(counts)}) == 1
