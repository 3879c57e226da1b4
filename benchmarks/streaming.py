"""What a step of a model costs beside the products of its matrices alone.

    python -m benchmarks.streaming

A model is `DEPTH` layers of a chain, each added to what it reads; its step is timed in turns with a program that does nothing
but multiply the same weights with as many vectors. Written to build/bench/streaming.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from benchmarks.compile_time import write_rows
from stmlang.ending import start

DEPTH, WIDTH, HEADS = 12, 512, 8
SPECS = ("std:chain/gla", "std:chain/mlstm", "std:chain/deltanet", "std:chain/gated_deltanet", "std:plstm/chain")
TURNS, SECONDS = 41, 10.0
TARGET = 1.2
"""The largest ratio."""


def measure(spec: str) -> dict[str, Any]:
    """A step of a model of a spec, in seconds, and its median ratio to the products of the weights."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import stmlang
    from stmlang.nn import ScanLayer
    from stmlang.runtime.measure import time_interleaved

    op = stmlang.compile(spec, heads=HEADS, key=WIDTH // HEADS, value=WIDTH // HEADS, mode="inference")
    layers = [ScanLayer(op, WIDTH, key=jax.random.key(number)) for number in range(DEPTH)]
    states, x = [layer.init_state() for layer in layers], jax.random.normal(jax.random.key(DEPTH), (WIDTH,))

    @eqx.filter_jit
    def step(layers: list[Any], states: list[Any], x: Any) -> Any:
        behind = list[Any]()
        for layer, state in zip(layers, states, strict=True):
            y, state = layer.step(state, x)
            x = x + y
            behind.append(state)
        return x, behind

    @eqx.filter_jit
    def products(layers: list[Any], x: Any) -> Any:
        for layer in layers:
            weights = [layer.query.weight, layer.key.weight, *layer.leaves.weight.values()]
            kept = sum(jnp.sum(weight.reshape(-1, WIDTH) @ x) for weight in weights)
            x = kept + layer.out.reshape(WIDTH, -1) @ (layer.value.weight.reshape(-1, WIDTH) @ x)
        return x

    def whole() -> Any:
        return cast(Any, jax.block_until_ready(step(layers, states, x)))

    def alone() -> Any:
        return cast(Any, jax.block_until_ready(products(layers, x)))

    times = time_interleaved({"step": whole, "products": alone}, TURNS, seconds=SECONDS)
    ours, theirs = times["step"], times["products"]
    return {"spec": spec, "step_seconds": ours.median, "product_seconds": theirs.median, "ratio": ours.ratio(theirs)}


def main() -> int:
    """Print a row for each spec and write them down."""
    rows = [measure(spec) for spec in SPECS]
    for row in rows:
        missed = "" if row["ratio"] <= TARGET else " MISSED"
        print(f"{row['spec']:<20} {1e3 * row['step_seconds']:8.2f} ms a step, {row['ratio']:.2f} times its products{missed}")
    print(f"\n{sum(row['ratio'] <= TARGET for row in rows)} of {len(rows)} rows met the target of {TARGET}")
    write_rows(rows, Path("build/bench/streaming.json"))
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.streaming")
