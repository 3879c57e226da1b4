"""Sequences, images and graphs cut into pieces and continued: outputs, final states and all gradients as in one piece."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.graph.levels import topological_order
from stmlang.verify.strategies import random_arguments
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


def product(evaluate: Any, tree: Any, seed: int) -> Any:
    """The inner product of everything a call gives with fixed random numbers, and its gradient."""

    def total(tree: Any) -> Any:
        found = evaluate(*tree)
        rng = np.random.default_rng(seed)
        return sum(jnp.sum(leaf * rng.normal(size=leaf.shape)) for leaf in jax.tree.leaves(found))

    return jax.value_and_grad(total)(tree)


@pytest.mark.parametrize("strategy", ["recurrent", "parallel", "chunkwise", "linear"])
def test_sequence(strategy: str) -> None:
    """Ten steps as one, two and seven."""
    whole = piece("chain(t = 10)", "forward", strategy)
    tree = as_tree(random_arguments(whole, 0))

    def evaluate(sizes: tuple[int, ...], *arguments: Any) -> Any:
        op = piece(f"chain(t = {sizes[0]})", "forward", None if strategy == "chunkwise" and sizes[0] < 3 else strategy)
        return op(*arguments, return_state=True)

    def cut(*tree: Any) -> Any:
        return by_tiles(evaluate, ((1, 2, 7),), (1,), tree, jnp)

    close(cut(*tree), whole(*tree, return_state=True))
    close(product(cut, tree, 1), product(lambda *tree: whole(*tree, return_state=True), tree, 1))


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


def test_step_by_step() -> None:
    """Decoding one node at a time, 512 times, twice: no drift, no hidden memory."""
    whole, step = piece("chain(t = 512)", "forward", "parallel"), piece("chain(t = 1)", "forward", "recurrent")
    q, k, v, gates, _ = as_tree(random_arguments(whole, 0))

    @jax.jit
    def decode(q: Any, k: Any, v: Any, gates: Any) -> Any:
        def one(state: Any, now: Any) -> Any:
            h, state = step(*jax.tree.map(lambda array: array[None], now), state, return_state=True)
            return state, h[0]

        return jax.lax.scan(one, step.zero_state(), (q, k, v, gates))[1]

    first = decode(q, k, v, gates)
    close(first, whole(q, k, v, gates))
    np.testing.assert_array_equal(first, decode(q, k, v, gates))
