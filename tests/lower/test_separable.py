"""Separable grids beyond the common suite: the tables, second derivatives, what a block holds."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.lower.one_turn import PortGates, pairs_of, partings, walks
from stmlang.runtime.measure import scan_program
from stmlang.xla_flags import affected
from tests.helpers.calls import as_tree, error
from tests.helpers.cases import ALL, MULTITREE, NONE
from tests.helpers.scan_calls import largest


def compiled(strategy: str, config: Any = None, axes: str = "rows = 3, cols = 4", dtype: str = "float64") -> Any:
    text = f"scan test(heads = 2, key = 3, value = 2) on grid({axes}) {{\n{MULTITREE}{ALL}{NONE}}}\n"
    return stmlang.compile(text, strategy=strategy, config=config, dtype=dtype)


def test_directions_share_terms() -> None:
    assert pairs_of([(1, 1), (1, -1), (-1, 1), (-1, -1)]) == [[0, 2], [1, 3]]
    assert pairs_of([(1, 1), (-1, -1)]) == [[0], [1]]
    assert pairs_of([(1, 1), (1, 1), (-1, 1)]) == [[0, 2], [1]]


def test_partings() -> None:
    """The bit in which two places differ first, from the top."""
    for first, second in np.ndindex(7, 7):
        bits = (first ^ second).bit_length()
        assert partings(7)[first, second] == (bits if first <= second else -bits)
    assert partings(1).shape == (1, 1)
    assert partings(0).shape == (0, 0)


@pytest.mark.parametrize("senses", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_tables_are_products_along_the_path(senses: tuple[int, int]) -> None:
    """With zeros, ones and minus ones, exactly."""
    rng, (lines, size) = np.random.default_rng(0), (4, 5)
    shape = (1, 1, lines, size)
    gates = PortGates(*(jnp.asarray(rng.choice([0.0, 1.0, -1.0, 0.5], shape)) for _ in PortGates._fields))
    direct = rng.normal(size=shape[1:])
    parting = jnp.asarray(partings(lines)), jnp.asarray(partings(size))
    found = walks(gates, jnp.asarray(direct), [senses], parting)
    g = PortGates(*(np.asarray(gate)[0, 0] for gate in gates))
    for y0, x0, x in np.ndindex(lines, size, size):
        between = np.prod([g.first[y0, u] for u in range(x0 + senses[1], x, senses[1])]) if (x - x0) * senses[1] > 0 else 0.0
        turned = g.source_last[y0, x0] if x == x0 else g.source_first[y0, x0] * between * g.turn[y0, x]
        assert np.all(found.turned[:, 0, y0, x0, x] == turned)
        own = direct[0, y0, x] if x == x0 else 0.0
        assert found.level[0, 0, y0, x0, x] == g.source_first[y0, x0] * between * g.mark_first[y0, x] + own
    for y0, y, x in np.ndindex(lines, lines, size):
        between = np.prod([g.last[w, x] for w in range(y0 + senses[0], y, senses[0])]) if (y - y0) * senses[0] > 0 else 0.0
        assert np.all(found.across[:, 0, y0, y, x] == between * g.mark_last[y, x])


def second(op: Any, transformation: str) -> list[Any]:
    """The second derivative of a sum over outputs and final states along a change, at the same arguments for every `op`."""
    tree = as_tree(random_arguments(op, 1))
    change = jax.tree.map(lambda array: np.random.default_rng(2).normal(size=array.shape), tree)

    def total(tree: Any) -> Any:
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(op(*tree, return_state=True)))

    def along(tree: Any) -> Any:
        return sum(jax.tree.leaves(jax.tree.map(jnp.vdot, jax.grad(total)(tree), change)))

    forward = lambda tree: jax.jvp(jax.grad(total), (tree,), (change,))[1]  # noqa: E731
    return jax.tree.leaves(jax.jit(forward if transformation == "jvp" else jax.grad(along))(tree))


@cache
def expected_second() -> list[Any]:
    return second(compiled("recurrent"), "jvp")


@pytest.mark.parametrize(
    ("rows", "transformation"),
    [(2, "grad"), *(pytest.param(*way, marks=pytest.mark.slow) for way in ((2, "jvp"), (3, "jvp"), (3, "grad")))],
)
def test_second_derivatives(rows: int, transformation: str) -> None:
    """Forward over reverse, and reverse over reverse."""
    for mine, other in zip(second(compiled("separable", {"rows": rows}), transformation), expected_second(), strict=True):
        assert np.isfinite(mine).all()
        assert error(mine, other) < 1e-10


def test_bfloat16() -> None:
    found, wanted = compiled("separable", {"rows": 2}, dtype="bfloat16"), compiled("recurrent")
    tree = as_tree(random_arguments(wanted, 4))
    h = found(*jax.tree.map(lambda array: jnp.asarray(array, jnp.bfloat16), tree[:4]))
    assert error(h, wanted(*tree[:4])) < 2e-2


def test_blocks_hold_a_tenth_of_what_the_gating_matrix_takes() -> None:
    """Of the largest array; and of the memory that XLA of jaxlib 0.10.2 allots, where that of 0.11.2 allots more."""
    few, whole = (
        compiled(name, config, "rows = 32, cols = 32", "float32")
        for name, config in (("separable", {"rows": 1}), ("parallel", None))
    )
    assert largest(whole) >= 1024**2
    assert 10 * largest(few) < largest(whole)
    used = [scan_program(op, "training").temporary_bytes for op in (few, whole)]
    assert 10 * used[0] < used[1] or not affected()
