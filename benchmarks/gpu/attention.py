"""Scans beside attention of the same size, which cuDNN's flash kernels compute: batch 128, 3 heads of 64, bfloat16.

Attention is `jax.nn.dot_product_attention(implementation="cudnn")`; beside chains it is causal. Both run in turns in one
process, the scan as planned without tuning; the ratio is the median of turns.
"""

from __future__ import annotations

from typing import Any, cast

from benchmarks.gpu.programs import PASSES, Mode, compiled, program, sizes_of
from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.3, "Scans beside cuDNN's attention"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("scan", "size", "pass", "strategy", "ms", "attention ms", "ratio", "temporaries MB")
IMAGES, QUICK_IMAGES, DRY_IMAGES = ("14x14", "24x24", "32x32", "64x64"), ("14x14", "32x32"), ("3x5",)
CHAINS, DRY_CHAINS = ("4096", "65536"), ("7",)
REPEATS, SECONDS = 9, 20.0


def cases(options: Options) -> list[str]:
    images = DRY_IMAGES if options.dry else QUICK_IMAGES if options.quick else IMAGES
    chains = DRY_CHAINS if options.dry else CHAINS[:1] if options.quick else CHAINS
    scans = [*((kind, size) for size in images for kind in ("D", "P")), *(("chain", size) for size in chains)]
    passes = ["both"] if options.dry else list(PASSES)
    return [f"{kind} {size} {which}" for kind, size in scans for which in passes]


def measure(case: str, options: Options) -> dict[str, Any]:
    """Seconds of both."""
    from stmlang.runtime.measure import time_interleaved

    kind, size, which = case.split(" ")
    mode, batch, width = PASSES[which], 2 if options.dry else 128, 4 if options.dry else 64
    op = compiled(kind, size, mode, batch, dtype="bfloat16", heads=3, key=width, value=width)
    ours = program(op, mode, batch)
    theirs = attention(size, mode, batch, width, "xla" if options.dry else "cudnn")
    times = time_interleaved({"ours": ours.run, "theirs": theirs.run}, 1 if options.dry else REPEATS, seconds=SECONDS)
    return {
        "strategy": op.plan_for(batch).chosen.candidate.label,
        "seconds": times["ours"].median,
        "attention_seconds": times["theirs"].median,
        "ratio": times["ours"].ratio(times["theirs"]),
        "compile_seconds": ours.compile_seconds,
        "temporary_bytes": ours.temporary_bytes,
    }


def attention(size: str, mode: Mode, batch: int, width: int, implementation: str) -> Any:
    """Attention over as many nodes, or with its gradients."""
    from math import prod

    import jax
    import jax.numpy as jnp

    from stmlang.runtime.measure import built

    nodes, causal = prod(sizes_of(size).values()), "x" not in size
    shape = (batch, nodes, 3, width)
    q, k, v, cotangent = (jax.random.normal(jax.random.key(number), shape, jnp.bfloat16) for number in range(4))

    def forward(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=cast(Any, implementation))

    def both(q: Any, k: Any, v: Any, cotangent: Any) -> Any:
        h, pull = cast(tuple[Any, Any], jax.vjp(forward, q, k, v))
        return h, pull(cotangent)

    return built(forward, q, k, v) if mode == "inference" else built(both, q, k, v, cotangent)


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    seconds = (f"{found[name] * 1e3:.3f}" for name in ("seconds", "attention_seconds"))
    return (*case.split(" "), found["strategy"], *seconds, f"{found['ratio']:.2f}", f"{found['temporary_bytes'] / 1e6:,.1f}")
