"""Everything is computed in float32 at least, and rounded once: also the gradient of a leaf that many directions read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.runtime.compiled import CompiledScan

BODY = """
offset = param(0.5)
transition = tanh(linear(x)) * given(-1, 1)
source[key] = sigmoid(linear(x))
mark = given(-1, 1)
k = k + offset
"""
PLACES = {
    "a graph, both ways": ("dag { a -> b; a -> c; b -> d; c -> d; d -> e; -> a; e -> }", "directions both"),
    "a tree, both ways": ("tree(arity = 2, depth = 3)", "directions both"),
    "a grid, four ways": ("grid(height = 3, width = 4)", "directions all"),
    "a chain, both ways": ("chain(t = 7)", "directions both"),
}


@pytest.mark.parametrize("place", PLACES)
def test_gradients_in_bfloat16_are_rounded_once(place: str) -> None:
    topology, directions = PLACES[place]
    text = f"scan s(heads = 3, key = 2, value = 2) on {topology} {{{BODY}{directions}\n}}\n"
    narrow, wide = (stmlang.compile(text, dtype=dtype) for dtype in ("bfloat16", "float32"))
    arguments = narrow.example(0)
    cotangent = np.asarray(jax.random.normal(jax.random.key(1), narrow.signature.result, jnp.bfloat16))

    def gradient(op: CompiledScan, dtype: str) -> list[jax.Array]:
        def total(arguments: tuple[object, ...]) -> jax.Array:
            return jnp.sum(op(*arguments).astype(jnp.float32) * cotangent.astype(jnp.float32))

        return jax.tree.leaves(jax.jit(jax.grad(total))(jax.tree.map(lambda array: np.asarray(array).astype(dtype), arguments)))

    for rounded, exact in zip(gradient(narrow, "bfloat16"), gradient(wide, "float32"), strict=True):
        assert rounded.dtype == jnp.bfloat16
        exact = np.asarray(exact, np.float64)
        last_digit = 2.0 ** (np.floor(np.log2(np.abs(exact) + 1e-30)) - 7)
        noise = 1e-5 * np.abs(exact).max()  # float32's own, where two programs add in other orders
        np.testing.assert_array_less(np.abs(np.asarray(rounded, np.float64) - exact), 0.501 * last_digit + noise)
