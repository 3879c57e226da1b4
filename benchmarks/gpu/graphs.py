"""64 molecules in a scan of 4 heads of 24, both directions, beside a layer of a GIN: forward and with gradients."""

from __future__ import annotations

from typing import Any, cast

from benchmarks.gpu.settings import Options

SHARE, TITLE = 0.06, "64 molecules beside a GIN"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("mode", "graphs", "strategy", "forward ms", "both ms", "GIN ms", "ratio")
DRAWN = 30
"""Nodes of molecules that are drawn at random: those of NCI1 have as many on average."""


def cases(options: Options) -> list[str]:
    return ["P"] if options.dry else ["P", "D"]


def measure(case: str, options: Options) -> dict[str, Any]:
    """Medians of turns, of the strategy that is chosen."""
    from benchmarks.graphs import HEAD, MODES, gin, passes, placed
    from stmlang.runtime.measure import time_interleaved

    graph_batch = molecules(options)
    on = placed(HEAD + MODES[case], graph_batch)
    forward, both = passes(on)
    calls = {"GIN": gin(graph_batch), "forward": forward, "both": both}
    times = time_interleaved({name: _waiting(call) for name, call in calls.items()}, 1 if options.dry else 15, seconds=20.0)
    return {
        "graphs": "drawn" if options.sets is None else "NCI1",
        "strategy": on.plan.strategy,
        "forward_seconds": times["forward"].median,
        "both_seconds": times["both"].median,
        "gin_seconds": times["GIN"].median,
        "ratio": times["both"].ratio(times["GIN"]),
    }


def molecules(options: Options) -> Any:
    """A batch of NCI1, or of as many graphs like it."""
    from benchmarks import graphs
    from benchmarks.problems import random_edges
    from stmlang.graph import batch
    from stmlang.graph.build import ragged_dag

    if options.sets is not None:
        return graphs.molecules(options.sets)
    count, nodes = (2, 5) if options.dry else (graphs.GRAPHS, DRAWN)
    edges = [random_edges(nodes, seed).T for seed in range(count)]
    return batch([ragged_dag(nodes, tail, head) for tail, head in edges])


def _waiting(call: Any) -> Any:
    import jax

    return lambda: cast(Any, jax.block_until_ready(call()))


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    seconds = (f"{found[name] * 1e3:.3f}" for name in ("forward_seconds", "both_seconds", "gin_seconds"))
    return (case, found["graphs"], found["strategy"], *seconds, f"{found['ratio']:.2f}")
