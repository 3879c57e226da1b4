"""Measuring compiled programs: seconds to make and to run one, what memory it needs, and softmax attention to compare with.

Times of a shared machine mean little by themselves. What is compared is run in turns in one process (`time_interleaved`), and
ratios are taken turn by turn (`Timing.ratio`), so that whatever slows a turn down slows all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, prod, sqrt
from statistics import median, quantiles
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stmlang.runtime.compiled import CompiledScan
from stmlang.runtime.signature import widest

Mode = Literal["inference", "training"]
Call = Callable[[], Any]

SHORTEST = 4e-3
"""Seconds that a sample lasts at least: a call that is shorter is repeated within it."""
BLOCK = 512
"""Queries that blockwise attention works on at a time."""
COPIES: dict[str, int] = {"inference": 2, "training": 4}
"""How many arrays of pairs attention holds at a time that is not blockwise."""


@dataclass(frozen=True)
class Built:
    """A program compiled for arguments: `call(*arguments)`, or others of their shapes, and `run()`, which waits for the result.

    `trace_seconds` go from the call to StableHLO, `xla_seconds` from there to machine code; `temporary_bytes` is what it needs
    beside arguments and results.
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    trace_seconds: float
    xla_seconds: float
    temporary_bytes: int

    def run(self) -> Any:
        """The result for the arguments, when it is there."""
        return cast(Any, jax.block_until_ready(self.call(*self.arguments)))

    @property
    def compile_seconds(self) -> float:
        return self.trace_seconds + self.xla_seconds


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, sampled `len(samples)` times."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def least(self) -> float:
        return min(self.samples)

    def ratio(self, other: Timing) -> float:
        """The median, over the turns that both were part of, of this time to the other's."""
        return median(self._ratios(other))

    def noise(self, other: Timing) -> float:
        """How far that ratio may be off, relative to it: two standard errors of the median, by the middle half of the turns."""
        ratios = self._ratios(other)
        if len(ratios) < 2:
            return 1.0
        low, middle, high = quantiles(ratios, n=4, method="inclusive")
        return 1.85 * (high - low) / (middle * sqrt(len(ratios)))

    def _ratios(self, other: Timing) -> list[float]:
        return [a / b for a, b in zip(self.samples, other.samples, strict=True)]


def built(function: Callable[..., Any], *arguments: Any) -> Built:
    """A function traced and compiled for arguments. It is traced anew: pass one that nothing has traced before."""
    start = time.perf_counter()
    lowered: Any = jax.jit(function).lower(*arguments)
    traced = time.perf_counter()
    compiled = lowered.compile()
    done = time.perf_counter()
    return Built(compiled, arguments, traced - start, done - traced, temporary_bytes(compiled))


def temporary_bytes(compiled: Any) -> int:
    """What a compiled program needs beside its arguments and results, 0 where the platform does not tell."""
    analysis = compiled.memory_analysis()
    return 0 if analysis is None else int(analysis.temp_size_in_bytes)


def compile_seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Seconds to trace and compile a function for arguments."""
    return built(function, *arguments).compile_seconds


def time_interleaved(
    calls: Mapping[str, Call], repeats: int = 7, *, seconds: float = float("inf"), advance: Callable[[], None] | None = None
) -> dict[str, Timing]:
    """Every call's times: one sample of each in turn, `repeats` times, fewer once `seconds` are spent, but at least one.

    Each is called once before, unmeasured. A sample is the mean of as many calls as last `SHORTEST`. Every other turn goes
    backwards, so that none always follows the same one. `advance` is called after each sample.
    """
    start = time.perf_counter()
    counts = {name: _count(call) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for turn in range(repeats):
        if turn and time.perf_counter() - start > seconds:
            break
        for name in order if turn % 2 == 0 else reversed(order):
            samples[name].append(_sample(calls[name], counts[name]))
            if advance is not None:
                advance()
    return {name: Timing(tuple(times)) for name, times in samples.items()}


def _count(call: Call) -> int:
    """How many calls a sample holds, after one that fills caches."""
    call()
    return max(1, ceil(SHORTEST / max(_sample(call, 1), 1e-9)))


def _sample(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


# --- scans -----------------------------------------------------------------------------------------------------------


def scan_arguments(op: CompiledScan, batch: int = 1, seed: int = 0) -> tuple[Any, ...]:
    """Random `(q, k, v, gates)`, as `CompiledScan.example`; a batch of them has an axis in front, except for constants
    (`param`), which a batch shares."""
    if batch == 1:
        return op.example(seed)
    queries, keys, values, leaves = zip(*(op.example(seed + number) for number in range(batch)), strict=True)
    gates = {
        name: leaves[0][name] if axis is None else jnp.stack([leaf[name] for leaf in leaves])
        for name, axis in gate_axes(op).items()
    }
    return jnp.stack(queries), jnp.stack(keys), jnp.stack(values), gates


def gate_axes(op: CompiledScan) -> dict[str, int | None]:
    """The batch axis of each leaf, None for those that a batch shares."""
    return {name: None if op.scan.leaf(name).kind == "param" else 0 for name in op.signature.gates}


def scan_function(op: CompiledScan, mode: Mode, batch: int = 1) -> Callable[..., Any]:
    """`f(op, arguments)`, the result; in training mode `f(op, arguments, cotangent)`, the result and the gradients by q, k, v
    and all leaves. The scan is an argument, so that its tables are no constants."""
    axes = (0, 0, 0, gate_axes(op))

    def forward(op: CompiledScan, arguments: tuple[Any, ...]) -> Array:
        return op(*arguments) if batch == 1 else jax.vmap(op, in_axes=axes)(*arguments)

    def training(op: CompiledScan, arguments: tuple[Any, ...], cotangent: Array) -> tuple[Array, Any]:
        return _with_gradients(lambda *inputs: forward(op, inputs), arguments, cotangent)

    return forward if mode == "inference" else training


def scan_program(op: CompiledScan, mode: Mode, batch: int = 1, seed: int = 0) -> Built:
    """A call of a scan (`inference`), or a call with all its gradients (`training`), on random arguments."""
    arguments = scan_arguments(op, batch, seed)
    function = scan_function(op, mode, batch)
    if mode == "inference":
        return built(function, op, arguments)
    shape = op.signature.result if batch == 1 else (batch, *op.signature.result)
    return built(function, op, arguments, _normal(shape, op.dtype, seed + 1))


def _with_gradients(function: Callable[..., Array], arguments: tuple[Any, ...], cotangent: Array) -> tuple[Array, Any]:
    h, pull = cast(tuple[Array, Callable[[Array], Any]], jax.vjp(function, *arguments))
    return h, pull(cotangent)


def _normal(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


# --- what they are compared with -------------------------------------------------------------------------------------


def softmax_attention(
    q: Float[Array, "*batch nodes key"],
    k: Float[Array, "*batch nodes key"],
    v: Float[Array, "*batch nodes value"],
    block: int | None = None,
) -> Float[Array, "*batch nodes value"]:
    """`softmax(Q K^T) V` in plain JAX, batch and heads in front, sums in float32 (of float64 in float64), no scale.

    With `block` so many queries at a time, and each block's weights made again in the backward pass: memory grows with the
    nodes and not with their square. The nodes must be a multiple of it.
    """
    wide = widest(q.dtype)

    def attend(query: Array) -> Array:
        scores = jnp.einsum("...nk,...mk->...nm", query, k, preferred_element_type=wide)
        weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
        return jnp.einsum("...nm,...mv->...nv", weights, v, preferred_element_type=wide).astype(v.dtype)

    if block is None:
        return attend(q)
    blocks = jnp.moveaxis(q.reshape(*q.shape[:-2], -1, block, q.shape[-1]), -3, 0)
    done = cast(Array, jax.lax.map(jax.checkpoint(attend), blocks))
    return jnp.moveaxis(done, 0, -3).reshape(*q.shape[:-1], v.shape[-1])


@dataclass(frozen=True)
class AttentionSize:
    """What softmax attention of a scan's size is: `heads` counts batch and heads."""

    nodes: int
    heads: int
    key: int
    value: int
    dtype: str

    @classmethod
    def of(cls, op: CompiledScan, batch: int = 1) -> AttentionSize:
        scan = op.scan
        return cls(prod(op.dag.node_shape), batch * scan.heads, scan.key, scan.value, op.dtype)

    def pairs_bytes(self, mode: Mode) -> int:
        """Bytes of the arrays of pairs that a program holds at a time."""
        return COPIES[mode] * self.heads * self.nodes**2 * max(4, jnp.dtype(self.dtype).itemsize)

    def flops(self, mode: Mode) -> int:
        """Of the products: two forward; blockwise five more backward."""
        return 2 * self.heads * self.nodes**2 * (self.key + self.value) * (1 if mode == "inference" else 4)


def softmax_program(size: AttentionSize, mode: Mode, blockwise: bool = False, seed: int = 0) -> Built:
    """Attention of a size, head by head (which suits it best), or with its gradients by q, k and v.

    Blockwise the nodes are rounded up to whole blocks.
    """
    nodes = -(-size.nodes // BLOCK) * BLOCK if blockwise else size.nodes
    widths = (size.key, size.key, size.value, size.value)
    q, k, v, cotangent = (_normal((size.heads, nodes, width), size.dtype, seed + number) for number, width in enumerate(widths))

    def forward(q: Array, k: Array, v: Array) -> Array:
        return softmax_attention(q, k, v, BLOCK if blockwise else None)

    def training(q: Array, k: Array, v: Array, cotangent: Array) -> tuple[Array, Any]:
        return _with_gradients(forward, (q, k, v), cotangent)

    return built(forward, q, k, v) if mode == "inference" else built(training, q, k, v, cotangent)
