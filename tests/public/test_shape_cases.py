"""Shapes: lengths that are no multiple of a piece, what lies beyond the end, and sizes of one and of zero.

C07 (fla-org/flash-linear-attention#1142). Where a length was no multiple of 64, a table was read beyond its end and a term of
the gates' gradient was lost, both in silence. Here every length gives what the recurrence gives, whatever stands in padding.

C09 (state-spaces/mamba#985, fla-org/flash-linear-attention#88, jax-ml/jax#994 and #2412). Sequences of one step, of fewer
than eight, or of none crashed. Here one node is its direct term, and nothing gives nothing, of the right shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.nn import ScanLayer
from tests.helpers.calls import as_tree, differentiated, error, errors
from tests.helpers.cases import ALL, BOTH, DELTA, KEY, MATRIX, MLSTM, NONE, ONE_TURN, READ_AFTER, SMALL, TRACKS
from tests.public.chains import PLAIN, Names, Tree, every_way, ones, recurrence, scan_on, settings, sweep

TURN = ONE_TURN.format("cols", "rows")

# --- C07: lengths and tiles

LENGTHS = (1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 127, 129)
CUTS = [(t, tile, name) for t in LENGTHS for tile in (16, 64) for name in ("chunkwise", "linear")]
QUICK = ((17, 16, "linear"), (65, 64, "chunkwise"))


@pytest.mark.parametrize(
    ("t", "tile", "strategy"), [pytest.param(*cut, marks=[] if cut in QUICK else pytest.mark.slow) for cut in CUTS]
)
def test_C07_lengths_and_tiles(t: int, tile: int, strategy: str) -> None:
    """Result, final state, and the gradient of every gate at every node."""
    text = scan_on(f"chain(t = {t})")
    op = stmlang.compile(text, dtype="float64", strategy=strategy, config=settings(stmlang.compile(text), strategy, tile))
    tree = as_tree(random_arguments(op, t))
    cotangent = ones(op, tree)
    found, wanted = (jax.jit(differentiated(call, cotangent))(tree) for call in (op, recurrence))
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-11


CUT: dict[str, tuple[str, str, str]] = {
    "delta": ("chain(t = 13)", DELTA, "delta"),
    "raster": ("grid(rows = 7, cols = 5)", PLAIN, "raster"),
    "rows": ("grid(rows = 7, cols = 5)", PLAIN, "rows"),
    "separable": ("grid(rows = 7, cols = 5)", TURN + NONE, "separable"),
    "chunkwise": ("grid(rows = 7, cols = 5)", PLAIN, "chunkwise"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "size"),
    [(case, size) for case in CUT for size in (1, 2, 3, 4, 6, 9)],
)
def test_C07_every_strategy_that_cuts(case: str, size: int) -> None:
    """Against the one that does not cut, pieces that divide nothing and pieces longer than an axis among them."""
    where, body, strategy = CUT[case]
    text = scan_on(where, body)
    simple = stmlang.compile(text, dtype="float64", strategy="recurrent")
    op = stmlang.compile(text, dtype="float64", strategy=strategy, config=settings(simple, strategy, size))
    tree = as_tree(random_arguments(op, size))
    cotangent = ones(op, tree)
    found, wanted = (jax.jit(differentiated(call, cotangent))(tree) for call in (op, simple))
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-11


@sweep("chunkwise")
def test_C07_what_lies_beyond_the_end_does_not_matter(only: Names) -> None:
    """A sequence of 21 padded to 32: whatever stands in the padding, results and gradients of the sequence are the same to the
    last bit, and the padding has no gradient."""
    real = np.arange(32) < 21
    for name, op in every_way(scan_on("chain(t = 32)"), "float64", 16, only).items():
        tree = as_tree(random_arguments(op, 0))
        cotangent = jax.tree.map(np.zeros_like, ones(op, tree))
        cotangent[0][real] = 1.0
        call = jax.jit(differentiated(op, cotangent))

        ((h, _), gradient), ((other, _), same) = (call(padded(tree, real, content)) for content in (0.0, 1e6))
        np.testing.assert_array_equal(h[:21], other[:21], err_msg=name)
        for mine, theirs in zip(jax.tree.leaves(gradient[:4]), jax.tree.leaves(same[:4]), strict=True):
            np.testing.assert_array_equal(mine[:21], theirs[:21], err_msg=name)
            assert not np.any(theirs[21:]), name


def padded(tree: Tree, real: np.ndarray, content: float) -> Tree:
    """Arguments of a chain with a number in place of those at nodes that are not real."""

    def filled(array: np.ndarray) -> np.ndarray:
        return np.where(real.reshape(-1, *[1] * (array.ndim - 1)), array, content)

    return (*jax.tree.map(filled, tree[:4]), tree[4])


# --- C09: one and none

SINGLE: dict[str, tuple[str, str]] = {
    "chain": ("chain(t = 1)", PLAIN),
    "chain both": ("chain(t = 1)", PLAIN + BOTH),
    "chain key": ("chain(t = 1)", KEY),
    "chain delta": ("chain(t = 1)", DELTA),
    "chain mlstm": ("chain(t = 1)", MLSTM),
    "chain tracks": ("chain(t = 1)", TRACKS + NONE),
    "grid": ("grid(rows = 1, cols = 1)", PLAIN + ALL),
    "grid turn": ("grid(rows = 1, cols = 1)", TURN + NONE),
    "line": ("grid(rows = 1, cols = 5)", PLAIN + ALL),
    "pillar": ("grid(rows = 5, cols = 1)", TURN + NONE),
    "volume": ("grid(a = 1, b = 3, c = 1)", PLAIN),
    "dag": ("dag { a }", PLAIN + BOTH),
    "dag open": ("dag { -> a; a -> }", PLAIN),
    "dag matrix": ("dag { a }", MATRIX + NONE),
    "tree": ("tree(arity = 2, depth = 0)", READ_AFTER),
    "product": ("chain(t = 1) * tree(arity = 2, depth = 0)", PLAIN),
}
NOTHING: dict[str, tuple[str, str]] = {
    "chain": ("chain(t = 0)", PLAIN + BOTH),
    "chain key": ("chain(t = 0)", KEY),
    "chain delta": ("chain(t = 0)", DELTA),
    "chain mlstm": ("chain(t = 0)", MLSTM),
    "no rows": ("grid(a = 0, b = 3)", PLAIN + ALL),
    "no columns": ("grid(a = 3, b = 0)", PLAIN + ALL),
    "neither": ("grid(a = 0, b = 0)", PLAIN + ALL),
    "volume": ("grid(a = 2, b = 0, c = 3)", PLAIN),
    "product": ("chain(t = 0) * tree(arity = 2, depth = 1)", PLAIN),
}


def some(cases: dict[str, tuple[str, str]], *quick: str) -> list[Any]:
    """The names of cases, all but a few of them slow."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in cases]


def tracks(body: str) -> int:
    return 3 if "track" in body else 1


def mapped(op: Any, cotangent: Tree) -> Callable[[Tree], Tree]:
    """Result, final states and gradients of a batch, compiled."""
    return jax.jit(jax.vmap(differentiated(op, cotangent)))


@pytest.mark.parametrize("case", some(SINGLE, "chain", "dag", "product"))
@sweep()
def test_C09_one_node_or_one_line(case: str, only: Names) -> None:
    """Compiled, mapped over a batch of two, differentiated."""
    where, body = SINGLE[case]
    found = {}
    for name, op in every_way(scan_on(where, body, track=tracks(body)), "float64", 1, only).items():
        tree = as_tree(random_arguments(op, 3))
        wanted = op.reference_result(*tree)
        (result, gradient) = mapped(op, ones(op, tree))(jax.tree.map(lambda array: jnp.stack([array, array]), tree))
        one = jax.tree.map(lambda array: array[1], result)
        found[name] = max(errors(one, wanted).values())
        assert jax.tree.map(lambda array: array.shape[1:], gradient) == jax.tree.map(np.shape, tree)
    assert {name: worst for name, worst in found.items() if worst > 1e-12} == {}


@pytest.mark.parametrize(
    "where",
    [
        "grid(rows = 1, cols = 1)",
        *(pytest.param(where, marks=pytest.mark.slow) for where in ("chain(t = 1)", "dag { a }", "tree(arity = 2, depth = 0)")),
    ],
)
@sweep()
def test_C09_one_node_is_the_direct_term(where: str, only: Names) -> None:
    """`D (q . k) v`, and its gradients."""

    def direct(q: jax.Array, k: jax.Array, v: jax.Array, gates: Tree) -> jax.Array:
        return gates["direct"][..., None] * jnp.sum(q * k, -1, keepdims=True) * v

    for name, op in every_way(scan_on(where), "float64", 1, only).items():
        *tree, _ = as_tree(random_arguments(op, 3))
        found, wanted = (jax.value_and_grad(lambda tree, call=call: jnp.sum(call(*tree) ** 2))(tree) for call in (op, direct))
        for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert error(mine, other) < 1e-14, name


@pytest.mark.parametrize("case", some(NOTHING, "chain", "no rows", "no columns"))
@sweep()
def test_C09_no_nodes(case: str, only: Names) -> None:
    """Empty results, gradients of the right shapes, and what enters along an empty axis leaves as it came."""
    where, body = NOTHING[case]
    for name, op in every_way(scan_on(where, body, key=2, value=3), "float64", 1, only).items():
        tree = as_tree(random_arguments(op, 0))
        twice = jax.tree.map(lambda array: jnp.stack([array] * 2), tree)
        result, gradient = mapped(op, ones(op, tree))(twice)
        h, state = jax.tree.map(lambda array: array[1], result)
        assert (h.shape, h.dtype) == (op.signature.result, jnp.float64), name
        assert max(errors((h, state), op.reference_result(*tree)).values(), default=0.0) == 0, name
        assert jax.tree.map(np.shape, gradient) == jax.tree.map(np.shape, twice), name


@pytest.mark.parametrize(
    "where",
    [
        "chain(t = 5)",
        *(pytest.param(where, marks=pytest.mark.slow) for where in ("grid(rows = 2, cols = 3)", SMALL, "chain(t = 0)")),
    ],
)
@sweep()
def test_C09_empty_batch(where: str, only: Names) -> None:
    """A map over no sequences, and its gradient, have the right shapes."""
    for name, op in every_way(scan_on(where), "float32", 2, only).items():
        tree = jax.tree.map(lambda array: jnp.zeros((0, *array.shape), jnp.float32), as_tree(random_arguments(op, 0)))
        one = jax.tree.map(lambda array: np.zeros(array.shape[1:]), tree)
        (h, _), gradient = jax.eval_shape(jax.vmap(differentiated(op, ones(op, one))), tree)
        assert h.shape == (0, *op.signature.result), name
        assert jax.tree.map(np.shape, gradient) == jax.tree.map(np.shape, tree), name
        assert jax.vmap(op)(*tree).shape == h.shape


@pytest.mark.parametrize("shape", [(0, 3), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((1, 1), (4, 0)))])
def test_C09_layers(shape: tuple[int, int]) -> None:
    """Of images of one line or one pixel, and of no images."""
    op = stmlang.compile("std:plstm/image_p", rows=shape[0], cols=shape[1], heads=2, key=4, value=4)
    layer = ScanLayer(op, 6, key=jax.random.key(0))
    x = jnp.ones((*shape, 6))
    y, gradient = jax.jit(jax.value_and_grad(lambda x: jnp.sum(layer(x) ** 2)))(x)
    assert np.isfinite(y)
    assert gradient.shape == x.shape
    assert jax.vmap(layer)(x[None][:0]).shape == (0, *shape, 6)
