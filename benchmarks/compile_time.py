"""How long the fully parallel program of a 16x16 grid takes to compile, and how many operations it has.

    python -m benchmarks.compile_time

For P-mode and D-mode with four directions, forward alone and forward with backward: seconds to trace, seconds in XLA,
operations in the StableHLO text, instructions in the optimized HLO and in its entry computation alone. Every measurement has
a process of its own, so that no cache helps. Written to build/bench/compile.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from stmlang.ending import output_of, start
from stmlang.source.writing import written_whole

SIDE = 16
SPECS = ("std:plstm/image_p", "std:plstm/image_d")
PASSES: tuple[Literal["forward", "forward+backward"], ...] = ("forward", "forward+backward")
HEADER = ("spec", "pass", "trace s", "XLA s", "StableHLO ops", "HLO instructions", "of them in the entry")


def measure(spec: str, passes: str, side: int) -> dict[str, Any]:
    """One program, traced and compiled in this process."""
    import jax
    import jax.numpy as jnp

    import stmlang

    begin = time.perf_counter()
    op = stmlang.compile(spec, rows=side, cols=side, strategy="parallel")
    planned = time.perf_counter()

    def forward(op: Any, arguments: Any) -> Any:
        return op(*arguments)

    def loss(arguments: Any, op: Any) -> Any:
        return jnp.sum(op(*arguments) ** 2)

    arguments = op.example()
    lowered: Any
    if passes == "forward":
        lowered = jax.jit(forward).lower(op, arguments)
    else:
        lowered = jax.jit(jax.value_and_grad(loss)).lower(arguments, op)
    traced = time.perf_counter()
    compiled = lowered.compile()
    done = time.perf_counter()
    optimized = [line for line in compiled.as_text().splitlines() if " = " in line]
    entry = compiled.as_text().partition("\nENTRY ")[2].partition("\n}")[0].splitlines()
    return {
        "spec": spec,
        "pass": passes,
        "side": side,
        "plan_seconds": planned - begin,
        "trace_seconds": traced - planned,
        "xla_seconds": done - traced,
        "stablehlo_ops": operations(lowered.as_text()),
        "hlo_instructions": len(optimized),
        "entry_instructions": sum(" = " in line for line in entry),
    }


def operations(stablehlo: str) -> int:
    """Operations in a StableHLO text: lines that assign a value by an operation, whatever function they stand in."""
    return sum(" = stablehlo." in line or ' = "stablehlo.' in line for line in stablehlo.splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description="Compile time and program size.")
    parser.add_argument("--out", type=Path, default=Path("build/bench/compile.json"), help="file to write")
    parser.add_argument("--side", type=int, default=SIDE, help="side of the grid")
    parser.add_argument("--one", nargs=2, metavar=("SPEC", "PASS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(options.one[0], options.one[1], options.side)))
        return 0
    rows = [_apart(spec, passes, options.side) for spec in SPECS for passes in PASSES]
    write_rows(rows, options.out)
    show(rows)
    print(f"wrote {options.out}")
    return 0


def write_rows(rows: Sequence[Any], path: Path) -> None:
    """Rows as JSON, with the machine that they were measured on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        file.write(json.dumps({"machine": machine(), "rows": rows}, indent=2).encode() + b"\n")


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    from importlib.metadata import version

    return {
        "python": platform.python_version(),
        "jax": version("jax"),
        "jaxlib": version("jaxlib"),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def show(rows: list[dict[str, Any]]) -> None:
    """The table as text."""
    keys = ("trace_seconds", "xla_seconds")
    counts = ("stablehlo_ops", "hlo_instructions", "entry_instructions")
    lines = [
        HEADER,
        *((row["spec"], row["pass"], *(f"{row[k]:.1f}" for k in keys), *(f"{row[k]:,}" for k in counts)) for row in rows),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    for line in lines:
        print(
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        )


def _apart(spec: str, passes: str, side: int) -> dict[str, Any]:
    """One measurement in a fresh process on the CPU, without a compilation cache."""
    command = [sys.executable, "-m", "benchmarks.compile_time", "--side", str(side), "--one", spec, passes]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return json.loads(output_of(command, environment).splitlines()[-1])


if __name__ == "__main__":
    start(main, "benchmarks.compile_time")
