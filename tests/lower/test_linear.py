"""Chains in chunks: exact products of decays, ragged first chunks, long chains, second derivatives, bounded programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.lower.segment_products import levels, parted, paths
from tests.helpers.calls import as_tree, disagreement, error, judged
from tests.helpers.cases import BOTH, CONCAT, GIVEN

EXACT = (0.0, 1.0, -1.0, 0.5, -0.7)
BODIES = {
    "scalar": GIVEN,
    "key": "    source[key] = given()\n    transition[key] = given()\n    mark[key] = given()\n    direct = given()\n",
    "value": "    source = given()\n    transition[value] = given()\n    mark[value] = given()\n    direct = given()\n",
    "split": "    source[value] = given()\n    transition[key] = given()\n    read after\n".replace(
        "read after", "mark = given()"
    ),
}


def chain(length: int, body: str, strategy: str, chunk: int | None = None, extra: str = "", **sizes: Any) -> Any:
    options = {"dtype": "float64", "heads": 2, "key": 3, "value": 2} | sizes
    text = f"scan test on chain(t = {length}) {{\n{body}{extra}    stabilize none\n}}\n"
    return stmlang.compile(text, strategy=strategy, config=None if chunk is None else {"chunk": chunk}, **options)


def products(decay: np.ndarray) -> np.ndarray:
    """`[n, m]`: the product of the decays strictly between a source -1, 0, ... (first column the start) and a target."""
    places = len(decay)
    table = np.zeros((places + 1, places + 1))
    for target in range(places + 1):
        for source in range(-1, target):
            table[target, source + 1] = np.prod(decay[source + 1 : target])
    return table


@pytest.mark.parametrize("places", [1, 2, 3, 7, 16, 17])
def test_products_are_exact(places: int) -> None:
    decay = np.random.default_rng(places).choice(EXACT, (2, places))
    found = jax.jit(paths)(decay)
    for k in range(2):
        wanted = products(decay[k])
        np.testing.assert_allclose(found.inside[k], wanted[:-1, 1:], atol=1e-14)
        np.testing.assert_allclose(found.into[k], wanted[:-1, 0], atol=1e-14)
        np.testing.assert_allclose(found.out[k], wanted[-1, 1:], atol=1e-14)
        np.testing.assert_allclose(found.through[k], wanted[-1, 0], atol=1e-14)


def test_every_pair_parts_once() -> None:
    marks = np.sum([np.asarray(parted(13, level)) for level in range(4)], axis=0)
    np.testing.assert_array_equal(marks, np.tril(np.ones((13, 13)), -1))


@pytest.mark.parametrize("places", [1, 6])
def test_the_adjoint_of_products_holds_at_zeros(places: int) -> None:
    """Against default differentiation of the levels, twice."""
    rng = np.random.default_rng(places)
    decay = jnp.asarray(rng.choice(EXACT, places))
    weights = [jnp.asarray(rng.normal(size=shape)) for shape in ((places, places), places, places, ())]

    def plainly(decay: jax.Array) -> Any:
        tables = levels(decay[:, None])
        inside = jnp.zeros((places, places))
        for level, (after, before) in enumerate(tables.pairs):
            inside = jnp.where(parted(places, level), before * after.T, inside)
        return inside, tables.before[-1][:, 0], tables.after[-1][:, 0], tables.through[0]

    def total(function: Any) -> Any:
        return lambda decay: sum(jnp.sum(w * part**2) for w, part in zip(weights, function(decay), strict=True))

    for derivative in (jax.grad, lambda f: jax.jacfwd(jax.grad(f)), lambda f: jax.jacrev(jax.grad(f))):
        found, wanted = (jax.jit(derivative(total(function)))(decay) for function in (paths, plainly))
        np.testing.assert_allclose(found, wanted, atol=1e-13)


def close(found: Any, wanted: Any, tolerance: float = 1e-11) -> None:
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < tolerance


@pytest.mark.parametrize(
    ("body", "length", "chunk", "extra"),
    [*((body, 17, 5, BOTH) for body in BODIES), ("scalar", 16, 8, CONCAT), ("key", 3, 64, "")],
)
def test_chunks_of_any_size(body: str, length: int, chunk: int, extra: str) -> None:
    """Values, final states and gradients as the recurrence has them, with gates of exactly 0, 1 and -1."""
    op = chain(length, BODIES[body], "linear", chunk, extra=extra)
    assert max(disagreement(op, judged(op, random_arguments(op, length, "exact"))).values()) < 1e-11


@pytest.mark.parametrize("body", ["scalar", pytest.param("key", marks=pytest.mark.slow)])
def test_second_derivatives(body: str) -> None:
    """Hessian times vector, forward over reverse and reverse over reverse, as default differentiation has them."""
    op, simple = (chain(11, BODIES[body], *way) for way in (("linear", 4), ("recurrent",)))
    tree = as_tree(random_arguments(op, 1, "exact"))
    along = as_tree(random_arguments(op, 2))

    def gradient(op: Any) -> Any:
        return jax.grad(lambda tree: jnp.sum(op(*tree) ** 3))

    def slope(op: Any) -> Any:
        parts = lambda tree: jax.tree.map(lambda a, b: jnp.sum(a * b), gradient(op)(tree), along)  # noqa: E731
        return jax.grad(lambda tree: sum(jax.tree.leaves(parts(tree))))

    wanted = jax.jit(slope(simple))(tree)
    close(jax.jit(slope(op))(tree), wanted)
    close(jax.jit(lambda tree: jax.jvp(gradient(op), (tree,), (along,))[1])(tree), wanted)


@pytest.mark.parametrize("length", [65_536, 65_535])
def test_long_chains(length: int) -> None:
    """Float32, decays near one, signs, zeros and runs of all but zero: finite, and what the recurrence gives in float64."""
    op = chain(length, GIVEN, "linear", 64, dtype="float32", heads=1, key=2, value=2)
    simple = chain(length, GIVEN, "recurrent", dtype="float64", heads=1, key=2, value=2)
    rng = np.random.default_rng(0)
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    decay = np.exp(-rng.exponential(1e-4, length)) * rng.choice([1, -1], length, p=[0.99, 0.01])
    decay[rng.integers(0, length, 5)] = 0
    decay[1000:1200] = 1e-30
    gates["transition"] = decay.reshape(gates["transition"].shape)
    arguments = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), (q, k, v, gates))

    def evaluated(op: Any) -> Any:
        def total(tree: Any) -> Any:
            h = op(*tree)
            return jnp.mean(h**2), h

        return jax.jit(jax.value_and_grad(total, has_aux=True))(arguments)

    found, wanted = evaluated(op), evaluated(simple)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    # Products of numbers just below one are all rounded the same way: 1e-9 a node, over a memory of 10,000 nodes.
    close(found, wanted, 5e-5)


def test_ones_for_ever_do_not_overflow() -> None:
    op = chain(65_536, "    source = 1\n    transition = 1\n", "linear", 128, dtype="float32", heads=1, key=1, value=1)
    h = op(*(jnp.ones(shape, jnp.float32) for shape in op.signature.inputs.values()), {})
    np.testing.assert_array_equal(h[:, 0, 0], np.arange(65_536, dtype=np.float32))


def test_the_program_does_not_grow_with_the_length() -> None:
    def counts(length: int) -> tuple[int, int]:
        op = chain(length, GIVEN, "linear", 32, dtype="float32")
        q, k, v, gates = op.example()
        backward = jax.jit(jax.grad(lambda q, gates: op(q, k, v, gates).sum(), argnums=(0, 1)))
        return op.lower_text("stablehlo").count(" = "), backward.lower(q, gates).as_text().count(" = ")

    assert counts(128) == counts(4096)
    assert counts(4096)[0] < 700
