"""Data types, extreme gates, sizes that divide by nothing, and sizes of zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.verify.strategies import random_arguments
from tests.helpers.calls import as_tree, compiled, differentiated, error, errors, expected
from tests.helpers.cases import ANY, CASES, GIVEN, READ_AFTER, Way, ways

BY_NAME = {case.name: case for case in CASES}
CHAIN = "scan test(heads = {heads}, key = {key}, value = {value}) on chain(t = {t}) {{\n{body}    stabilize none\n}}\n"


def chain(t: int, way: Way | None, dtype: str = "float32", body: str = GIVEN, heads: int = 1, key: int = 1, value: int = 1):
    """A chain, compiled."""
    text = CHAIN.format(heads=heads, key=key, value=value, t=t, body=body)
    strategy, config = way or (None, None)
    return stmlang.compile(text, dtype=dtype, strategy=strategy, config=config)


def constant(op: object, number: float) -> tuple:
    """q, k, v and gates that are one number everywhere."""
    arrays = {name: jnp.full(shape, number, op.signature.dtype) for name, shape in op.signature.inputs.items()}
    return (*arrays.values(), {name: jnp.full(shape, number, op.signature.dtype) for name, shape in op.signature.gates.items()})


@pytest.mark.parametrize("way", [("recurrent", None), ("chunkwise", {"tile": (64,)}), ("chunkwise", {"tile": (512,)})], ids=str)
def test_bfloat16_counts_beyond_256(way: Way) -> None:
    op = chain(4096, way, "bfloat16")
    h = op(*constant(op, 1))
    assert h.dtype == jnp.bfloat16
    assert abs(float(h[-1, 0, 0]) - 4096) <= 16


@pytest.mark.parametrize("name", ["chain 17", "grid 5x3", "asia", "chain 9 delta"])
def test_bfloat16(name: str) -> None:
    """Every strategy near the reference, which is given the rounded arguments."""
    case = BY_NAME[name]
    for way in case.strategies:
        op = compiled(case, way, "bfloat16")
        tree = jax.tree.map(lambda array: jnp.asarray(array, jnp.bfloat16), as_tree(expected(case).arguments))
        found = op(*tree, return_state=True)
        assert found[0].dtype == jnp.bfloat16
        rounded = jax.tree.map(lambda array: np.asarray(array, np.float64), tree)
        assert max(errors(found, op.reference_result(*rounded)).values()) < 2e-2


def test_single_precision_whatever_the_switch() -> None:
    """A float32 program stays one while JAX allows 64 bits, even when it is given float64 arrays."""
    op = compiled(BY_NAME["grid 5x3"], None, "float32")
    h, state = op(*as_tree(expected(BY_NAME["grid 5x3"]).arguments), return_state=True)
    assert {leaf.dtype for leaf in jax.tree.leaves((h, state))} == {jnp.dtype("float32")}


@pytest.mark.parametrize("way", ways({"tile": (16,)}, {"tile": (40,)}), ids=str)
def test_gates_of_one_change_nothing_before(way: Way) -> None:
    """Gates exactly one where others decay: equal to the recurrence, and causal to the last bit."""
    op, rng = chain(96, way, "float32", key=3, value=2), np.random.default_rng(0)
    q, k, v, gates, _ = as_tree(random_arguments(op, 0))
    keep = rng.uniform(size=gates["transition"].shape) < 0.6
    gates["transition"] = np.where(keep, 1.0, rng.uniform(0.2, 1, keep.shape))
    q, k, v, gates = jax.tree.map(lambda array: jnp.asarray(array, jnp.float32), (q, k, v, gates))
    h = op(q, k, v, gates)
    assert error(h, op.reference(q, k, v, gates)) < 1e-5
    for t in (17, 48, 95):
        moved = op(q, k.at[t].add(1), v.at[t].add(1), jax.tree.map(lambda gate, t=t: gate.at[t].multiply(0.5), gates))
        np.testing.assert_array_equal(moved[:t], h[:t])


@pytest.mark.parametrize("way", ways({"tile": (32,)}), ids=str)
def test_resets(way: Way) -> None:
    """A forget gate that is all but zero, at the start and within a tile, loses what was before and nothing else."""
    op = chain(128, way, "float32", body=READ_AFTER, key=2, value=2)
    q, k, v, gates = op.example(1)
    for place in (0, 40):
        reset = {name: jnp.full_like(gate, 12.0).at[place].set(-90.0) for name, gate in gates.items() if name == "transition"}
        found = op(q, k, v, gates | reset)
        assert np.all(np.isfinite(found))
        assert error(found, op.reference(q, k, v, gates | reset)) < 1e-5


def test_long_slow_decay() -> None:
    for way in (("recurrent", None), ("chunkwise", {"tile": (128,)})):
        op = chain(4096, way, body=READ_AFTER, key=2, value=2)
        q, k, v, gates = op.example(2)
        gates = gates | {"transition": jnp.full_like(gates["transition"], float(-np.log(np.expm1(0.05))))}
        assert error(op(q, k, v, gates), op.reference(q, k, v, gates)) < 1e-5


LENGTHS = [(t, tile) for t in (1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 127, 129) for tile in (16, 64)]


@pytest.mark.parametrize(
    ("t", "tile"), [pytest.param(*pair, marks=[] if pair in ((17, 16), (65, 64)) else pytest.mark.slow) for pair in LENGTHS]
)
def test_lengths_and_tiles(t: int, tile: int) -> None:
    """Lengths that are no multiple of the tile: value, and the gradient of every gate."""
    op = chain(t, ("chunkwise", {"tile": (tile,)}), "float64", key=2)
    simple = chain(t, ("recurrent", None), "float64", key=2)
    tree = as_tree(random_arguments(op, t))
    ones = jax.tree.map(lambda leaf: np.ones(leaf.shape), jax.eval_shape(lambda: op(*tree, return_state=True)))
    found, wanted = (jax.jit(differentiated(one, ones))(tree) for one in (op, simple))
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert error(mine, other) < 1e-11


EMPTY = ("chain(t = 0)", "grid(a = 0, b = 3)", "grid(a = 3, b = 0)", "grid(a = 0, b = 0)")


@pytest.mark.parametrize("topology", EMPTY)
def test_nothing(topology: str) -> None:
    """No nodes: empty results, gradients of the right shapes, and what enters along an empty axis leaves as it came."""
    text = f"scan test(heads = 2, key = 2, value = 3) on {topology} {{\n{GIVEN}    directions all\n    stabilize none\n}}\n"
    op = stmlang.compile(text, dtype="float64")
    tree = as_tree(random_arguments(op, 0))
    h, state = op(*tree, return_state=True)
    assert h.shape == op.signature.result
    assert max(errors((h, state), op.reference_result(*tree)).values(), default=0.0) == 0
    cotangent = jax.tree.map(np.ones_like, (h, state))
    _, gradient = jax.jit(differentiated(op, cotangent))(tree)
    assert jax.tree.map(np.shape, gradient) == jax.tree.map(np.shape, tree)
    assert jax.vmap(op)(*(jax.tree.map(lambda array: jnp.stack([array] * 2), part) for part in tree)).shape == (2, *h.shape)


def test_empty_batch() -> None:
    op = chain(5, ANY[0], body=GIVEN)
    tree = jax.tree.map(lambda array: jnp.zeros((0, *array.shape), jnp.float32), as_tree(random_arguments(op, 0)))
    assert jax.vmap(op)(*tree).shape == (0, 5, 1, 1)


def test_one_node_is_the_direct_term() -> None:
    for way in ways({"tile": (1,)}):
        op = chain(1, way, "float64", key=4, value=2)
        q, k, v, gates, _ = as_tree(random_arguments(op, 3))
        assert error(op(q, k, v, gates), gates["direct"][..., None] * np.sum(q * k, -1, keepdims=True) * v) < 1e-14
