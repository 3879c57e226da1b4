"""The walk over nodes beyond the common suite: stretches, what is held, long chains, program size."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.cost.late_gates import Erasing
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


GATED = "    strength = given()\n    scale = given()\n    source = given()\n"
ERASING = {
    "the key": (
        "chain(t = 7)",
        GATED + "    transition[key, key'] = scale * (eye[key, key'] - strength * k[key] * k[key'])\n    read after\n",
    ),
    "another vector": (
        "chain(t = 6)",
        GATED + "    u[key] = given()\n    transition[key, key'] = eye[key, key'] - strength * u[key] * u[key']\n" + BOTH,
    ),
    "and a decay of the value": (
        "chain(t = 5)",
        GATED
        + "    a[value] = given()\n"
        + "    transition[key, key', value] = a[value] * (eye[key, key'] - strength * k[key] * k[key'])\n",
    ),
    "at each port its own": (
        "grid(rows = 3, cols = 2)",
        "    b[out] = given()\n    u[in, key] = given()\n    scale[out, in] = given(low = -0.5, high = 0.5)\n"
        "    source[out] = given()\n"
        "    transition[out, in, key, key'] = scale * (eye[key, key'] - b[out] * u[in, key] * u[in, key'])\n"
        "    mark[in, key, key'] = eye[key, key'] - u[in, key] * u[in, key']\n    direct = given()\n" + ALL,
    ),
    "tracks": (
        "chain(t = 5)",
        "    n[track] = given()\n    source[track] = given()\n    mark[track] = given()\n"
        "    transition[track, track'] = eye[track, track'] - 2 * n[track] * n[track']\n",
    ),
}


@pytest.mark.parametrize("name", ERASING)
def test_what_is_erased_is_never_a_matrix(name: str) -> None:
    """Gates `scale * (eye - strength * u u^T)`, scales of 0, 1 and -1 and strengths of 2 among them, value and gradient."""
    topology, body = ERASING[name]
    sizes = {"track": 3} if name == "tracks" else {}
    op, simple = (compiled(body + NONE, topology, every, **sizes) for every in (2, None))
    assert op.compilation.program.late is not None
    assert all(isinstance(gate, Erasing) for row in op.compilation.program.late.transition for gate in row)
    q, k, v, gates, initial = as_tree(random_arguments(op, 0, "exact"))
    rng = np.random.default_rng(0)
    for leaf, values in (("strength", (0.0, 1.0, 2.0)), ("scale", (0.0, 1.0, -1.0))):
        if leaf in gates and op.dag.ports == ("t",):
            gates[leaf] = rng.choice(values, np.shape(gates[leaf]))
    tree = (q, k, v, gates, initial)
    ones = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), jax.eval_shape(lambda: op(*tree, return_state=True)))
    close(*(jax.jit(differentiated(one, ones))(tree) for one in (op, simple)))


@pytest.mark.parametrize("masked", [False, True])
def test_what_is_erased_at_masked_nodes_and_between_segments(masked: bool) -> None:
    """A node that is left out passes a chain's state as it is; nothing is passed into a new segment."""
    topology, body = ERASING["the key"]
    op, simple = (compiled(body + NONE, topology, every) for every in (2, None))
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    options: dict[str, Any] = {"mask": jnp.asarray([True, False, True, True, False, True, True])}
    if not masked:
        options = {"segments": jnp.asarray([0, 0, 1, 2, 2, 2, 3])}
    close(
        *(
            jax.jit(jax.value_and_grad(lambda k, one=one: jnp.sum(one(q, k, v, gates, **options) ** 2)))(k)
            for one in (op, simple)
        )
    )


def test_few_tracks_are_mixed_without_products_of_small_matrices() -> None:
    """Complex decays are two by two: contracted, there was one product for each number of a state, nine times a plain scan."""
    body = "    source = 1\n    transition[key] = polar(sigmoid(linear(x)), linear(x))\n    mark[key] = conjugate(transition)\n"
    op = compiled(body, "chain(t = 9)", 9, heads=1, key=5, value=7)
    tree = as_tree(random_arguments(op, 0))
    text = jax.jit(lambda tree: op(*tree)).lower(tree).as_text()
    products = [line.rpartition(":")[2] for line in text.splitlines() if "dot_general" in line]
    assert products  # the query's, a row of numbers times the state
    assert not [types for types in products if types.count(f"{5}x{7}x2") or types.count(f"{7}x{5}x2")], products
