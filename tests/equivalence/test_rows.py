"""Rows joined to runs: sizes that do not fit, any axis cut, any set of directions, streamed blocks, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.xla_flags import affected
from tests.equivalence.test_candidates import check
from tests.equivalence.test_transforms import hessian, vmap_of_grad
from tests.helpers.calls import as_tree, compiled, error, errors, expected
from tests.helpers.cases import ALL, CONCAT, CYCLIC, DISTRIBUTE, GIVEN, MULTITREE, NONE, PROPAGATE, RANK_ONE, SQUARE, Case, Way
from tests.helpers.scan_calls import largest
from tests.helpers.smallest import GRID, Subject, subject

SPEC = "std:plstm/image_p"
VOLUME = "grid(a = 3, b = 4, c = 5)"
PAIR, THREE = "    directions +rows -cols, -rows +cols\n", "    directions +rows -cols, -rows +cols, +rows +cols\n"
P_EDGES = """
    alpha = {}
    source[out] = split(alpha)[out]
    transition[out, in] = split(alpha)[out]
    mark[in] = given()
    direct = given()
"""


def way(axis: int, rows: int, targets: int) -> Way:
    return "rows", {"axis": axis, "rows": rows, "targets": targets}


def case(name: str, topology: str, body: str, settings: Way, heads: int = 1, exact: bool = False) -> Any:
    return pytest.param(Case(name, topology, body, (settings,), heads=heads, exact=exact), id=f"{name}-{settings[1]}")


VALUES = (
    case("1x1", SQUARE.format(1, 1), GIVEN + ALL + NONE, way(0, 1, 1)),
    case("1x7", SQUARE.format(1, 7), RANK_ONE + ALL + PROPAGATE, way(0, 1, 9), heads=2),
    case("7x1 concat", SQUARE.format(7, 1), CYCLIC + CONCAT, way(0, 2, 9)),
    case("2x2", SQUARE.format(2, 2), GIVEN + ALL + NONE, way(1, 1, 1)),
    case("5x3 exact", SQUARE.format(5, 3), GIVEN + ALL + NONE, way(1, 1, 2), heads=2, exact=True),
    case("8x8 D", SQUARE.format(8, 8), MULTITREE + ALL + DISTRIBUTE, way(0, 4, 16)),
    case("9x13 forward", SQUARE.format(9, 13), GIVEN + NONE, way(1, 4, 20)),
    case("4x6 pair", SQUARE.format(4, 6), GIVEN + PAIR + NONE, way(1, 3, 99)),
    case("5x7 three", SQUARE.format(5, 7), GIVEN + THREE + NONE, way(1, 2, 4)),
    case("6x4 backward concat", SQUARE.format(6, 4), GIVEN + "    directions -rows -cols concat\n" + NONE, way(0, 6, 4)),
    case("5x4 P at 0", SQUARE.format(5, 4), P_EDGES.format(0) + ALL + PROPAGATE, way(0, 2, 99)),
    case("5x4 P at 1", SQUARE.format(5, 4), P_EDGES.format(1) + ALL + PROPAGATE, way(1, 1, 99)),
)
GRADIENTS = (
    case("5x3", SQUARE.format(5, 3), CYCLIC + ALL + PROPAGATE, way(0, 3, 99), heads=2),
    case("8x8", SQUARE.format(8, 8), RANK_ONE + ALL + PROPAGATE, way(0, 2, 8)),
    case("4x3 exact", SQUARE.format(4, 3), GIVEN + CONCAT + NONE, way(0, 1, 99), exact=True),
    case("3x4x5", VOLUME, GIVEN + "    directions +a -b +c, -a +b +c\n" + NONE, way(2, 2, 20)),
)


@pytest.mark.parametrize("given", VALUES)
def test_value_and_states(given: Case) -> None:
    wanted, op = expected(given), compiled(given, given.strategies[0])
    assert op.plan.strategy == "rows"
    assert max(errors(op(*as_tree(wanted.arguments), return_state=True), wanted.result).values()) < 1e-10


@pytest.mark.parametrize("given", GRADIENTS)
def test_gradient(given: Case) -> None:
    check(given, given.strategies[0], "float64", 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("given", VALUES)
def test_every_gradient(given: Case) -> None:
    check(given, given.strategies[0], "float64", 1e-10)
    check(given, given.strategies[0], "float32", 1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_precisions(dtype: str, tolerance: float) -> None:
    config = {"axis": 1, "rows": 2, "targets": 8}
    op = stmlang.compile(SPEC, dtype=dtype, strategy="rows", config=config, rows=5, cols=7, heads=2, key=8, value=8)
    q, k, v, gates = op.example(0)
    found = op(q, k, v, gates)
    assert found.dtype == jnp.dtype(dtype)
    assert error(found, op.reference(q, k, v, gates)) < tolerance


@pytest.mark.parametrize("transformation", [vmap_of_grad, hessian], ids=lambda function: function.__name__)
def test_transformations_of_streamed_blocks(transformation: Callable[[Subject], None]) -> None:
    """The table of transformations takes settings that the planner proposes, and for a small grid it proposes no streaming."""
    transformation(streamed())


@cache
def streamed() -> Subject:
    return subject(GRID, *way(0, 1, 2))


def test_streamed_blocks_hold_no_matrix() -> None:
    """Forward and backward no array has a number for every pair of nodes, where the strategy that holds the gating matrix has
    one; none has half as many. XLA of jaxlib 0.10.2 allots a fifth of the memory, that of 0.11.2 more."""
    nodes, numbers, used = 24 * 24, list[int](), list[int]()
    for strategy, config in (("parallel", None), ("rows", {"axis": 0, "rows": 3, "targets": 96})):
        op = stmlang.compile(SPEC, strategy=strategy, config=config, rows=24, cols=24, heads=1, key=8, value=8)
        gradient = jax.jit(jax.grad(lambda arguments, op=op: jnp.sum(op(*arguments) ** 2)))
        used.append(gradient.lower(op.example()).compile().memory_analysis().temp_size_in_bytes)
        numbers.append(largest(op))
    assert numbers[0] >= nodes**2
    assert 2 * numbers[1] < nodes**2
    assert 5 * used[1] < used[0] or not affected()


def test_programs_grow_with_the_logarithm() -> None:
    """Of whole runs and of blocks of targets, of which there are as many more as there are nodes."""
    counts = []
    for rows in (8, 16, 32, 64, 128, 256):
        config = {"axis": 0, "rows": 2, "targets": 8}
        op = stmlang.compile(SPEC, strategy="rows", config=config, rows=rows, cols=3, heads=1, key=4, value=4)
        counts.append(op.lower_text("stablehlo").count(" = "))
    assert max(np.diff(counts)) < 200
    assert max(np.diff(counts)) == min(np.diff(counts))


@pytest.mark.parametrize(
    ("sizes", "config", "words"),
    [
        ({}, {"axis": 2, "rows": 1, "targets": 1}, "axis"),
        ({}, {"axis": 0, "rows": 0, "targets": 1}, "positive"),
        ({}, {"tile": 3}, "settings"),
    ],
)
def test_refusals(sizes: dict[str, int], config: dict[str, int], words: str) -> None:
    with pytest.raises(stmlang.SpecError, match=words):
        stmlang.compile(SPEC, strategy="rows", config=config, rows=3, cols=3, **sizes)
    with pytest.raises(stmlang.SpecError, match="two axes"):
        stmlang.compile("std:plstm/chain", strategy="rows", time=5)
