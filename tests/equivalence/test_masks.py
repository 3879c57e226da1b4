"""A scan that a mask cuts is the shorter scan: in value and gradient, states included, whatever stands where it is false."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from tests.helpers import cases

SMALL = {"heads": 2, "key": 3, "value": 2}
LENGTH, COUNT = 11, 7
BOTH = """
scan both(heads = 2, key = 3, value = 2) on chain(time) {
    directions both
    keep       = param(spread(1, 2))
    source     = given(0, 1) / sigmoid(keep)
    transition = tanh(linear(x)) * sigmoid(keep)
    mark       = 1 / linear(x)
    direct     = linear(x)
}
"""
CONSTANT = "scan constant(heads = 2, key = 2, value = 2) on chain(time) { source = param(1); transition = tanh(param(2)) }\n"
MAMBA = f"scan mamba(heads = 2, key = 3, value = 2) on chain(time) {{{cases.MAMBA}}}"
KEY_TURN = (
    f"scan turn(heads = 2, key = 3, value = 2) on grid(rows, cols) {{{cases.KEY_TURN.format('cols', 'rows')}{cases.NONE}}}"
)
MAMBA_2D = f"scan mamba(heads = 2, key = 3, value = 2) on grid(rows, cols) {{{cases.MAMBA_2D}{cases.ALL}}}"
ZERO = "scan zero(heads = 2, key = 2, value = 2) on chain(time) { source = linear(x); transition = 0; mark = 1 }\n"
BORDERS = """
scan borders(heads = 2, key = 3, value = 2) on chain(time) {
    directions both
    source         = linear(x)
    transition[in] = tanh(linear(x)) * (1 + neighbour(in)) / 2
    mark[in]       = neighbour(in) + param(1)
    direct         = sum(neighbour(out), over = out)
}
"""
GRID_BORDERS = """
scan borders(heads = 2, key = 3, value = 2) on grid(rows, cols) {
    directions all
    share[in]           = neighbour(in) / max(1, sum(neighbour(in), over = in))
    source[out]         = neighbour(out) + linear(x)
    transition[out, in] = share * tanh(linear(x))
    mark[in]            = share
    stabilize none
}
"""
slow = pytest.mark.slow
CHAINS = [
    ("std:chain/gla", "linear"),
    ("std:chain/mlstm", "linear"),
    ("std:chain/deltanet", "delta"),
    ("std:chain/deltanet", "delta_dense"),
    ("std:plstm/chain", "dense_nodes"),
    (BOTH, "parallel"),
    (CONSTANT, "impulse"),
    (ZERO, "recurrent"),
    (BORDERS, "linear"),
    (MAMBA, "walk"),
    (BOTH, "walk"),
    *(
        pytest.param(spec, strategy, marks=slow)
        for spec, strategies in {
            "std:chain/gla": ("recurrent",),
            "std:chain/mlstm": ("chunkwise", "dense", "dense_nodes", "parallel", "recurrent"),
            "std:chain/deltanet": ("recurrent",),
            "std:plstm/chain": ("chunkwise", "dense", "linear", "parallel", "recurrent"),
            BOTH: ("chunkwise", "dense", "linear", "recurrent"),
        }.items()
        for strategy in strategies
    ),
]
MASKS = {
    "the end": np.arange(LENGTH) < COUNT,
    "the beginning": np.arange(LENGTH) >= LENGTH - COUNT,
    "holes": np.isin(np.arange(LENGTH), [1, 2, 4, 5, 7, 8, 10]),
}


@cache
def compiled(spec: str, strategy: str, **sizes: int) -> stmlang.CompiledScan:
    known = {} if "{" in spec else SMALL
    return stmlang.compile(spec, dtype="float64", strategy=strategy, tuned=False, **known, **sizes)


def random_like(tree: Any) -> Any:
    generator = np.random.default_rng(3)
    return jax.tree.map(lambda array: jnp.asarray(generator.standard_normal(array.shape)), tree)


def spread_out(op: stmlang.CompiledScan, arguments: Any, mask: np.ndarray) -> Any:
    """Arguments of the nodes that count, put where a mask is true; NaN elsewhere."""
    q, k, v, gates = arguments
    kinds = {leaf.name: leaf.kind for leaf in op.scan.leaves}

    def put(array: Any) -> Any:
        wide = np.full((*mask.shape, *array.shape[-(array.ndim - len(op.node_shape)) :]), np.nan)
        wide[mask] = np.asarray(array).reshape(-1, *wide.shape[mask.ndim :])
        return jnp.asarray(wide)

    return put(q), put(k), put(v), {name: gates[name] if kinds[name] == "param" else put(gates[name]) for name in gates}


def taken(array: Any, like: Any, mask: np.ndarray) -> np.ndarray:
    """What an array holds where the mask is true; it must be zero elsewhere."""
    if array.shape == like.shape:
        return np.asarray(array)
    assert np.all(np.asarray(array)[~mask] == 0)
    return np.asarray(array)[mask].reshape(like.shape)


def close(found: Any, expected: Any, mask: np.ndarray) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(taken(a, b, mask), b, rtol=1e-8, atol=1e-10), found, expected)


@cache
def shorter(spec: str) -> Any:
    """Arguments of a chain of `COUNT` nodes, an initial state, the results with the final one, and the gradients."""
    op = compiled(spec, "recurrent", time=COUNT)
    arguments, initial = op.example(1), random_like(op.zero_state())

    @jax.jit
    def both(arguments: Any, initial: Any) -> Any:
        result, pull = jax.vjp(lambda arguments, initial: op(*arguments, initial, True), arguments, initial)
        return result, pull(random_like(result))

    return op, arguments, initial, both(arguments, initial)


@pytest.mark.parametrize(("spec", "strategy"), CHAINS)
def test_chain_skips_what_is_masked(spec: str, strategy: str) -> None:
    op = compiled(spec, strategy, time=LENGTH)
    small, arguments, initial, (result, gradient) = shorter(spec)
    assert op.plan.strategy == strategy

    @jax.jit
    def both(arguments: Any, initial: Any, mask: Any, seen: Any) -> Any:
        found, pull = jax.vjp(lambda arguments, initial: op(*arguments, initial, True, mask), arguments, initial)
        return found, pull(seen)

    cotangent = random_like(result)
    for mask in MASKS.values():
        wide = spread_out(small, (cotangent[0], cotangent[0], cotangent[0], {}), mask)[0]
        # What is asked of nodes that do not count has no part in any gradient.
        wide = jnp.where(jnp.isnan(wide), 7.0, wide)
        found, pulled = both(spread_out(small, arguments, mask), initial, jnp.asarray(mask), (wide, cotangent[1]))
        close(found, result, mask)
        close(pulled, gradient, mask)
    for count in (0, 1, 2):
        tiny = compiled(spec, "recurrent", time=count)
        mask, given = np.arange(LENGTH) < count, tiny.example(2)
        expected = tiny.reference_result(*given, initial)
        h, state = both(spread_out(tiny, given, mask), initial, jnp.asarray(mask), (jnp.zeros(wide.shape), cotangent[1]))[0]
        close(h, expected.h, mask)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), list(state), list(expected.state))


SIZES, INSIDE = {"rows": 4, "cols": 3}, {"rows": 3, "cols": 2}
GRIDS = [
    ("std:plstm/image_p", "rows"),
    ("std:plstm/image_d", "separable"),
    ("std:plstm/image_delta", "delta_separable"),
    ("std:plstm/image_delta", "delta_dense"),
    ("std:plstm/image_constant", "impulse"),
    (GRID_BORDERS, "raster"),
    (KEY_TURN, "corners"),
    (MAMBA_2D, "walk"),
    *(
        pytest.param(spec, strategy, marks=slow)
        for spec, strategies in {
            "std:plstm/image_p": ("chunkwise", "dense", "dense_nodes", "parallel", "raster", "recurrent"),
            "std:plstm/image_d": ("chunkwise", "dense", "parallel", "raster", "recurrent", "rows"),
            "std:plstm/image_constant": ("chunkwise", "parallel", "raster"),
        }.items()
        for strategy in strategies
    ),
]


@pytest.mark.parametrize(("spec", "strategy"), GRIDS)
def test_image_in_a_corner_is_the_image_alone(spec: str, strategy: str) -> None:
    op, small = compiled(spec, strategy, **SIZES), compiled(spec, "recurrent", **INSIDE)
    mask = np.zeros(tuple(SIZES.values()), bool)
    mask[: INSIDE["rows"], : INSIDE["cols"]] = True
    arguments = small.example(1)

    @jax.jit
    def alone(arguments: Any) -> Any:
        result, pull = jax.vjp(lambda given: small(*given), arguments)
        return result, pull(random_like(result))[0]

    @jax.jit
    def within(arguments: Any, seen: Any) -> Any:
        found, pull = jax.vjp(lambda given: op(*given, mask=jnp.asarray(mask)), arguments)
        return found, pull(seen)[0]

    result, gradient = alone(arguments)
    cotangent = random_like(result)
    seen = jnp.nan_to_num(spread_out(small, (cotangent,) * 3 + ({},), mask)[0], nan=7.0)
    found, pulled = within(spread_out(small, arguments, mask), seen)
    close(found, result, mask)
    close(pulled, gradient, mask)


def test_nothing_passes_a_masked_node_of_a_grid() -> None:
    """A column that is left out parts the image."""
    op = compiled("std:plstm/image_p", "recurrent", **SIZES)
    mask = np.ones((4, 3), bool)
    mask[:, 1] = False
    q, k, v, gates = op.example()
    h = op(q, k, v, gates, mask=jnp.asarray(mask))
    other = op(q, k, v.at[:, 2].set(5.0), gates, mask=jnp.asarray(mask))
    np.testing.assert_array_equal(h[:, 0], other[:, 0])
    assert np.all(h[:, 1] == 0)
    assert np.any(h[:, 2] != other[:, 2])


def test_masks_are_mapped_with_their_examples() -> None:
    op = compiled("std:plstm/chain", "recurrent", time=5)
    examples = jax.tree.map(lambda *arrays: jnp.stack(arrays), *(op.example(seed) for seed in range(2)))
    masks = jnp.asarray(np.arange(5) < np.array([[2], [5]]))
    together = jax.vmap(lambda given, mask: op(*given, mask=mask))(examples, masks)
    for number in range(2):
        alone = op(*jax.tree.map(lambda array, number=number: array[number], examples), mask=masks[number])
        np.testing.assert_allclose(together[number], alone, atol=1e-12)


def test_masks_that_do_not_fit_are_refused() -> None:
    chain, grid = compiled("std:plstm/chain", "recurrent", time=5), compiled("std:plstm/image_p", "recurrent", **SIZES)
    dag = stmlang.compile("scan s on dag { a -> b } { source = 1; transition = 1 }\n", key=2, value=2, tuned=False)
    for op, mask, options, text in [
        (chain, np.ones(5), {}, "`mask` must be an array of truth values, not an array of float64"),
        (chain, [True] * 5, {}, "`mask` must be an array of truth values, not list"),
        (chain, np.ones(4, bool), {}, r"`mask` must have the shape \(5,\), not \(4,\)"),
        (chain, np.ones((2, 5), bool), {}, "map over a batch of examples and their masks"),
        (grid, np.ones((4, 3), bool), {"return_state": True}, "no initial and final states beside one"),
        (dag, np.ones(2, bool), {}, "masks are for chains and grids"),
    ]:
        with pytest.raises(stmlang.SpecError, match=text) as error:
            op(*op.example(), mask=mask, **options)
        assert error.value.diagnostics[0].code == "STM5210"
