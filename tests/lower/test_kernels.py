"""Kernels, in Pallas' interpreter: their numbers against the recurrence in float64, and where they stand aside.

The interpreter takes seconds for what a kernel does in microseconds, so the sizes are small. It knows copies, barriers and
shared memory; layouts in registers and turned operands it does not (`stmlang.lower.kernels.product`), and these are checked as
far as lowering goes (`test_platforms`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams  # no public name yet

import stmlang
from stmlang.fuzz.generators import random_arguments
from stmlang.lower.kernels import interpreted
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import reference
from tests.helpers.calls import as_tree, dot

GRID = """scan test(heads = {heads}, key = 3, value = 2) on grid(rows = {rows}, cols = {cols}) {{
    source[out] = given()
    transition[out, in] = tanh(given())
    transition[out = {out}, in = {into}] = 0
    mark[in] = given()
    direct = given()
    directions {directions}
    stabilize none
}}
"""


def grid(rows: int, cols: int, directions: str = "all", *, heads: int = 1, turned: bool = False) -> str:
    out, into = ("rows", "cols") if turned else ("cols", "rows")
    return GRID.format(heads=heads, rows=rows, cols=cols, out=out, into=into, directions=directions)


TWO_TURNS = """scan test(heads = {heads}, key = 3, value = 2) on grid({axes}) {{
    source[out] = given()
    transition[out, in] = given(-1, 1)
    mark[in] = given()
    direct = given()
    directions {directions}
    stabilize none
}}
"""


def two_turns(*sizes: int, directions: str = "all", heads: int = 1) -> str:
    axes = ", ".join(f"{name} = {size}" for name, size in zip("abc", sizes, strict=False))
    return TWO_TURNS.format(heads=heads, axes=axes, directions=directions)


def compiled(text: str, strategy: str, config: Any, dtype: str = "float32") -> Any:
    return stmlang.compile(text, target="gpu", strategy=strategy, config=config, dtype=dtype)


def gradient(op: Any, tree: Any, cotangent: Any) -> tuple[Any, Any]:
    h, pull = jax.vjp(lambda tree: op(*tree), tree)
    return h, pull(cotangent.astype(h.dtype))[0]


def agrees(op: Any, tree: Any, cotangent: Any, h: Any, pulled: Any, tolerance: float) -> None:
    """Values with the recurrence, and the gradient with its derivative along one change of all arguments."""
    exact = reference(op.scan, op.dag, *tree).h
    assert np.abs(np.asarray(h, np.float64) - exact).max() <= tolerance * np.abs(exact).max()
    rng = np.random.default_rng(1)
    change = jax.tree.map(lambda array: rng.normal(size=np.shape(array)), tree)
    slope = dot(cotangent, derivative(op.scan, op.dag, Arguments(*tree), Arguments(*change)).h)
    terms = [np.asarray(a, np.float64) * b for a, b in zip(jax.tree.leaves(pulled), jax.tree.leaves(change), strict=True)]
    assert abs(sum(term.sum() for term in terms) - slope) <= tolerance * sum(np.abs(term).sum() for term in terms)


CHAIN = """scan test(heads = {heads}, key = 3, value = 2) on chain(t = {length}) {{
    source = given()
    transition = tanh(given())
    mark = given()
    direct = given()
    directions {directions}
    stabilize none
}}
"""


def chain(length: int, directions: str = "both", *, heads: int = 1) -> str:
    return CHAIN.format(heads=heads, length=length, directions=directions)


CASES = {
    "all directions": (grid(3, 2), "kernel_separable", {"width": 16}, "float32", 2e-6),
    "bfloat16": (grid(2, 3, "forward", turned=True), "kernel_separable", {"width": 16}, "bfloat16", 3e-2),
    "rows": (two_turns(3, 2), "kernel_rows", {"axis": 0, "rows": 1}, "float32", 2e-6),
    "columns": (two_turns(2, 5, directions="forward"), "kernel_rows", {"axis": 1, "rows": 2}, "bfloat16", 3e-2),
    "a chain": (chain(67, "forward"), "kernel_chain", None, "float32", 2e-6),
}
MORE = {
    "two tiles a line": (grid(5, 17, heads=2), "kernel_separable", {"width": 16}, "float32", 2e-6),
    "one line a tile": (grid(2, 65, "forward"), "kernel_separable", {"width": 64}, "bfloat16", 3e-2),
    "one run": (two_turns(1, 3), "kernel_rows", {"axis": 0, "rows": 1}, "float32", 2e-6),
    "rows of one": (two_turns(7, 1, heads=2), "kernel_rows", {"axis": 0, "rows": 2}, "float32", 2e-6),
    "two tiles a run": (two_turns(5, 23), "kernel_rows", {"axis": 0, "rows": 3}, "float32", 2e-6),
    "more ahead than back": (
        two_turns(5, 3, directions="+a +b, +a -b, -a +b"),
        "kernel_rows",
        {"axis": 0, "rows": 2},
        "float32",
        2e-6,
    ),
    "side by side": (two_turns(2, 3, directions="-a +b, -a -b concat"), "kernel_rows", None, "float32", 2e-6),
    "slabs": (two_turns(2, 2, 3, directions="both"), "kernel_rows", {"axis": 1, "rows": 1}, "float32", 2e-6),
    "one row": (grid(1, 7), "kernel_separable", {"width": 32}, "float32", 2e-6),
    "one column": (grid(7, 1), "kernel_separable", {"width": 16}, "float32", 2e-6),
    "three chunks": (chain(130, heads=2), "kernel_chain", None, "float32", 2e-6),
    "one node": (chain(1), "kernel_chain", None, "bfloat16", 3e-2),
    "turned": (grid(4, 3, turned=True), "kernel_separable", {"width": 32}, "float32", 2e-6),
}


@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_kernels_agree_with_the_recurrence(name: str) -> None:
    text, strategy, config, dtype, tolerance = {**CASES, **MORE}[name]
    op = compiled(text, strategy, config, dtype)
    checked(op, as_tree(random_arguments(op, 0)), dtype, tolerance)


def checked(op: Any, tree: Any, dtype: str, tolerance: float) -> None:
    """In the interpreter, in value and gradient."""
    tree = jax.tree.map(lambda array: jnp.asarray(array, dtype), tree)
    exact = jax.tree.map(lambda array: np.asarray(array, np.float64), tree)
    shape = jax.eval_shape(lambda tree: op(*tree), tree).shape
    cotangent = np.random.default_rng(2).normal(size=shape)
    rounded = np.asarray(jnp.asarray(cotangent, dtype), np.float64)
    with interpreted(InterpretGPUParams()):
        h, pulled = jax.jit(lambda tree: gradient(op, tree, jnp.asarray(cotangent)))(tree)
    agrees(op, exact, rounded, h, pulled, tolerance)


@pytest.mark.parametrize("strategy", ["kernel_rows"])
def test_decays_of_zero_and_one_are_exact(strategy: str) -> None:
    """And of minus one, in value and gradient."""
    op = compiled(two_turns(4, 2), strategy, {"axis": 0, "rows": 1})
    q, k, v, gates, initial = as_tree(random_arguments(op, 0))
    gates = {name: np.round(gate) if "transition" in name else gate for name, gate in gates.items()}
    assert {-1, 0, 1} == {entry for name, gate in gates.items() if "transition" in name for entry in gate.flat}
    checked(op, (q, k, v, gates, initial), "float32", 2e-6)


STRATEGIES = {
    "kernel_separable": (grid(2, 3), {"width": 16}, 3),
    "kernel_rows": (two_turns(2, 3), {"axis": 0, "rows": 1}, 3),
    "kernel_chain": (chain(67), None, 4),
}
"""A scan, settings, and how many kernels its gradient is made of."""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_elsewhere_they_are_what_xla_makes_of_them(strategy: str) -> None:
    """On a CPU, and to every transformation; for GPUs they are in the program of a batch too."""
    text, config, count = STRATEGIES[strategy]
    op, plain = compiled(text, strategy, config), stmlang.compile(text, strategy="recurrent")
    trees = [jax.tree.map(lambda array: jnp.asarray(array, "float32"), as_tree(random_arguments(op, seed))) for seed in (0, 1)]
    batch = jax.tree.map(lambda *arrays: jnp.stack(arrays), *trees)

    def slopes(op: Any, tree: Any) -> Any:
        return jax.grad(lambda tree: jnp.sum(jnp.sin(op(*tree))))(tree)

    def curvature(op: Any, tree: Any) -> Any:
        return jax.jvp(lambda tree: slopes(op, tree), (tree,), (trees[1],))[1]

    for call in (slopes, curvature):
        found, wanted = (jax.tree.leaves(call(each, trees[0])) for each in (op, plain))
        for mine, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)
    lowered = jax.jit(jax.vmap(lambda tree: slopes(op, tree))).trace(batch).lower(lowering_platforms=("cuda",)).as_text()
    assert lowered.count("@mosaic_gpu") == count


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_artifacts_hold_them(strategy: str, tmp_path: Path) -> None:
    """For GPUs, of a batch of known size; one of any size is made of XLA's operations."""
    text, config, _ = STRATEGIES[strategy]
    op = compiled(text, strategy, config)
    for batch, held in ((2, True), ("symbolic", False)):
        path = tmp_path / f"{batch}.stmx"
        op.export(path, platforms=["gpu"], batch=batch)
        assert ("@mosaic_gpu" in stmlang.load(path).stablehlo) == held
