"""The same inputs, the same bits: each program twice in a process, and in two processes."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Any, cast

import numpy as np

from benchmarks.gpu.programs import compiled, program
from benchmarks.gpu.settings import Options
from stmlang.ending import output_of

SHARE, TITLE = 0.07, "The same bits"
ENVIRONMENT: dict[str, str] = {}
HEADER = ("program", "twice in a process", "in two processes", "")
SCANS = ("D 14x14", "P 14x14", "chain 4096", "graphs")
DRY = ("D 2x3",)


def cases(options: Options) -> list[str]:
    return list(DRY if options.dry else SCANS[1::2] if options.quick else SCANS)


def measure(case: str, options: Options) -> dict[str, Any]:
    """Whether results and gradients of a scan, in bfloat16 over a batch, have the same hash."""
    command = [sys.executable, "-m", "benchmarks.gpu.determinism", case, str(int(options.dry)), str(options.sets or "")]
    found = [output_of(command, dict(os.environ)).split()[-2:] for _ in range(2)]
    twice, apart = all(first == second for first, second in found), found[0][0] == found[1][0]
    return {"twice": twice, "apart": apart, "ok": twice and apart}


def hashes(case: str, options: Options) -> tuple[str, str]:
    """Of two runs of one program."""
    run = _runner(case, options)
    first, second = (_hash(run()) for _ in range(2))
    return first, second


def _runner(case: str, options: Options) -> Any:
    if case == "graphs":
        import jax

        from benchmarks.gpu.graphs import molecules
        from benchmarks.graphs import HEAD, MODES, passes, placed

        both = passes(placed(HEAD + MODES["P"], molecules(options)))[1]
        return lambda: cast(Any, jax.block_until_ready(both()))
    kind, size = case.split(" ")
    batch, width = (2, 4) if options.dry else (16, 64)
    op = compiled(kind, size, "training", batch, dtype="bfloat16", heads=3, key=width, value=width)
    return program(op, "training", batch).run


def _hash(tree: Any) -> str:
    import jax

    hasher = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        hasher.update(np.ascontiguousarray(np.asarray(leaf)).tobytes())
    return hasher.hexdigest()


def row(case: str, found: dict[str, Any]) -> tuple[str, ...]:
    words = {True: "the same", False: "DIFFERENT"}
    return case, words[found["twice"]], words[found["apart"]], "" if found["ok"] else "WRONG"


if __name__ == "__main__":
    from pathlib import Path

    named, is_dry, folder = sys.argv[1:]
    print(*hashes(named, Options(Path("build/gpu"), dry=is_dry == "1", sets=Path(folder) if folder else None)))
