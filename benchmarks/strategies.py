"""The fast paths against softmax attention, and the planner's choice against the best candidate.

    python -m benchmarks.strategies                  every row, a process for each
    python -m benchmarks.strategies --only D-14x14   the rows whose names contain a word

A row is a scan at a size, forward alone or with all its gradients. The program that the planner picks without tuning, the
other candidates, and `softmax(Q K^T) V` in plain JAX of the same size run in turns in one process; seconds are medians, and
ratios are medians of turns. `regret` is the time of the planner's choice over that of the fastest candidate. Candidates that
are predicted to take more than `FARTHEST` times as long as the chosen one are not timed, and the row says how many those are.

Written to build/bench/strategies.json and build/bench/strategies.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from benchmarks.compile_time import write_rows
from stmlang.ending import output_of, require, start

Mode = Literal["inference", "training"]
PASSES: dict[Mode, str] = {"inference": "forward", "training": "forward+backward"}
FARTHEST = 6.0
"""Candidates that are predicted to be so many times slower than the chosen one are left out."""
MOST = 6
"""So many candidates beside the chosen one are timed, those with the best predictions."""
REPEATS = 9
LARGEST_REGRET = 1.3
COMPILE_TARGETS: dict[Mode, float] = {"inference": 5.0, "training": 15.0}
MEMORY_TARGET = 0.1


@dataclass(frozen=True)
class Case:
    """A scan at a size. `targets` are the largest ratios to softmax attention by mode; `whole` names a strategy that holds the
    gating matrix, where its temporary memory is compared with."""

    name: str
    spec: str
    sizes: Mapping[str, int]
    batch: int
    heads: int
    targets: Mapping[Mode, float]
    whole: str | None = None


def _image(letter: str, spec: str, side: int, forward: float, training: float) -> Case:
    large = side >= 64
    targets: dict[Mode, float] = {"inference": forward, "training": training}
    batch, heads = (1, 1) if large else (4, 3)
    sizes = {"rows": side, "cols": side}
    return Case(f"{letter}-{side}x{side}", spec, sizes, batch, heads, targets, "parallel" if large else None)


D, P = "std:plstm/image_d", "std:plstm/image_p"
CASES = (
    *(_image("D", D, side, 1.5, 2.5) for side in (14, 24)),
    *(_image("P", P, side, 2.5, 4.0) for side in (14, 24)),
    _image("D", D, 64, 1.3, 2.0),
    _image("P", P, 64, 2.5, 4.0),
    Case("chain-4096", "std:plstm/chain", {"time": 4096}, 4, 3, {"inference": 0.25, "training": 0.25}),
)
FLAT_TARGETS: dict[Mode, float] = {"inference": 1.5, "training": 2.0}
FLAT = tuple((f"{letter}-flat", spec, 64, 256) for letter, spec in (("D", D), ("P", P)))


@dataclass(frozen=True)
class Row:
    """One line of the table. `ours` and `softmax` are seconds; of a row about flatness they are seconds per node at the larger
    and at the smaller size. `tried` holds seconds by candidate, `untried` how many were left out; `whole_bytes` the temporary
    memory of the path that holds the gating matrix."""

    name: str
    passes: str
    choice: str
    ours: float
    softmax: float
    ratio: float
    target: float
    met: bool
    regret: float | None
    best: str | None
    compile_seconds: float
    compile_met: bool
    temporary_bytes: int
    whole_bytes: int | None
    memory_met: bool | None
    tried: dict[str, float]
    untried: int


def measure(case: Case, mode: Mode, repeats: int = REPEATS) -> Row:
    """A row, measured in this process."""
    from stmlang.cost.settings import settings_dict
    from stmlang.runtime.measure import AttentionSize, scan_program, softmax_program, time_interleaved

    chosen = _compiled(case, mode)
    others, untried = _candidates(chosen)
    programs = {chosen.plan.chosen.candidate.label: scan_program(chosen, mode, case.batch)}
    for candidate in others:
        op = _compiled(case, mode, candidate.strategy, settings_dict(candidate.settings))
        programs[candidate.label] = scan_program(op, mode, case.batch)
    attention = softmax_program(AttentionSize.of(chosen, case.batch), mode)
    calls = {"softmax": attention.run, **{name: program.run for name, program in programs.items()}}
    times = time_interleaved(calls, repeats)
    name = chosen.plan.chosen.candidate.label
    ours = programs[name]
    best = min(programs, key=lambda label: times[label].median)
    ratio = times[name].ratio(times["softmax"])
    whole = None
    if case.whole is not None:
        whole = scan_program(_compiled(case, mode, case.whole), mode, case.batch).temporary_bytes
    return Row(
        name=case.name,
        passes=PASSES[mode],
        choice=name,
        ours=times[name].median,
        softmax=times["softmax"].median,
        ratio=ratio,
        target=case.targets[mode],
        met=ratio <= case.targets[mode],
        regret=max(1.0, times[name].ratio(times[best])),
        best=best,
        compile_seconds=ours.compile_seconds,
        compile_met=ours.compile_seconds <= COMPILE_TARGETS[mode],
        temporary_bytes=ours.temporary_bytes,
        whole_bytes=whole,
        memory_met=None if whole is None else ours.temporary_bytes <= MEMORY_TARGET * whole,
        tried={label: times[label].median for label in programs},
        untried=untried,
    )


def measure_flatness(name: str, spec: str, small: int, large: int, mode: Mode, repeats: int = 3) -> Row:
    """Seconds per node of the planner's choices at two sizes, in turns."""
    from stmlang.runtime.measure import scan_program, time_interleaved

    ops = {side: _compiled(Case(name, spec, {"rows": side, "cols": side}, 1, 1, FLAT_TARGETS), mode) for side in (small, large)}
    programs = {str(side): scan_program(op, mode) for side, op in ops.items()}
    times = time_interleaved({side: program.run for side, program in programs.items()}, repeats)
    per_node = {side: times[str(side)].median / side**2 for side in (small, large)}
    ratio = per_node[large] / per_node[small]
    built = programs[str(large)]
    return Row(
        name=f"{name} {small} to {large}",
        passes=PASSES[mode],
        choice=" / ".join(ops[side].plan.chosen.candidate.label for side in (small, large)),
        ours=per_node[large],
        softmax=per_node[small],
        ratio=ratio,
        target=FLAT_TARGETS[mode],
        met=ratio <= FLAT_TARGETS[mode],
        regret=None,
        best=None,
        compile_seconds=built.compile_seconds,
        compile_met=built.compile_seconds <= COMPILE_TARGETS[mode],
        temporary_bytes=built.temporary_bytes,
        whole_bytes=None,
        memory_met=None,
        tried={},
        untried=0,
    )


def _compiled(case: Case, mode: Mode, strategy: str | None = None, config: Mapping[str, Any] | None = None) -> Any:
    """The scan compiled as planned, without what `stmlang tune` may have found."""
    import stmlang

    asked: dict[str, Any] = {"strategy": strategy, "config": config} if strategy is not None else {"tuned": False}
    sizes: dict[str, Any] = {"heads": case.heads, **case.sizes}
    return stmlang.compile(case.spec, target="cpu", mode=mode, batch=case.batch, **asked, **sizes)


def _candidates(chosen: Any) -> tuple[list[Any], int]:
    """The candidates worth timing beside the chosen one, and how many others could have been used."""
    limit = FARTHEST * chosen.plan.chosen.seconds
    fitting = [entry.estimate for entry in chosen.plan.ranked if entry.fits and entry.estimate is not chosen.plan.chosen]
    near = [estimate.candidate for estimate in fitting if estimate.seconds <= limit][:MOST]
    return near, len(fitting) - len(near)


# --- the table -------------------------------------------------------------------------------------------------------

HEADER = ("row", "pass", "choice", "ours ms", "softmax ms", "ratio", "target", "regret", "best", "compile s", "temp MB")


def show(rows: list[Row]) -> None:
    """The table as text, what missed its target marked."""
    lines = [HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    missed = [row for row in rows if not (row.met and row.compile_met and row.memory_met is not False)]
    regretted = [row for row in rows if row.regret is not None and row.regret > LARGEST_REGRET]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} rows met their targets; largest regret {_largest_regret(rows):.2f}")
    for row in missed:
        print(f"missed: {row.name} {row.passes}: {_misses(row)}")
    for row in regretted:
        print(f"regret: {row.name} {row.passes}: chose {row.choice}, {row.best} is {row.regret:.2f}x as fast")


def _cells(row: Row) -> tuple[str, ...]:
    flat = "flat" in row.name
    unit = 1e6 if flat else 1e3
    memory = f"{row.temporary_bytes / 1e6:,.1f}"
    if row.whole_bytes:
        memory += f" ({row.temporary_bytes / row.whole_bytes:.1%} of whole{'' if row.memory_met else ', MISSED'})"
    return (
        row.name,
        row.passes,
        row.choice,
        f"{row.ours * unit:.2f}{' us/node' if flat else ''}",
        f"{row.softmax * unit:.2f}{' us/node' if flat else ''}",
        f"{row.ratio:.2f}{'' if row.met else ' MISSED'}",
        f"{row.target:g}",
        "" if row.regret is None else f"{row.regret:.2f}",
        row.best or "",
        f"{row.compile_seconds:.1f}{'' if row.compile_met else ' MISSED'}",
        memory,
    )


def _largest_regret(rows: list[Row]) -> float:
    return max((row.regret for row in rows if row.regret is not None), default=1.0)


def _misses(row: Row) -> str:
    misses: list[str] = []
    if not row.met:
        misses.append(f"ratio {row.ratio:.2f} above {row.target:g}")
    if not row.compile_met:
        misses.append(f"compiled in {row.compile_seconds:.1f} s")
    if row.memory_met is False and row.whole_bytes:
        misses.append(f"temporary memory {row.temporary_bytes / row.whole_bytes:.1%} of the path that holds the gating matrix")
    tried = ", ".join(f"{label} {seconds * 1e3:.1f} ms" for label, seconds in row.tried.items())
    return "; ".join(misses) + (f" (timed: {tried}; not timed: {row.untried})" if tried else "")


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the files, print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.strategies", description="Fast paths against softmax attention."
    )
    parser.add_argument("--out", type=Path, default=Path("build/bench/strategies.json"), help="file to write")
    parser.add_argument("--only", default="", help="measure the rows whose names contain this")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="samples of each program")
    parser.add_argument("--one", nargs=2, metavar=("ROW", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(vars(_row(options.one[0], cast(Mode, options.one[1]), options.repeats))))
        return 0
    require("matplotlib")
    names = [name for name in (*(case.name for case in CASES), *(name for name, *_ in FLAT)) if options.only in name]
    rows: list[Row] = []
    for name in names:
        for mode in PASSES:
            print(f"measuring {name}, {PASSES[mode]}", file=sys.stderr, flush=True)
            rows.append(_apart(name, mode, options.repeats))
    show(rows)
    write(rows, options.out)
    return 0


def _row(name: str, mode: Mode, repeats: int) -> Row:
    for flat in FLAT:
        if flat[0] == name:
            return measure_flatness(*flat, mode, repeats=min(3, repeats))
    return measure(next(case for case in CASES if case.name == name), mode, repeats)


def _apart(name: str, mode: Mode, repeats: int) -> Row:
    """One row in a fresh process on the CPU, without a compilation cache."""
    command = [sys.executable, "-m", "benchmarks.strategies", "--repeats", str(repeats), "--one", name, mode]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return Row(**json.loads(output_of(command, environment).splitlines()[-1]))


def write(rows: list[Row], path: Path) -> None:
    """The rows as JSON and, beside it, as a figure."""
    from benchmarks.figure import draw

    write_rows([vars(row) for row in rows], path)
    picture = path.with_suffix(".svg")
    draw([vars(row) for row in rows], picture)
    print(f"wrote {path} and {picture}")


if __name__ == "__main__":
    start(main, "benchmarks.strategies")
