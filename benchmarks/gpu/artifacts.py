"""Artifacts that a process on the CPU wrote, loaded and run here: the numbers are those that the scan gave there."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.gpu.settings import Options
from stmlang.ending import output_of

SHARE, TITLE = 0.05, "Artifacts made on a CPU"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("artifact", "bytes", "load s", "first call s", "error", "")
SCANS: dict[str, tuple[str, dict[str, Any]]] = {
    "image_p": ("std:plstm/image_p", {"rows": 5, "cols": 7}),
    "image_d": ("std:plstm/image_d", {"rows": 5, "cols": 7}),
    "chain": ("std:plstm/chain", {"time": 33}),
    "graph_p": ("std:plstm/graph_p", {}),
}
BUCKET = {"graphs": 4, "nodes": 64, "edges": 96}
ALLOWED = 1e-4
"""Of the largest number, in float32: the two machines add in different orders."""


def cases(options: Options) -> list[str]:
    return ["chain"] if options.dry else list(SCANS)


def measure(case: str, options: Options) -> dict[str, Any]:
    """Write in a process that sees the CPU alone, and load and call here."""
    folder = options.out / "artifacts"
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    output_of([sys.executable, "-m", "benchmarks.gpu.artifacts", case, str(folder)], environment)
    import jax

    import stmlang

    path = folder / f"{case}.stmx"
    start = time.perf_counter()
    loaded: Any = stmlang.load(path)
    read = time.perf_counter()
    call = loaded.at(_graphs()) if case == "graph_p" else loaded
    with np.load(folder / f"{case}.npz") as arrays:
        given = {name: arrays[name] for name in arrays}
    wanted = given.pop("result")
    inputs = [given.pop(name) for name in "qkv"]
    found = np.asarray(cast(Any, jax.block_until_ready(call(*inputs, given))))
    done = time.perf_counter()
    real = np.isfinite(wanted)
    error = float(np.abs(found - wanted)[real].max() / np.abs(wanted[real]).max())
    seconds = {"load_seconds": read - start, "call_seconds": done - read}
    return {"bytes": path.stat().st_size, **seconds, "error": error, "ok": error <= ALLOWED}


def make(case: str, folder: Path) -> None:
    """Write an artifact for the CPU and for CUDA, and what the scan gives."""
    import jax

    import stmlang

    spec, sizes = SCANS[case]
    op: Any = stmlang.compile(spec, heads=2, key=8, value=8, mode="inference", **sizes)
    path, platforms = folder / f"{case}.stmx", ["cpu", "cuda"]
    if case == "graph_p":
        op.export(path, BUCKET, platforms)
        graphs: Any = stmlang.load(path)
        given = graphs.batch(_graphs())
        on = op.at(given)
        arguments = on.example(0)
        mask = given.node_mask.reshape(-1, *(1,) * 2)
        result = np.where(mask, on(*arguments), np.nan)
    else:
        op.export(path, platforms, batch=None)
        arguments = op.example(0)
        result = np.asarray(cast(Any, jax.jit(op))(*arguments))
    q, k, v, gates = arguments
    np.savez(folder / f"{case}.npz", q=q, k=k, v=v, result=result, **gates)


def _graphs() -> Any:
    from benchmarks.problems import random_edges
    from stmlang.graph.build import ragged_dag

    return [ragged_dag(nodes, *random_edges(nodes, nodes).T) for nodes in (5, 9)]


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    seconds = (f"{found[name]:.2f}" for name in ("load_seconds", "call_seconds"))
    return case, f"{found['bytes']:,}", *seconds, f"{found['error']:.1e}", "" if found["ok"] else "WRONG"


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]))
