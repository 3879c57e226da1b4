"""Scans of complex states against their recurrence in complex numbers, which shares nothing with the real pairs they become.

Values, final states and gradients; chains, grids and a graph; what the oracle is given is real already, so that it cannot judge
how complex gates are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stmlang
from stmlang.fuzz.generators import random_arguments
from tests.helpers.calls import as_tree

CHAIN = """
scan chained(heads = 2, key = 3, value = 2) on chain(time) {
    z[key]            = polar(given(), given()) * conjugate(complex(given(), given()))
    source[key]       = complex(given(), given()) / z
    transition[key]   = exp(complex(-exp(given()), given())) / (2 + abs(z))
    mark[key, value]  = 2 * real(z) * z - imaginary(z)
    direct[value]     = 2 * sum(source * z, over = key)
}
"""
AFTER = """
scan after(heads = 2, key = 3, value = 2) on chain(time) {
    source[value]      = given()
    transition[key]    = [polar(0.9, given()), complex(given(-0.5, 0.5), 0.5), -0.5][key]
    read after
    stabilize P
}
"""
GRID = """
scan on_grid(heads = 1, key = 2, value = 2) on grid(rows, cols) {
    source[out, value]             = polar(given(), given())
    transition[out, in, key]       = complex(given(-0.5, 0.5), given(-0.5, 0.5))
    transition[out = cols, in = rows, key] = 0
    mark[in]                       = complex(given(), given())
    direct[value]                  = imaginary(source[out = rows, value]) * conjugate(mark[in = rows])
}
"""
Gates = dict[str, Any]
Gating = Callable[[Gates, Callable[[str], Any]], dict[str, Any]]


def chain_gates(g: Gates) -> dict[str, Any]:
    """All gates with the axes node, head, key, value."""
    z = g["z"] * jnp.exp(1j * g["z.2"]) * jnp.conj(g["z.3"] + 1j * g["z.4"])
    source = (g["source"] + 1j * g["source.2"]) / z
    return {
        "source": source[..., None],
        "transition": (jnp.exp(-jnp.exp(g["transition"]) + 1j * g["transition.2"]) / (2 + jnp.abs(z)))[..., None],
        "mark": (2 * z.real * z - z.imag)[..., None],
        "direct": 2 * jnp.sum(source * z, axis=-1)[..., None, None],
    }


def after_gates(g: Gates) -> dict[str, Any]:
    real = jnp.clip(g["transition.2"], -0.5, 0.5)
    transition = jnp.stack([0.9 * jnp.exp(1j * g["transition"]), real + 0.5j, jnp.full(real.shape, -0.5 + 0j)], axis=-1)
    source = g["source"][..., None, :]
    return {"source": source, "transition": transition[..., None], "mark": transition[..., None], "direct": source + 0j}


@pytest.fixture(autouse=True)
def _mixed() -> Iterator[None]:
    """Real and complex numbers are mixed here as in NumPy."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def along(gates: dict[str, Any], q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """The recurrence of a chain."""

    def step(state: Any, node: Any) -> tuple[Any, Any]:
        gate, q, k, v = node
        write = k[:, :, None] * v[:, None, :]
        read = jnp.sum(q[:, :, None] * (gate["mark"] * state + gate["direct"] * write), axis=1)
        return gate["transition"] * state + gate["source"] * write, read.real

    start = jnp.zeros((*k.shape[1:], v.shape[-1]), jnp.result_type(q, jnp.complex64))
    final, h = jax.lax.scan(step, start, (gates, q, k, v))
    return h, jnp.stack([final.real, final.imag], axis=1)


def over_grid(g: Gates, q: Any, k: Any, v: Any) -> Any:
    """The recurrence of the grid, pixel by pixel."""
    rows, cols = q.shape[:2]
    zero = jnp.zeros((1, 2, 2), jnp.result_type(q, jnp.complex64))
    down: dict[tuple[int, int], Any] = {}
    right: dict[tuple[int, int], Any] = {}
    table: list[Any] = []
    for i in range(rows):
        for j in range(cols):
            real, imaginary = (jnp.clip(g[f"transition{part}"][i, j], -0.5, 0.5) for part in ("", ".2"))
            turn = (real + 1j * imaginary)[..., None]  # head, out, in, key, value
            source = (g["source"] * jnp.exp(1j * g["source.2"]))[i, j][:, :, None, :]
            mark = (g["mark"] + 1j * g["mark.2"])[i, j][..., None, None]
            above, before = down.get((i, j), zero), right.get((i, j), zero)
            write = k[i, j][:, :, None] * v[i, j][:, None, :]
            down[i + 1, j] = turn[:, 0, 0] * above + turn[:, 0, 1] * before + source[:, 0] * write
            right[i, j + 1] = turn[:, 1, 1] * before + source[:, 1] * write
            direct = source[:, 0].imag * jnp.conj(mark[:, 0])
            seen = mark[:, 0] * above + mark[:, 1] * before + direct * write
            table.append(jnp.sum(q[i, j][:, :, None] * seen, axis=1).real)
    return jnp.stack(table).reshape(rows, cols, *table[0].shape)


def compiled(text: str, dtype: str, strategy: str, **sizes: int) -> tuple[stmlang.CompiledScan, Any]:
    op = stmlang.compile(text, dtype=dtype, strategy=strategy, tuned=False, **sizes)
    assert isinstance(op, stmlang.CompiledScan)
    q, k, v, gates, *_ = as_tree(random_arguments(op, 5))
    return op, jax.tree.map(lambda array: jnp.asarray(array, dtype), (q, k, v, gates))


def agree(found: Any, expected: Any, tolerance: float) -> None:
    for array, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        mine, theirs = np.asarray(array), np.asarray(other)
        scale = max(1.0, float(np.abs(theirs).max(initial=0)))
        assert float(np.abs(mine - theirs).max(initial=0)) <= tolerance * scale


def differentiated(function: Callable[..., Any], arguments: Any) -> Any:
    """All outputs, and the gradient of a number made of them with weights that differ, by one program."""

    def loss(arguments: Any) -> Any:
        outputs = function(*arguments)
        weighed = (
            jnp.sum(jnp.sin(1.0 + jnp.arange(array.size)).reshape(array.shape) * array) for array in jax.tree.leaves(outputs)
        )
        return sum(weighed), outputs

    gradient, outputs = jax.jit(jax.grad(loss, has_aux=True))(arguments)
    return outputs, gradient


@pytest.mark.parametrize("strategy", ["walk", "recurrent"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), pytest.param("float32", 2e-4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("text", "gating", "time"), [(CHAIN, chain_gates, 7), (AFTER, after_gates, 6)])
def test_chain(strategy: str, dtype: str, tolerance: float, text: str, gating: Any, time: int) -> None:
    op, arguments = compiled(text, dtype, strategy, time=time)

    def ours(q: Any, k: Any, v: Any, gates: Gates) -> Any:
        h, (state,) = op(q, k, v, gates, return_state=True)
        return h, state["time"]

    def theirs(q: Any, k: Any, v: Any, gates: Gates) -> Any:
        return along(gating(gates), q, k, v)

    (h, slopes), (expected, expected_slopes) = (differentiated(function, arguments) for function in (ours, theirs))
    agree(h, expected, tolerance)
    agree(slopes, expected_slopes, 10 * tolerance)


@pytest.mark.parametrize("time", [1, 2])
def test_short_chains(time: int) -> None:
    op, (q, k, v, gates) = compiled(CHAIN, "float64", "walk", time=time)
    agree(op(q, k, v, gates), along(chain_gates(gates), q, k, v)[0], 1e-10)


@pytest.mark.parametrize("strategy", ["walk", "recurrent"])
def test_grid(strategy: str) -> None:
    op, arguments = compiled(GRID, "float64", strategy, rows=3, cols=2)

    def theirs(q: Any, k: Any, v: Any, gates: Gates) -> Any:
        return over_grid(gates, q, k, v)

    (h, slopes), (expected, expected_slopes) = (differentiated(function, arguments) for function in (op, theirs))
    agree(h, expected, 1e-10)
    agree(slopes, expected_slopes, 1e-9)


def test_half_precision_is_accumulated_in_single() -> None:
    """Numbers that bfloat16 holds exactly give a result that is off by the rounding of gates and output alone."""
    op, arguments = compiled(AFTER, "bfloat16", "walk", time=200)
    wide = jax.tree.map(lambda array: jnp.asarray(array, jnp.float64), arguments)
    h, expected = op(*arguments), along(after_gates(wide[3]), *wide[:3])[0]
    assert h.dtype == jnp.bfloat16
    assert float(jnp.abs(h - expected).max()) <= 0.02 * float(jnp.abs(expected).max())


def test_steps_carry_both_parts() -> None:
    """Step by step the state is the pair, and the outputs are those of the whole pass."""
    op, (q, k, v, gates) = compiled(CHAIN, "float64", "walk", time=5)
    state = op.init_state()
    assert [array.shape for array in jax.tree.leaves(state) if np.ndim(array) == 4] == [(2, 2, 3, 2)]
    rows = list[Any]()
    for t in range(5):
        h, state = op.step(state, *op.step_arguments(t, q, k, v, gates))
        rows.append(h)
    agree(jnp.stack(rows), op(q, k, v, gates), 1e-12)
