"""States: sequences and graphs cut anywhere and continued, and decoding step by step.

C13 (fla-org/flash-linear-attention#1140). Where a piece was shorter than a convolution's window, the outputs were right, but
gradients of the final state went to wrong places and a part of the initial state's was dropped. Here pieces of any length
give the gradients of the whole.

C15 (state-spaces/mamba#683, also #500 and #1024; fla-org/flash-linear-attention#83). Decoding step by step agreed with the
parallel pass for some thirty tokens and then drifted; the same steps taken twice gave different numbers. Here neither
happens, at any length.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.graph.levels import topological_order
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import DELTA, KEY, MLSTM
from tests.helpers.cuts import by_parts, by_tiles
from tests.helpers.scans import arrows
from tests.public.chains import PLAIN, Names, Tree, as_type, every_way, scan_on, settings, sweep

# --- C13: cuts


@cache
def piece(topology: str, body: str, strategy: str, size: int = 2) -> Any:
    """A scan on one piece, compiled once for each size; one too short to cut has pieces of one node."""
    text = scan_on(topology, body, heads=2, key=2, value=3)
    config = settings(stmlang.compile(text, dtype="float64"), strategy, size)
    return stmlang.compile(text, dtype="float64", strategy=strategy, config=config)


def close(found: Tree, wanted: Tree) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-12


def total(call: Any, tree: Tree) -> tuple[jax.Array, Tree]:
    """The inner product of everything a call gives with fixed random numbers, and what it gives."""
    rng, found = np.random.default_rng(1), call(*tree)
    return sum(jnp.sum(leaf * rng.normal(size=leaf.shape)) for leaf in jax.tree.leaves(found)), found


def judged(call: Any, tree: Tree) -> Tree:
    """All that a call gives, and the gradient by everything it is given."""
    return jax.jit(jax.value_and_grad(lambda tree: total(call, tree), has_aux=True))(tree)


def in_pieces(lengths: tuple[int, ...], body: str, strategy: str) -> Any:
    """A chain evaluated piece by piece."""

    def evaluate(sizes: tuple[int, ...], *arguments: Any) -> Any:
        return piece(f"chain(t = {sizes[0]})", body, strategy)(*arguments, return_state=True)

    return lambda *tree: by_tiles(evaluate, (lengths,), (1,), tree, jnp)


SEQUENCES = [
    ("chunkwise", PLAIN),
    ("linear", PLAIN),
    ("delta", DELTA),
    *(pytest.param(name, PLAIN, marks=pytest.mark.slow) for name in ("recurrent", "parallel", "dense", "dense_nodes")),
    pytest.param("linear", KEY, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("strategy", "body"), SEQUENCES)
def test_C13_a_sequence_cut_into_short_pieces(strategy: str, body: str) -> None:
    """Ten steps as one, two and seven: outputs, final state, and the gradients of both by everything."""
    op = piece("chain(t = 10)", body, strategy)
    tree = as_tree(random_arguments(op, 0))
    cut = in_pieces((1, 2, 7), body, strategy)

    def whole(*tree: Tree) -> Tree:
        return op(*tree, return_state=True)

    close(judged(cut, tree), judged(whole, tree))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["chunkwise", "recurrent", "parallel", "linear"])
def test_C13_second_derivatives_of_short_pieces(strategy: str) -> None:
    """By finite differences, of a state handed over twice."""
    op = piece("chain(t = 4)", PLAIN, strategy)
    tree = as_tree(random_arguments(op, 2))
    cut = in_pieces((1, 1, 2), PLAIN, strategy)
    check_grads(jax.jit(lambda *tree: total(cut, tree)[0]), tree, order=2, modes=["rev"])


@pytest.mark.parametrize(
    "strategy",
    ["nodes", *(pytest.param(name, marks=pytest.mark.slow) for name in ("recurrent", "dense", "dense_nodes", "parallel"))],
)
def test_C13_single_nodes_of_a_graph(strategy: str) -> None:
    """Single nodes of a graph, fed by the states on their open edges: gradients too."""
    op = piece("dag { -> a; a -> b, c; b, c -> d; d -> }", PLAIN, strategy)
    tree = as_tree(random_arguments(op, 0))

    def evaluate(nodes: int, edges: list, *arguments: Any) -> Any:
        return piece(arrows(nodes, edges), PLAIN, strategy)(*arguments, return_state=True)

    order = topological_order(op.dag)
    parts = [np.sort(part) for part in np.split(order, (1, 2))]

    def cut(*tree: Tree) -> Tree:
        return by_parts(evaluate, op.dag, parts, tree, jnp)

    def whole(*tree: Tree) -> Tree:
        return op(*tree, return_state=True)

    close(judged(cut, tree), judged(whole, tree))


# --- C15: decoding step by step


@cache
def decoded(dtype: str, length: int, body: str) -> tuple[Tree, jax.Array]:
    """Arguments of a chain, and its results node by node: a compiled chain of one node, called in a loop. Twice, to the same
    bits."""
    whole = stmlang.compile(scan_on(f"chain(t = {length})", body), dtype="float64")
    step = stmlang.compile(scan_on("chain(t = 1)", body), dtype=dtype)
    q, k, v, gates, _ = as_type(as_tree(random_arguments(whole, 0)), dtype)

    @jax.jit
    def decode(q: Tree, k: Tree, v: Tree, gates: Tree) -> Tree:
        def one(state: Tree, now: Tree) -> Tree:
            h, state = step(*jax.tree.map(lambda array: array[None], now), state, return_state=True)
            return state, h[0]

        return jax.lax.scan(one, step.zero_state(), (q, k, v, gates))[1]

    tree = (q, k, v, gates)
    first = decode(*tree)
    np.testing.assert_array_equal(first, decode(*tree))
    return tree, first


BODIES = {"given": PLAIN, "delta": DELTA, "mlstm": MLSTM}


EXACT, SINGLE = ("float64", 1e-12), ("float32", 2e-5)
QUICK = ("chunkwise", "linear")
SWEEP = [(512, "given", EXACT), (512, "given", SINGLE), (4096, "given", SINGLE), (512, "delta", EXACT), (512, "delta", SINGLE)]


@pytest.mark.parametrize(
    ("length", "body", "precision", "only"),
    [
        (512, "given", EXACT, QUICK),
        (512, "given", SINGLE, QUICK),
        *(pytest.param(*case, None, marks=pytest.mark.slow) for case in (*SWEEP, (512, "mlstm", EXACT))),
    ],
)
def test_C15_decoding_does_not_drift(length: int, body: str, precision: tuple[str, float], only: Names) -> None:
    """Every strategy on the whole sequence against a loop of single steps, and on a sequence that ends earlier against the
    beginning of it. The tolerance does not grow with the length."""
    dtype, tolerance = precision
    tree, wanted = decoded(dtype, length, BODIES[body])
    found = {}
    for name, op in every_way(scan_on(f"chain(t = {length})", BODIES[body]), dtype, 64, only).items():
        found[name] = error(op(*tree), wanted)
    assert {name: worst for name, worst in found.items() if worst > tolerance} == {}


@pytest.mark.parametrize("length", [200, *(pytest.param(length, marks=pytest.mark.slow) for length in (1, 64, 511))])
@sweep("linear")
def test_C15_what_comes_later_does_not_change_what_was(length: int, only: Names) -> None:
    """The beginning of a sequence by itself is the beginning of the whole."""
    tree, wanted = decoded("float64", 512, PLAIN)
    beginning = jax.tree.map(lambda array: array[:length], tree)
    for name, op in every_way(scan_on(f"chain(t = {length})"), "float64", 64, only).items():
        assert error(op(*beginning), wanted[:length]) < 1e-12, name


def test_C15_calls_leave_nothing_behind() -> None:
    """A call gives the same bits after other calls, with other states, have been made."""
    op = stmlang.compile(scan_on("chain(t = 9)", PLAIN), dtype="float64")
    q, k, v, gates, initial = as_tree(random_arguments(op, 0))
    first = op(q, k, v, gates, return_state=True)
    op(*as_tree(random_arguments(op, 1)), return_state=True)
    again = op(q, k, v, gates, return_state=True)
    for mine, other in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert not np.array_equal(op(q, k, v, gates, initial), first[0])
