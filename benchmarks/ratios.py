"""Scans against scans of the same size: what gates that do more cost beside those that do less.

    python -m benchmarks.ratios                     every row, a process for each
    python -m benchmarks.ratios --only 14x14        the rows whose names contain a word

A row is a scan and the one that it is measured by, both as the planner chooses, forward alone or with all gradients. They run
in turns in one process, with `recurrent` beside them; the ratio is the median of turns. Written to build/bench/ratios.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from benchmarks.compile_time import write_rows
from stmlang.ending import output_of, start

Mode = Literal["inference", "training"]
MODES: tuple[Mode, ...] = ("inference", "training")
REPEATS = 15

OVERWRITING_P = """
scan overwriting(heads = 3) on grid(rows, cols) {
    directions all
    k                   = l2norm(k)
    beta                = sigmoid(linear(x))
    angle               = sigmoid(linear(x, bias = spread(-2, 2)))
    decay               = tanh(5 * linear(x, bias = 1))
    strength            = sigmoid(linear(x, bias = -4))
    source[out]         = strength * split(angle)[out]
    mark                = sigmoid(linear(x, bias = -4))
    direct              = sigmoid(linear(x, bias = -6))
    transition[out, in, key, key'] = decay * split(angle)[out] * (eye[key, key'] - beta * k[key] * k[key'])
    stabilize P
}
"""


@dataclass(frozen=True)
class Pair:
    """A spec, the one that it is measured by, and the largest ratio of their times."""

    name: str
    spec: str
    measure: str
    sizes: Mapping[str, int]
    target: float
    batch: int = 1


SQUARE = {"rows": 14, "cols": 14}
PAIRS = (
    Pair("delta D-14x14", "std:plstm/image_delta", "std:plstm/image_d", SQUARE, 2.5),
    Pair("delta P-14x14", OVERWRITING_P, "std:plstm/image_p", SQUARE, 2.5),
    Pair("delta chain-4096", "std:chain/deltanet", "std:plstm/chain", {"time": 4096, "heads": 4}, 1.5),
    Pair("mlstm chain-4096", "std:chain/mlstm", "std:plstm/chain", {"time": 4096, "heads": 4}, 1.5),
)


@dataclass(frozen=True)
class Row:
    """One line of the table, times in seconds."""

    name: str
    mode: Mode
    choice: str
    other: str
    ours: float
    theirs: float
    ratio: float
    target: float
    recurrent: float = field(default=float("nan"))


def measure(pair: Pair, mode: Mode, repeats: int = REPEATS) -> Row:
    """A row, measured in this process."""
    import stmlang
    from stmlang.runtime.measure import scan_program, time_interleaved

    def op(spec: str, strategy: str | None = None) -> Any:
        asked: dict[str, Any] = {"tuned": False} if strategy is None else {"strategy": strategy}
        return stmlang.compile(spec, target="cpu", mode=mode, batch=pair.batch, **asked, **cast(Any, dict(pair.sizes)))

    ops = {"ours": op(pair.spec), "theirs": op(pair.measure), "recurrent": op(pair.spec, "recurrent")}
    times = time_interleaved({name: scan_program(one, mode, pair.batch).run for name, one in ops.items()}, repeats)
    labels = {name: one.plan.chosen.candidate.label for name, one in ops.items()}
    return Row(
        pair.name,
        mode,
        labels["ours"],
        labels["theirs"],
        times["ours"].median,
        times["theirs"].median,
        times["ours"].ratio(times["theirs"]),
        pair.target,
        times["recurrent"].median,
    )


HEADER = ("row", "mode", "choice", "ours ms", "measured by", "its ms", "ratio", "target", "recurrent ms")


def show(rows: list[Row]) -> None:
    """The table as text, what missed its target marked."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print(f"\n{sum(row.ratio <= row.target for row in rows)} of {len(rows)} rows met their targets")


def _cells(row: Row) -> tuple[str, ...]:
    missed = "" if row.ratio <= row.target else " MISSED"
    times = (f"{seconds * 1e3:.2f}" for seconds in (row.ours, row.theirs, row.recurrent))
    ours, theirs, recurrent = times
    ratio = f"{row.ratio:.2f}{missed}"
    return (row.name, row.mode, row.choice, ours, row.other, theirs, ratio, f"{row.target:g}", recurrent)


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the file, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description="Scans against scans.")
    parser.add_argument("--out", type=Path, default=Path("build/bench/ratios.json"), help="file to write")
    parser.add_argument("--only", default="", help="measure the rows whose names contain this")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of each program")
    parser.add_argument("--one", nargs=2, metavar=("ROW", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        pair = next(pair for pair in PAIRS if pair.name == options.one[0])
        print(json.dumps(vars(measure(pair, cast(Mode, options.one[1]), options.repeats))))
        return 0
    names = [pair.name for pair in PAIRS if options.only in pair.name]
    rows = [_apart(name, mode, options.repeats) for name in names for mode in MODES]
    write_rows([vars(row) for row in rows], options.out)
    show(rows)
    print(f"wrote {options.out}")
    return 0


def _apart(name: str, mode: Mode, repeats: int) -> Row:
    """One row in a fresh process on the CPU, without a compilation cache."""
    command = [sys.executable, "-m", "benchmarks.ratios", "--repeats", str(repeats), "--one", name, mode]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return Row(**json.loads(output_of(command, environment).splitlines()[-1]))


if __name__ == "__main__":
    start(main, "benchmarks.ratios")
