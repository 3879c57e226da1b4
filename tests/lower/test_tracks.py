"""Chunks of chains with tracks that are deep enough for matrix kernels: adjoints of merges and of states between chunks, second
derivatives, bounded programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from tests.helpers.calls import as_tree, error

GATES = """
    source[track] = given()
    transition[track, track'] = given(-0.5, 0.5)
    mark[track] = given()
    direct = given()
    stabilize none
"""


def chain(length: int, strategy: str, chunk: int | None = None, **sizes: Any) -> Any:
    options = {"dtype": "float64", "heads": 2, "key": 3, "value": 2, "track": 3} | sizes
    text = f"scan test(track = 3) on chain(t = {length}) {{{GATES}}}\n"
    return stmlang.compile(text, strategy=strategy, config=None if chunk is None else {"chunk": chunk}, **options)


def agree(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(one, other) <= tolerance


@pytest.mark.parametrize(("length", "chunk", "track"), [(45, 16, 3), (97, 32, 2), (21, 16, 9)])
def test_deep_chunks(length: int, chunk: int, track: int) -> None:
    """Value, final state and all gradients are those of the recurrence, transitions of zeros and of signs among them."""
    op, simple = (chain(length, *way, track=track) for way in (("tracks", chunk), ("recurrent",)))
    tree = as_tree(random_arguments(op, length, "exact"))

    def evaluated(op: Any) -> Any:
        def total(tree: Any) -> Any:
            found = op(*tree, return_state=True)
            return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(found)), found

        return jax.jit(jax.value_and_grad(total, has_aux=True))(tree)

    agree(evaluated(op), evaluated(simple))


def test_second_derivatives() -> None:
    """Hessian times vector, forward over reverse and reverse over reverse."""
    op, simple = (chain(19, *way, heads=1) for way in (("tracks", 16), ("recurrent",)))
    tree, along = as_tree(random_arguments(op, 1)), as_tree(random_arguments(op, 2))

    def gradient(op: Any) -> Any:
        return jax.grad(lambda tree: jnp.sum(op(*tree) ** 3))

    def slope(op: Any) -> Any:
        parts = lambda tree: jax.tree.map(lambda a, b: jnp.sum(a * b), gradient(op)(tree), along)  # noqa: E731
        return jax.grad(lambda tree: sum(jax.tree.leaves(parts(tree))))

    wanted = jax.jit(slope(simple))(tree)
    agree(jax.jit(slope(op))(tree), wanted)
    agree(jax.jit(lambda tree: jax.jvp(gradient(op), (tree,), (along,))[1])(tree), wanted)


def test_the_program_does_not_grow_with_the_length() -> None:
    def count(length: int, chunk: int) -> int:
        q, k, v, gates = (op := chain(length, "tracks", chunk, dtype="float32")).example()
        backward = jax.jit(jax.grad(lambda q, gates: op(q, k, v, gates).sum(), argnums=(0, 1)))
        return backward.lower(q, gates).as_text().count(" = ")

    assert count(128, 16) == count(2048, 16)
    rounds = np.diff([count(128, chunk) for chunk in (16, 32, 64)])
    assert rounds[0] == rounds[1]
