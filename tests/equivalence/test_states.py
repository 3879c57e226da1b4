"""Images and graphs cut into pieces and continued: outputs and final states as in one piece. Sequences: `tests/public`."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.levels import topological_order
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import GIVEN, SMALL
from tests.helpers.cuts import by_parts, by_tiles
from tests.helpers.scans import arrows

SENSES = {"forward": (1, 1), "+rows -cols": (1, -1)}


@cache
def piece(topology: str, directions: str, strategy: str | None = None) -> Any:
    """A scan with given gates on one piece, compiled once for each size."""
    sizes = "heads = 2, key = 2, value = 3"
    return stmlang.compile(
        f"scan test({sizes}) on {topology} {{\n{GIVEN}    directions {directions}\n    stabilize none\n}}\n",
        dtype="float64",
        strategy=strategy,
    )


def close(found: Any, wanted: Any) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-12


@pytest.mark.parametrize("strategy", ["recurrent", "parallel", "raster"])
@pytest.mark.parametrize("directions", SENSES)
@pytest.mark.parametrize("pieces", [((3, 3), (4,)), ((3, 3), (2, 2))], ids=["halves", "tiles"])
def test_image(strategy: str, directions: str, pieces: Any) -> None:
    whole = piece("grid(rows = 6, cols = 4)", directions, strategy)
    tree = as_tree(random_arguments(whole, 0))

    def evaluate(sizes: tuple[int, ...], *arguments: Any) -> Any:
        return piece(f"grid(rows = {sizes[0]}, cols = {sizes[1]})", directions, strategy)(*arguments, return_state=True)

    close(by_tiles(evaluate, pieces, SENSES[directions], tree), whole(*tree, return_state=True))


@pytest.mark.parametrize("strategy", ["recurrent", "dense", "nodes", "dense_nodes"])
def test_graph(strategy: str) -> None:
    whole = piece(SMALL, "forward", strategy)
    dag = whole.dag
    tree = as_tree(random_arguments(whole, 0))

    def evaluate(nodes: int, edges: list, *arguments: Any) -> Any:
        return piece(arrows(nodes, edges), "forward", strategy)(*arguments, return_state=True)

    order = topological_order(dag)
    for cuts in ((2,), (1, 4)):
        parts = [np.sort(part) for part in np.split(order, cuts)]
        close(by_parts(evaluate, dag, parts, tree), whole(*tree, return_state=True))


def test_a_state_of_zeros_is_none() -> None:
    op = piece(SMALL, "both")
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    close(op(q, k, v, gates, op.zero_state(), return_state=True), op(q, k, v, gates, return_state=True))
