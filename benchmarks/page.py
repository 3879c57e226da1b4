"""What the benchmarks measured, as a page: docs/results/speed.md.

    make bench
    make bench-vision
    python -m benchmarks.page

Reads the files in build/bench/ and leaves out the tables of those that are not there. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.streaming import TARGET as STEP
from benchmarks.vision import MODES, SIZES
from stmlang.ending import start
from stmlang.source.writing import written_whole

FOLDER, OUT = Path("build/bench"), Path("docs/results/speed.md")
HEAD = """# Speed

What `make bench` and `make bench-vision` measured, as ratios: the two sides of a row ran in turns in one process, seconds are
medians, the ratio is the median of turns. A ratio of at most its target meets it. Absolute times are those of one machine.
"""
PASSES = {"inference": "forward", "training": "forward+backward"}

Cells = tuple[str, ...]
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of one file of the benchmarks; `cells` makes a line of one of its rows."""

    file: str
    title: str
    about: str
    header: Cells
    cells: Callable[[Line], Cells]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def _ratio(ratio: float, target: float | None) -> Cells:
    """A ratio and its target, what misses it in bold."""
    if target is None:
        return f"{ratio:.2f}", ""
    return f"{ratio:.2f}" if ratio <= target else f"**{ratio:.2f}, missed**", f"{target:g}"


def _softmax(row: Line) -> Cells:
    flat = row["name"].endswith("-flat")
    times = (f"{row[side] * 1e6:.2f} us" if flat else _ms(row[side]) for side in ("ours", "softmax"))
    return row["name"], row["passes"], f"`{row['choice']}`", *times, *_ratio(row["ratio"], row["target"])


def _scans(row: Line) -> Cells:
    sides = f"`{row['choice']}`", _ms(row["ours"]), f"`{row['other']}`", _ms(row["theirs"])
    return row["name"], PASSES[row["mode"]], *sides, *_ratio(row["ratio"], row["target"])


def _decays(row: Line) -> Cells:
    sides = f"`{row['choice']}`", _ms(row["ours"]), f"`{row['over']}`", _ms(row["theirs"])
    return row["name"], row["passes"], *sides, *_ratio(row["ratio"], row["target"])


def _steps(row: Line) -> Cells:
    return f"`{row['spec']}`", _ms(row["step_seconds"]), _ms(row["product_seconds"]), *_ratio(row["ratio"], STEP)


def _images(row: Line) -> Cells:
    size = next((size for size in SIZES if size.name == row["size"]), None)
    target = size.targets[MODES.index(row["mode"])] if size is not None and row["name"] == "pLSTM-Vis" else None
    rest = f"{row['compile_seconds']:.1f}", f"{row['temporaries'] / 1e6:.1f}"
    return row["size"], PASSES[row["mode"]], row["name"], _ms(row["seconds"]), *_ratio(row["ratio"], target), *rest


TABLES = (
    Table(
        "strategies",
        "Scans beside softmax attention",
        "As planned, beside `softmax(Q K^T) V` on as many nodes and heads. The rows `flat` are the time of a node on the "
        "larger of two grids over that on the smaller one.",
        ("scan", "pass", "plan", "ms", "attention, ms", "ratio", "target"),
        _softmax,
    ),
    Table(
        "ratios",
        "Richer transitions beside one number",
        "The delta rule on 14x14 beside the scan of the same topology and mode with one number a transition, and DeltaNet and "
        "mLSTM on chains beside a scalar decay.",
        ("scan", "pass", "plan", "ms", "its measure", "ms", "ratio", "target"),
        _scans,
    ),
    Table(
        "decays",
        "Elementwise decays, and plain scans",
        "Chains beside a `lax.scan` of a few lines that evaluates the same gates and is asserted to give the same result; "
        "elementwise decays and tracks beside the scans that they are to keep up with.",
        ("scan", "pass", "plan", "ms", "beside", "ms", "ratio", "target"),
        _decays,
    ),
    Table(
        "streaming",
        "A step of a model",
        "A step of twelve layers, 512 features, beside the products of the same weights with as many vectors.",
        ("scan", "step, ms", "products, ms", "ratio", "target"),
        _steps,
    ),
    Table(
        "vision",
        "pLSTM-Vis beside a vision transformer",
        "Twelve layers of 192 features, whole and by part: a ratio is to the first program of its size and pass.",
        ("images", "pass", "program", "ms", "ratio", "target", "compile, s", "temporaries, MB"),
        _images,
    ),
)


def page(folder: Path) -> str:
    """The page of the files in a folder. Raises FileNotFoundError where there is none."""
    parts = [(table, folder / f"{table.file}.json") for table in TABLES]
    there = [(table, path) for table, path in parts if path.exists()]
    if not there:
        raise FileNotFoundError(f"{folder} has no file of a benchmark")
    return "\n".join([HEAD, *(_section(table, path) for table, path in there)])


def _section(table: Table, path: Path) -> str:
    written = json.loads(path.read_text(encoding="utf-8"))
    machine, day = written["machine"], datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    measured = f"{day}, {machine['cores']} cores of {machine['processor']}, jax {machine['jax']}, python {machine['python']}"
    lines = [table.header, tuple("---" for _ in table.header), *(table.cells(row) for row in written["rows"])]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {table.title}\n\n{table.about} {measured}.\n\n{rows}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description="A page of what the benchmarks measured.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the benchmarks wrote")
    parser.add_argument("--out", type=Path, default=OUT, help="file to write")
    options = parser.parse_args(arguments)
    try:
        text = page(options.folder)
    except FileNotFoundError as error:
        print(f"{error}: run `make bench` or `make bench-vision` first", file=sys.stderr)
        return 1
    with written_whole(options.out) as stream:
        stream.write(text.encode())
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.page")
