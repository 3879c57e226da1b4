"""Constant gates: exact values, what is not multiplied by a batch, large grids and long chains, and when it is refused."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.cost.target import CPU
from stmlang.fuzz.generators import random_arguments
from stmlang.nn import ScanLayer
from stmlang.strategies.impulse.response import Gates, impulse_response, powers
from tests.helpers.calls import as_tree, differentiated, error, errors
from tests.helpers.cases import ALL, BOTH, CONCAT, CONSTANT, NONE, PROPAGATE, SQUARE, SUM
from tests.helpers.scan_calls import equations

SPEC = "std:plstm/image_constant"
RAW = CONSTANT.replace("param(0.7)", "param(0)")


def scan(topology: str, body: str, sizes: str = "heads = 2, key = 2, value = 3") -> str:
    return f"scan test({sizes}) on {topology} {{\n{body}}}\n"


def impulse(text: str, tile: tuple[int, ...], dtype: str = "float64", **sizes: int) -> Any:
    return stmlang.compile(text, dtype=dtype, strategy="impulse", config={"tile": tile}, **sizes)


@pytest.mark.parametrize("tile", [(3, 4), (2, 4)])
def test_exact_gates(tile: tuple[int, ...]) -> None:
    """All gates 0, 1 or -1: value, states and gradient as by the recurrence."""
    calls, trees = exact(tile)
    for tree in trees:
        for mine, other in zip(jax.tree.leaves(calls[0](tree)), jax.tree.leaves(calls[1](tree)), strict=True):
            assert error(mine, other) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("tile", [(3, 4), (2, 4)])
def test_second_derivatives_at_exact_gates(tile: tuple[int, ...]) -> None:
    calls, (tree, *_) = exact(tile)
    along = jax.tree.map(jnp.ones_like, tree)
    bends = [jax.jit(lambda tree, call=call: jax.jvp(lambda tree: call(tree)[1], (tree,), (along,))[1]) for call in calls]
    for mine, other in zip(jax.tree.leaves(bends[0](tree)), jax.tree.leaves(bends[1](tree)), strict=True):
        assert error(mine, other) < 1e-12


def exact(tile: tuple[int, ...]) -> tuple[list[Any], list[Any]]:
    """Functions to value and gradient, of constant gates and of the recurrence, and arguments with gates of 0, 1 and -1."""
    text = scan("grid(rows = 3, cols = 4)", RAW + ALL + NONE)
    fast, simple = impulse(text, tile), stmlang.compile(text, dtype="float64", strategy="recurrent")
    ones = jax.tree.map(
        lambda leaf: np.ones(leaf.shape), jax.eval_shape(lambda *tree: fast(*tree, return_state=True), *_exact(fast, 0))
    )
    calls = [jax.jit(differentiated(op, ones)) for op in (fast, simple)]
    return calls, [_exact(fast, seed) for seed in range(3)]


def _exact(op: Any, seed: int) -> Any:
    q, k, v, gates, initial = as_tree(random_arguments(op, seed))
    rng = np.random.default_rng(seed)
    for name in ("source", "transition", "mark"):
        gates[name] = rng.choice([0.0, 1.0, -1.0], gates[name].shape)
    return q, k, v, gates, initial


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_precisions(dtype: str, tolerance: float) -> None:
    for tile in ((5, 7), (2, 7)):
        op = impulse(SPEC, tile, dtype, rows=5, cols=7, heads=2, key=8, value=8)
        q, k, v, gates = op.example(0)
        found = op(q, k, v, gates)
        assert found.dtype == jnp.dtype(dtype)
        assert error(found, op.reference(q, k, v, gates)) < tolerance


# --- the batch -------------------------------------------------------------------------------------------------------


BATCH = 11


def test_no_batch_multiplies_the_response() -> None:
    """A layer mapped over a batch, differentiated: the response's wavefronts and their adjoint carry no axis of the batch."""
    op = impulse(SPEC, (4, 5), "float32", rows=4, cols=5, heads=2, key=3, value=3)
    layer, x = ScanLayer(op, 6, key=jax.random.key(0)), jnp.ones((BATCH, 4, 5, 6))

    def loss(weights: Any, x: Any) -> Any:
        return jnp.sum(jax.vmap(with_constants(layer, weights))(x) ** 2)

    weights = dict(layer.leaves.constant)
    program = jax.make_jaxpr(jax.grad(loss))(weights, x)
    found = [equation for equation in equations(program) if equation.primitive.name == "scan"]
    assert len(found) == 2
    for equation in found:
        for array in (*equation.invars, *equation.outvars):
            assert BATCH not in array.aval.shape
    text = jax.jit(jax.grad(loss)).lower(weights, x).compile().as_text()
    for line in text.splitlines():
        if " while(" in line:
            assert f"[{BATCH}," not in line


def with_constants(layer: Any, weights: Any) -> Any:
    return eqx.tree_at(lambda layer: layer.leaves.constant, layer, weights)


def test_the_plan_counts_the_response_once() -> None:
    one, many = (stmlang.compile(SPEC, rows=14, cols=14, batch=batch).plan for batch in (1, 32))
    assert (one.strategy, many.strategy) == ("impulse", "impulse")
    whole = [
        next(entry.estimate.candidate for entry in plan.ranked if "14x14" in entry.estimate.candidate.label)
        for plan in (one, many)
    ]
    stages = [{stage.name: stage for stage in candidate.forward} for candidate in whole]
    assert stages[0]["impulse response"] == stages[1]["impulse response"]
    assert stages[0]["masks"].flops == stages[1]["masks"].flops


def test_tiles_hold_no_matrix() -> None:
    """Forward and backward: a tenth of what holds the gating matrix."""
    used: list[int] = []
    for tile in ((48, 48), (1, 48)):
        op = impulse(SPEC, tile, "float32", rows=48, cols=48, heads=1, key=8, value=8)
        gradient = jax.jit(jax.grad(lambda arguments, op=op: jnp.sum(op(*arguments) ** 2)))
        used.append(gradient.lower(op.example()).compile().memory_analysis().temp_size_in_bytes)
    assert 10 * used[1] < used[0]


@pytest.mark.parametrize("tile", ["whole", "line"])
def test_programs_do_not_grow(tile: str) -> None:
    counts = []
    for side in (8, 16, 32):
        op = impulse(SPEC, (side if tile == "whole" else 1, side), "float32", rows=side, cols=side, heads=1, key=4, value=4)
        counts.append(op.lower_text("stablehlo").count(" = "))
    assert counts[0] == counts[1] == counts[2] < 900


# --- responses -------------------------------------------------------------------------------------------------------


def test_a_large_grid() -> None:
    """256x256 in float32 against the recurrence node by node in float64; N numbers, not N^2."""
    alpha, decay = 0.4, 0.999
    share = np.array([alpha, 1 - alpha])
    gates = Gates(jnp.asarray(share[None]), jnp.asarray(decay * np.stack([share, share], 1)[None]), jnp.ones((1, 2)))
    found = jax.jit(lambda gates: impulse_response(gates, (256, 200)))(jax.tree.map(jnp.float32, gates))
    wanted = np.zeros((256, 200))
    state = np.zeros((256, 200))  # what leaves along `rows`, from the row before
    for row in range(256):
        along = 0.0
        for col in range(200):
            arrived = state[row - 1, col] * (row > 0) + along
            wanted[row, col] = arrived
            leaves = decay * arrived + (row == col == 0)
            state[row, col], along = share[0] * leaves, share[1] * leaves
    assert error(found[0], wanted) < 1e-5


BASES = (0.0, 1.0, -1.0, 0.5, -0.9999, 0.9999, 0.99999)


def test_long_chains() -> None:
    """65,536 powers in float32: exact for 0, 1 and -1, right to the last digits for others."""
    found = np.asarray(jax.jit(lambda base: powers(base, 65536))(jnp.asarray(BASES, jnp.float32)))
    wanted = np.asarray(BASES, np.float32).astype(np.float64)[:, None] ** np.arange(65536)
    np.testing.assert_array_equal(found[:3], wanted[:3])
    assert np.abs(found - wanted).max() < 1e-6


def test_derivatives_of_powers_at_zero() -> None:
    weights = jnp.arange(1.0, 6.0)

    def weighted(base: Any) -> Any:
        return jnp.sum(powers(base, 5) * weights)

    first, second, third = jax.grad(weighted), jax.grad(jax.grad(weighted)), jax.grad(jax.grad(jax.grad(weighted)))
    zero = jnp.zeros(())
    assert [float(f(zero)) for f in (weighted, first, second, third)] == [1, 2, 6, 24]
    assert powers(zero, 0).shape == (0,)


def test_a_long_chain_is_right() -> None:
    op = impulse(scan("chain(t = 1024)", RAW + BOTH + NONE, "heads = 1, key = 2, value = 2"), (100,), "float32")
    q, k, v, gates = op.example(3)
    gates = gates | {"transition": jnp.full_like(gates["transition"], -0.995)}
    assert error(op(q, k, v, gates), op.reference(q, k, v, gates)) < 1e-5


def test_what_overflows_is_not_read() -> None:
    """Responses beyond the grid's end may be infinite; values and gradients inside are not."""
    op = impulse(scan("grid(rows = 2, cols = 9)", RAW + ALL + NONE), (2, 9), "float32")
    q, k, v, gates = op.example(0)
    gates = gates | {"transition": jnp.full_like(gates["transition"], 2e3)}
    value, gradient = jax.value_and_grad(lambda gates: jnp.sum(op(q, k, v, gates)))(gates)
    assert all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves((value, gradient)))


# --- when ------------------------------------------------------------------------------------------------------------

REFUSED = {
    "every node": scan("grid(rows = 3, cols = 4)", "source = 1; transition = sigmoid(linear(x)) / 2; mark = 1\n" + PROPAGATE),
    "regular topology": scan("dag { a -> b, c; b, c -> d }", "source = 1; transition = param(1); mark = 1\n" + NONE),
    "one number per head": scan("chain(t = 4)", "source = 1; transition[key] = param(1); mark = 1\n" + NONE),
    "differs from node to node": scan("chain(t = 4)", SUM.replace("sigmoid(linear(x, bias = spread(1, 3)))", "param(0.5)")),
    "no nodes": scan("grid(rows = 0, cols = 3)", CONSTANT + NONE),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refusals(words: str) -> None:
    (reason,) = [entry.reason for entry in stmlang.compile(REFUSED[words]).plan.rejections if entry.strategy == "impulse"]
    assert words in reason


@pytest.mark.parametrize("config", [{"tile": (3,)}, {"tile": (0, 2)}, {"block": 2}, {"tile": 3}])
def test_bad_tiles(config: Any) -> None:
    with pytest.raises(stmlang.SpecError) as caught:
        stmlang.compile(SPEC, rows=3, cols=4, strategy="impulse", config=config)
    assert caught.value.diagnostics[0].code == "STM5003"


def test_normalized_grids_are_taken() -> None:
    """There the gates are not rescaled."""
    body = "q = softplus(q); k = softplus(k); source = 1; mark = 1; direct = 1; normalize sum\n"
    body += "transition[out, in] = sigmoid(param(0)) / 2\n"
    op = impulse(scan("grid(rows = 3, cols = 4)", body + ALL), (2, 4))
    tree = as_tree(random_arguments(op, 0))
    assert max(errors(op(*tree, return_state=True), op.reference_result(*tree)).values()) < 1e-10


@pytest.mark.parametrize("directions", [ALL, CONCAT])
def test_gating_matrices(directions: str) -> None:
    text = scan(SQUARE.format(3, 4), CONSTANT + directions + NONE)
    fast, simple = impulse(text, (2, 4)), stmlang.compile(text, dtype="float64", strategy="parallel")
    q, k, v, gates, _ = as_tree(random_arguments(fast, 0))
    assert error(fast.gating_matrix(gates, q=q, k=k, v=v), simple.gating_matrix(gates, q=q, k=k, v=v)) < 1e-12


def test_explain_names_the_fact_and_the_path() -> None:
    text = stmlang.compile(SPEC, rows=14, cols=14).explain()
    assert "one impulse response tells everything" in text
    assert "plan: impulse tile=14x14" in text
    assert CPU.name in text
