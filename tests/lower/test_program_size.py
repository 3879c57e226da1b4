"""Programs stay small: they grow with the logarithm of the size, and hold no index tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax

import stmlang
from stmlang.runtime.compiled import CompiledScan

GRID = "std:plstm/image_p"
CHAIN = "std:plstm/chain"


def text(op: CompiledScan) -> str:
    return op.lower_text("stablehlo")


def op_count(op: CompiledScan) -> int:
    return text(op).count(" = ")


def compiled(spec: str, strategy: str, config: dict[str, Any] | None = None, **sizes: int) -> CompiledScan:
    return stmlang.compile(spec, strategy=strategy, config=config, heads=2, key=8, value=8, **sizes)


def test_the_fully_parallel_grid_is_bounded() -> None:
    """16x16, four directions. The authors' program has 15,600 operations."""
    op = compiled(GRID, "parallel", rows=16, cols=16)
    assert op_count(op) < 1800
    q, k, v, gates = op.example()
    backward = jax.jit(jax.grad(lambda q, gates: op(q, k, v, gates).sum(), argnums=(0, 1)))
    assert backward.lower(q, gates).as_text().count(" = ") < 4500


def test_parallel_grows_with_the_logarithm_of_the_side() -> None:
    counts = [op_count(compiled(GRID, "parallel", rows=side, cols=side)) for side in (8, 16, 32)]
    steps = [after - before for before, after in pairwise(counts)]
    assert steps[0] == steps[1] < 500


def test_odd_sizes_cost_a_merge_a_level_at_most() -> None:
    even, odd = (op_count(compiled(CHAIN, "parallel", time=length)) for length in (256, 255))
    assert odd < 2 * even


def test_a_raster_sweep_does_not_grow_with_the_grid() -> None:
    ways = [(16, 24, 1), (64, 32, 1), (64, 32, 4)]
    texts = [text(compiled(GRID, "raster", {"tile": (8, 8), "segments": s}, rows=y, cols=x)) for y, x, s in ways]
    counts = [found.count(" = ") for found in texts]
    assert counts[0] == counts[1] < 900
    assert counts[2] < counts[1] + 100
