"""Measuring what a machine does, its CPU or, with larger sizes, its GPU: for the cost model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

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


@dataclass(frozen=True)
class Sizes:
    """How much there is to do: the side of large products, numbers that are read and written, of elementwise work, small
    products in a batch, steps, and operations in a row. A device with more to run at once needs more to be busy."""

    side: int = 512
    traffic: int = 1 << 24
    numbers: int = 1 << 16
    products: int = 1 << 12
    steps: int = 512
    operations: int = 200


CPU_SIZES = Sizes()
GPU_SIZES = Sizes(side=8192, traffic=1 << 29, numbers=1 << 26, products=1 << 20)
SMALLEST_SIZES = Sizes(side=8, traffic=8, numbers=8, products=2, steps=4, operations=4)


def measurements(sizes: Sizes = CPU_SIZES) -> dict[str, Callable[[], dict[str, Any]]]:
    """What can be measured, by a name for people; each gives fields of `Target`. The rates of products are in `matmul`, that of
    one data type each.

    Each figure is the best of several runs: the machine's other work only ever slows one down.
    """

    def products(name: str) -> Callable[[], dict[str, Any]]:
        return lambda: {"matmul": {name: _products(name, sizes.side)}}

    return {
        **{f"{name} products": products(name) for name in CPU.matmul},
        "elementwise work": lambda: {"vector": _elementwise(sizes.numbers)},
        "memory traffic": lambda: {"bandwidth": _traffic(sizes.traffic)},
        "sequential steps": lambda: {"step_overhead": _steps(sizes.steps)},
        "operations": lambda: {"op_overhead": _operations(sizes.operations)},
        "small products": lambda: {"product_overhead": _small_products(sizes.products)},
        "compilation": lambda: {"compile_seconds": _compilation(), "memory": memory()},
    }


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """What was measured of the CPU, one thing after the other: a name for people, and fields of `Target`. A few seconds."""
    rates: dict[str, float] = {}
    for name, take in measurements().items():
        found = take()
        if "matmul" in found:
            rates |= found["matmul"]
            found = {"matmul": dict(rates)}
        yield name, found


def record(rates: dict[str, Any]) -> Target:
    """The CPU's record with what was measured."""
    return replace(CPU, measured=True, **rates)


def memory() -> int:
    """Bytes that a program may use: what a GPU says of itself, of a CPU four fifths of what the machine has."""
    stats = {} if jax.default_backend() == "cpu" else cast(dict[str, int] | None, jax.devices()[0].memory_stats())
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"])
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


def _products(dtype: str, side: int) -> float:
    """At the precision that everything of ours asks for: of float32 the full one."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        matrix = jnp.ones((side, side), dtype)
        return 2 * side**3 / _seconds(jnp.matmul, matrix, matrix)


def _elementwise(count: int) -> float:
    rounds = 64

    def work(x: Array) -> Array:
        for _ in range(rounds):
            x = x * 0.999 + 0.001
        return x

    return 2 * rounds * count / _seconds(work, jnp.ones(count, jnp.float32))


def _traffic(count: int) -> float:
    def work(x: Array) -> Array:
        return x + 1

    return 2 * 4 * count / _seconds(work, jnp.ones(count, jnp.float32))


def _steps(count: int) -> float:
    """A step of a real sweep with little to do. It has states of some kilobytes: a loop over less is one kernel to XLA, whose
    steps cost a hundredth of what those of other loops do."""
    name = reference_strategy().name
    op = compile("std:plstm/chain", strategy=name, heads=4, key=32, value=32, time=count)
    assert isinstance(op, CompiledScan)
    return _seconds(op, *op.example()) / count


def _operations(count: int) -> float:
    """Small matrix products in a row: nothing fuses them."""
    matrix = jnp.eye(8, dtype=jnp.float32)

    def work(x: Array) -> Array:
        for _ in range(count):
            x = matrix @ x
        return x

    return _seconds(work, matrix) / count


def _small_products(count: int) -> float:
    """Products just large enough that a matrix kernel is called for each: smaller ones XLA multiplies out in place."""
    side = 8
    left = right = jnp.ones((count, side, side), jnp.float32)
    return _seconds(matmul, left, right) / count


def _compilation() -> float:
    """Seconds per instruction of a real program: the gating matrix of a small grid and its adjoint."""
    op = compile("std:plstm/image_p", strategy=gating_strategy().name, heads=1, key=8, value=8, rows=8, cols=8)
    assert isinstance(op, CompiledScan)
    q, k, v, gates = op.example()

    def loss(q: Array, gates: dict[str, Array]) -> Array:
        return jnp.sum(op(q, k, v, gates))

    lowered: Any = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(q, gates)
    instructions: int = lowered.as_text().count(" = ")
    start = time.perf_counter()
    lowered.compile()
    return (time.perf_counter() - start) / instructions
