"""Corners without states, which is when scores are made corner by corner: values and derivatives as the recurrence has them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import reference
from stmlang.runtime.measure import scan_program
from stmlang.xla_flags import affected
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import ALL, BOTH_WAYS, CONCAT, KEY_TURN, NO_TURN, NONE, VALUE_TURN

NO_TURN_KEY = NO_TURN.replace("]", ", key]").replace("source[out, key]", "source[out]").replace("mark[in, key]", "mark[in]")
BODIES = {
    "key": KEY_TURN.format("cols", "rows") + ALL,
    "key, other axis": KEY_TURN.format("rows", "cols") + CONCAT,
    "value": VALUE_TURN.format("cols", "rows") + ALL,
    "value, other axis": VALUE_TURN.format("rows", "cols") + BOTH_WAYS,
    "no turn": NO_TURN_KEY + ALL,
}


@cache
def compiled(body: str, strategy: str, axes: str, dtype: str = "float64") -> Any:
    text = f"scan test(heads = 2, key = 3, value = 2) on grid({axes}) {{\n{BODIES[body]}{NONE}}}\n"
    return stmlang.compile(text, strategy=strategy, dtype=dtype)


def inputs(op: Any, profile: str = "random", seed: int = 0) -> Any:
    return as_tree(random_arguments(op, seed, profile))[:4]


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


@cache
def evaluated(body: str, axes: str) -> Any:
    """A function of arguments and weights: the result, and the gradient of its weighted sum."""
    op = compiled(body, "corners", axes)

    def total(tree: Any, weights: Any) -> tuple[Any, Any]:
        h = op(*tree)
        return jnp.sum(h * weights), h

    return jax.jit(jax.grad(total, has_aux=True))


@pytest.mark.parametrize("profile", ["random", "exact"])
@pytest.mark.parametrize(
    ("body", "axes"),
    [
        *((body, "rows = 5, cols = 3") for body in BODIES),
        ("key", "rows = 1, cols = 1"),
        ("key, other axis", "rows = 2, cols = 7"),
        ("value", "rows = 1, cols = 4"),
        ("value, other axis", "rows = 6, cols = 1"),
    ],
)
def test_values_and_gradients(body: str, axes: str, profile: str) -> None:
    """With decays of exactly 0, 1 and -1 too; each gradient along a change of its argument."""
    op, rng = compiled(body, "corners", axes), np.random.default_rng(2)
    tree = inputs(op, profile)
    expected = reference(op.scan, op.dag, *tree).h
    slopes, h = evaluated(body, axes)(tree, expected)
    close(h, expected)
    leaves, structure = jax.tree.flatten(tree)
    for number, slope in enumerate(jax.tree.leaves(slopes)):
        change = rng.normal(size=np.shape(slope))
        along = [change if place == number else np.zeros_like(leaf) for place, leaf in enumerate(leaves)]
        moved = derivative(op.scan, op.dag, Arguments(*tree), Arguments(*jax.tree.unflatten(structure, along))).h
        wanted, product = float(np.sum(moved * expected)), np.asarray(slope) * change
        assert abs(float(np.sum(product)) - wanted) < 1e-11 * max(abs(wanted), float(np.linalg.norm(product)), 1e-3)


@pytest.mark.parametrize(("body", "columns"), [("key", 2), ("value, other axis", 1)])
def test_blocks_of_columns(body: str, columns: int) -> None:
    """The last block is filled up, and training makes each block again."""
    text = f"scan test(heads = 2, key = 3, value = 2) on grid(rows = 4, cols = 3) {{\n{BODIES[body]}{NONE}}}\n"
    blocks = stmlang.compile(text, strategy="corners", config={"columns": columns}, dtype="float64")
    simple = compiled(body, "recurrent", "rows = 4, cols = 3")
    tree = inputs(blocks)

    def with_gradients(op: Any) -> Any:
        return jax.jit(jax.value_and_grad(lambda tree: jnp.sum(op(*tree) ** 2)))(tree)

    close(with_gradients(blocks), with_gradients(simple))


@pytest.mark.slow
@pytest.mark.parametrize("body", ["key", "value"])
def test_transformations(body: str) -> None:
    """Forward mode, batches, and Hessian times vector, forward over reverse and reverse over reverse. All but the last are
    tried of every strategy, on fewer nodes, in `tests/equivalence/test_transforms.py`."""
    op, simple = (compiled(body, strategy, "rows = 3, cols = 4") for strategy in ("corners", "recurrent"))
    tree, along = inputs(op, "exact"), inputs(op, seed=1)

    def gradient(op: Any) -> Any:
        return jax.grad(lambda tree: jnp.sum(op(*tree) ** 3))

    forward, expected = (jax.jit(lambda op=op: jax.jvp(gradient(op), (tree,), (along,))[1])() for op in (op, simple))
    slope = lambda tree: sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), gradient(op)(tree), along)))  # noqa: E731
    close(forward, expected)
    close(jax.jit(jax.grad(slope))(tree), expected)

    def mapped(op: Any) -> Any:
        trees = jax.tree.map(lambda *arrays: np.stack(arrays), tree, along)
        return jax.jit(jax.vmap(jax.grad(lambda tree: jnp.sum(op(*tree) ** 2))))(trees)

    close(mapped(op), mapped(simple))


def test_single_precision() -> None:
    op = compiled("key", "corners", "rows = 9, cols = 7", "float32")
    q, k, v, gates = inputs(op)
    assert error(op(q, k, v, gates), reference(op.scan, op.dag, q, k, v, gates).h) < 1e-5


def test_training_takes_no_memory_from_the_system_in_each_call() -> None:
    """Of `[key]` decays on 14x14, three heads of 64, four directions: what is below 32 MB glibc keeps for the next call. Where
    XLA hands products to YNNPACK, as that of jaxlib 0.11.2 does, it is a third more, 43 MB."""
    text = f"scan test(heads = 3, key = 64, value = 64) on grid(rows = 14, cols = 14) {{\n{BODIES['key']}{NONE}}}\n"
    op = stmlang.compile(text, strategy="corners", config={"columns": 14}, mode="training")
    assert scan_program(op, "training").temporary_bytes < (2**25 if affected() else 1.35 * 2**25)
