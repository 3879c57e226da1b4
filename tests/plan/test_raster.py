"""The raster sweep of grids: what it takes, refuses and costs."""

from __future__ import annotations

import pytest

import stmlang
from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.settings import settings_dict
from stmlang.strategies.raster import cost as raster
from tests.plan.scans import asked, diamond, grid, offered, problem


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (problem(grid(8)), "two axes"),
        (problem(diamond()), "a grid"),
        (problem(grid(0, 3)), "no nodes"),
        (problem(grid(4, 4), track=2), "track = 2"),
        (problem(grid(4, 4), transition=("key", "key'")), "(key, key')"),
    ],
)
def test_refusals(given, words):
    (refused,) = offered(raster.STRATEGY, given)
    assert isinstance(refused, Rejection)
    assert words in refused.reason
    assert asked(raster.STRATEGY, given, {"tile": (2, 2)}) == refused


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "tile"),
        ({"tile": 4}, "tile"),
        ({"tile": (4,)}, "2 sides"),
        ({"tile": (4, 0)}, "4x0"),
        ({"tile": (4, 4), "block": 2}, "tile"),
        ({"tile": (4, 4), "segments": 0}, "at most 9"),
        ({"tile": (4, 4), "segments": 10}, "at most 9"),
    ],
)
def test_bad_settings_are_refused_in_words(config, words):
    refused = asked(raster.STRATEGY, problem(grid(9, 8)), config)
    assert isinstance(refused, Rejection)
    assert words in refused.reason


def test_tiles_are_no_larger_than_the_grid():
    built = asked(raster.STRATEGY, problem(grid(3, 8)), {"tile": (16, 4)})
    assert isinstance(built, Candidate)
    assert settings_dict(built.settings) == {"tile": (3, 4), "segments": 1}


def test_proposed_tiles_are_equal_parts_and_long_grids_have_segments():
    configs = [
        settings_dict(found.settings)
        for found in offered(raster.STRATEGY, problem(grid(14, 256)))
        if isinstance(found, Candidate)
    ]
    assert configs == [{"tile": tile, "segments": 1} for tile in ((2, 2), (4, 4), (7, 8))]
    configs = [
        settings_dict(found.settings)
        for found in offered(raster.STRATEGY, problem(grid(256, 6)))
        if isinstance(found, Candidate)
    ]
    assert configs == [{"tile": (2, 2), "segments": 11}, {"tile": (4, 3), "segments": 8}, {"tile": (8, 6), "segments": 5}]


def test_time_is_linear_and_segments_save_memory():
    small, large = (asked(raster.STRATEGY, problem(grid(side, side)), {"tile": (8, 8)}) for side in (64, 256))
    cut = asked(raster.STRATEGY, problem(grid(256, 256)), {"tile": (8, 8), "segments": 5})
    assert isinstance(small, Candidate)
    assert isinstance(large, Candidate)
    assert isinstance(cut, Candidate)
    flops = [sum(stage.flops for stage in found.stages(training=True)) for found in (small, large)]
    assert flops[1] == pytest.approx(16 * flops[0], rel=0.01)
    assert cut.memory_backward < 0.7 * large.memory_backward


@pytest.mark.parametrize(("spec", "side"), [("image_d", 128), ("image_p", 128), ("image_p", 256)])
def test_large_images_are_swept(spec, side):
    op = stmlang.compile(f"std:plstm/{spec}", rows=side, cols=side, target="cpu", heads=1)
    assert op.plan.strategy == "raster"


def test_structural_zeros_halve_the_work():
    def work(spec):
        op = stmlang.compile(f"std:plstm/{spec}", rows=64, cols=64, strategy="raster", config={"tile": (8, 8)})
        stages = op.plan.chosen.candidate.forward
        return next(stage.flops for stage in stages if stage.name == "border states")

    assert work("image_d") < 0.6 * work("image_p")
    assert raster.unturned(problem(grid(4, 4))) == ((False, False), (False, False))
