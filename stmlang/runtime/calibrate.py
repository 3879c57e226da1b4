"""Measuring what this machine's CPU does, for the cost model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stmlang.cost.target import CPU, Target
from stmlang.lower.contractions import matmul
from stmlang.runtime.compile import compile
from stmlang.runtime.compiled import CompiledScan
from stmlang.strategies.registry import gating_strategy, reference_strategy

REPEATS = 5
MEASUREMENTS = 9


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """What was measured, one thing after the other: a name for people, and fields of `Target`. A few seconds in all.

    Each figure is the best of several runs: the machine's other work only ever slows one down.
    """
    with jax.enable_x64(True):
        rates: dict[str, float] = {}
        for name in CPU.matmul:
            rates[name] = _products(name)
            yield f"{name} products", {"matmul": dict(rates)}
    yield "elementwise work", {"vector": _elementwise()}
    yield "memory traffic", {"bandwidth": _traffic()}
    yield "sequential steps", {"step_overhead": _steps()}
    yield "operations", {"op_overhead": _operations()}
    yield "small products", {"product_overhead": _small_products()}
    yield "compilation", {"compile_seconds": _compilation(), "memory": memory()}


def record(rates: dict[str, Any]) -> Target:
    """The CPU's record with what was measured."""
    return replace(CPU, measured=True, **rates)


def memory() -> int:
    """Bytes that a program may use: four fifths of what the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """The best time of a compiled call."""
    compiled: Any = jax.jit(function).lower(*arguments).compile()
    jax.block_until_ready(compiled(*arguments))
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        best = min(best, time.perf_counter() - start)
    return best


def _products(dtype: str) -> float:
    side = 512
    matrix = jnp.ones((side, side), dtype)
    return 2 * side**3 / _seconds(jnp.matmul, matrix, matrix)


def _elementwise() -> float:
    count, rounds = 1 << 16, 64

    def work(x: Array) -> Array:
        for _ in range(rounds):
            x = x * 0.999 + 0.001
        return x

    return 2 * rounds * count / _seconds(work, jnp.ones(count, jnp.float32))


def _traffic() -> float:
    count = 1 << 24

    def work(x: Array) -> Array:
        return x + 1

    return 2 * 4 * count / _seconds(work, jnp.ones(count, jnp.float32))


def _steps() -> float:
    """A step of a real sweep with little to do. It has states of some kilobytes: a loop over less is one kernel to XLA, whose
    steps cost a hundredth of what those of other loops do."""
    count, name = 512, reference_strategy().name
    op = compile("std:plstm/chain", target="cpu", strategy=name, heads=4, key=32, value=32, time=count)
    assert isinstance(op, CompiledScan)
    return _seconds(op, *op.example()) / count


def _operations() -> float:
    """Small matrix products in a row: nothing fuses them."""
    count, matrix = 200, jnp.eye(8, dtype=jnp.float32)

    def work(x: Array) -> Array:
        for _ in range(count):
            x = matrix @ x
        return x

    return _seconds(work, matrix) / count


def _small_products() -> float:
    """Products just large enough that a matrix kernel is called for each: smaller ones XLA multiplies out in place."""
    count, side = 1 << 12, 8
    left = right = jnp.ones((count, side, side), jnp.float32)
    return _seconds(matmul, left, right) / count


def _compilation() -> float:
    """Seconds per instruction of a real program: the gating matrix of a small grid and its adjoint."""
    op = compile("std:plstm/image_p", target="cpu", strategy=gating_strategy().name, heads=1, key=8, value=8, rows=8, cols=8)
    assert isinstance(op, CompiledScan)
    q, k, v, gates = op.example()

    def loss(q: Array, gates: dict[str, Array]) -> Array:
        return jnp.sum(op(q, k, v, gates))

    lowered: Any = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(q, gates)
    instructions: int = lowered.as_text().count(" = ")
    start = time.perf_counter()
    lowered.compile()
    return (time.perf_counter() - start) / instructions
