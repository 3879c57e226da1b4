"""The walk over nodes beyond the common suite: stretches, what is held, long chains, program size."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.runtime.measure import scan_program
from tests.helpers.calls import as_tree, differentiated, error
from tests.helpers.cases import ALL, BOTH, KEY_EVERYWHERE, MAMBA, MAMBA_2D, NONE


def compiled(body: str, topology: str, every: int | None, dtype: str = "float64", **sizes: int) -> Any:
    known = {"heads": 2, "key": 3, "value": 2} | sizes
    text = f"scan test on {topology} {{\n{body}}}\n"
    way: dict[str, Any] = {"strategy": "recurrent"} if every is None else {"strategy": "walk", "config": {"every": every}}
    return stmlang.compile(text, dtype=dtype, **way, **known)


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


@pytest.mark.parametrize("every", [1, 2, 3, 5, 7])
def test_stretches_of_any_length(every: int) -> None:
    """What does not fill a stretch comes first; states that are kept more or less often change nothing."""
    body = KEY_EVERYWHERE + ALL + NONE
    op, simple = (compiled(body, "grid(rows = 7, cols = 2)", stretch) for stretch in (every, None))
    tree = as_tree(random_arguments(op, 0, "exact"))
    ones = jax.tree.map(lambda leaf: np.ones(leaf.shape), jax.eval_shape(lambda: op(*tree, return_state=True)))
    close(*(jax.jit(differentiated(one, ones))(tree) for one in (op, simple)))


@pytest.mark.parametrize(("body", "topology"), [(MAMBA + BOTH, "chain(t = 5)"), (MAMBA_2D + ALL, "grid(rows = 3, cols = 2)")])
def test_second_derivatives(body: str, topology: str) -> None:
    """Hessian times vector, forward over reverse and reverse over reverse."""
    op, simple = (compiled(body, topology, every) for every in (2, None))
    tree, along = as_tree(random_arguments(op, 0)), as_tree(random_arguments(op, 1))

    def bent(op: Any) -> Any:
        gradient = jax.grad(lambda tree: jnp.sum(op(*tree) ** 3))
        slope = lambda tree: sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), gradient(tree), along)))  # noqa: E731
        return jax.jit(lambda tree: (jax.jvp(gradient, (tree,), (along,))[1], jax.grad(slope)(tree)))(tree)

    close(bent(op), bent(simple))


def test_gates_as_large_as_the_state_are_never_held() -> None:
    """Nor is a state for each node: a forward call of Mamba holds a few arrays of inputs, training one state a stretch more."""
    nodes, state = 512, 16 * 64
    sizes = {"heads": 1, "key": 16, "value": 64, "dtype": "float32"}
    own = 4 * nodes * (2 * 16 + 2 * 64)
    for mode in ("inference", "training"):
        op = stmlang.compile(f"scan s on chain(t = {nodes}) {{\n{MAMBA}}}\n", strategy="walk", mode=mode, **sizes)
        assert scan_program(op, mode).temporary_bytes < 8 * own + 4 * state * nodes / 4


def test_long_chains() -> None:
    """Float32, decays near one, signs, zeros: what the recurrence gives in float64."""
    length = 20_000
    body = "    source = 1\n    transition[key, value] = given()\n    stabilize none\n"
    op, simple = (
        compiled(body, f"chain(t = {length})", every, dtype, heads=1, key=2, value=2)
        for every, dtype in ((64, "float32"), (None, "float64"))
    )
    rng = np.random.default_rng(0)
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    decay = np.exp(-rng.exponential(1e-4, (length, 4))) * rng.choice([1, -1], (length, 4), p=[0.99, 0.01])
    decay[rng.integers(0, length, 5)] = 0
    gates["transition"] = decay.reshape(gates["transition"].shape)
    arguments = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), (q, k, v, gates))

    def evaluated(op: Any) -> Any:
        def total(tree: Any) -> Any:
            h = op(*tree)
            return jnp.mean(h**2), h

        return jax.jit(jax.value_and_grad(total, has_aux=True))(arguments)

    found, wanted = evaluated(op), evaluated(simple)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    close(found, wanted, 5e-5)


def test_the_program_does_not_grow_with_the_size() -> None:
    def count(rows: int) -> int:
        op = compiled(MAMBA_2D + ALL, f"grid(rows = {rows}, cols = {rows})", 4, "float32")
        q, k, v, gates = op.example()
        gradient = jax.jit(jax.grad(lambda q, gates: op(q, k, v, gates).sum(), argnums=(0, 1)))
        return gradient.lower(q, gates).as_text().count(" = ")

    assert count(8) == count(64)
