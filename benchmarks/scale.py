"""On paper: what scans too large for one device would take on 8 to 4,096 of them, and where that stops to help.

    python -m benchmarks.scale                 print the tables, and write build/bench/scale.json

Nothing is run. A piece is planned for the target as any scan is, and what devices tell each other costs what
`stmlang.cost.exchange` says, which is also what `ShardedScan.explain` shows. Rates and links of GPUs are those of data sheets,
and the costs of strategies there are not measured, so a row says where a design stops to scale and not how long it takes.

A river is not cut by the compiler. Its row is a bound: levels one after the other, as many as a drainage tree of that size has
if levels grow with the square root of nodes as from the Rhine, and states once through the memory of all devices.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import isqrt, prod, sqrt
from pathlib import Path

from stmlang.check import load
from stmlang.compiler import Call, Request, machine, plan, prepare
from stmlang.cost import units
from stmlang.cost.exchange import exchanges
from stmlang.cost.target import Target
from stmlang.ending import start
from stmlang.facts import analyse
from stmlang.runtime.crossing import border_of
from stmlang.runtime.cut import Cut
from stmlang.source.columns import table
from stmlang.source.diagnostic import SpecError
from stmlang.source.writing import written_whole

DEVICES = (1, 8, 64, 512, 4096)
OUT = Path("build/bench/scale.json")
RHINE = 349_847, 1_675
"""Nodes and levels of a drainage tree that was measured."""
RIVER = 10**8
HEADER = (
    "devices",
    "nodes each",
    "piece",
    "of it alone",
    "memory",
    "states are told by",
    "sent in all",
    "least",
    "to tell",
    "total",
    "share",
)


@dataclass(frozen=True)
class Study:
    """A scan of `sizes`, cut along the first of its axes, so many, as a layer calls it in training."""

    title: str
    spec: str
    axes: int
    sizes: dict[str, int]
    heads: int
    key: int


PATCHES = {"rows": 256, "cols": 256}
"""Of an image of 4,096 x 4,096 pixels in patches of 16."""
STUDIES = (
    Study("a chain of 10^8 nodes", "std:plstm/chain", 1, {"time": 10**8}, 4, 64),
    Study("a P-mode layer on an image of 256 x 256 patches, by rows", "std:plstm/image_p", 1, PATCHES, 6, 64),
    Study("the same by rows and columns", "std:plstm/image_p", 2, PATCHES, 6, 64),
    Study("a D-mode layer on the same image, by rows", "std:plstm/image_d", 1, PATCHES, 6, 64),
    Study("the same by rows and columns", "std:plstm/image_d", 2, PATCHES, 6, 64),
)


@dataclass(frozen=True)
class Row:
    """A number of devices: nodes of a piece, how it is evaluated, its seconds and bytes of memory, how states are told, bytes
    that all devices together are sent, the fewest possible, the seconds of that and of all, and how much of them is work."""

    devices: int
    nodes: int
    piece: str
    seconds: float
    memory: int
    way: str
    sent: int
    fewest: int
    telling: float
    total: float
    share: float


def mesh_of(devices: int, axes: int) -> tuple[int, ...]:
    """So many devices along one axis, or along two that are as alike as can be."""
    first = max(size for size in range(1, isqrt(devices) + 1) if devices % size == 0)
    return (devices,) if axes == 1 else (first, devices // first)


def rows(study: Study, target: Target) -> Iterator[Row]:
    """A row for each number of devices that the axes can be cut for; none where a piece does not fit a device."""
    names = list(study.sizes)[: study.axes]
    work = None
    for devices in DEVICES:
        mesh = mesh_of(devices, study.axes)
        if any(pieces > study.sizes[name] for name, pieces in zip(names, mesh, strict=True)):
            return
        cuts = [Cut(name, axis, study.sizes[name], mesh[axis]) for axis, name in enumerate(names)]
        piece = {**study.sizes, **{cut.name: cut.longest for cut in cuts}}
        state = {"heads": study.heads, "key": study.key, "value": study.key}
        try:
            chosen = plan(
                prepare(load(study.spec, {**state, **piece}), Call("bfloat16")), Request(target.name, tuned=False)
            ).chosen
        except SpecError:
            continue
        runs = analyse(load(study.spec, {**state, **study.sizes})).scan
        border, directions = border_of(runs, cuts, 4), len(runs.directions)
        told = exchanges(border, directions, chosen.forward_seconds, target, False)[0]
        telling = 0.0 if devices == 1 else 2 * told.seconds  # a backward pass tells as much again
        total = chosen.seconds + telling
        work = chosen.seconds * devices if work is None else work
        way, sent, fewest = ("", 0, 0) if devices == 1 else (told.way, told.bytes, border.least * directions)
        share = work / (devices * total)
        label, seconds, memory = chosen.candidate.label, chosen.seconds, chosen.memory
        yield Row(devices, prod(piece.values()), label, seconds, memory, way, sent, fewest, telling, total, share)


def river(target: Target) -> Iterator[tuple[int, float, float]]:
    """For each number of devices the seconds of levels, and those of states through memory."""
    levels = RHINE[1] * sqrt(RIVER / RHINE[0])
    for devices in DEVICES:
        yield devices, 2 * levels * target.step_overhead, 6 * RIVER * 4 * 8 * 8 / devices / target.bandwidth


def shown(study: Study, lines: list[Row]) -> str:
    cells = [
        (
            str(row.devices),
            f"{row.nodes:,}",
            row.piece,
            units.seconds(row.seconds),
            units.size(row.memory),
            row.way,
            units.size(row.sent),
            units.size(row.fewest),
            units.seconds(row.telling),
            units.seconds(row.total),
            f"{row.share:.0%}",
        )
        for row in lines
    ]
    return "\n".join([f"{study.title}, forward and backward, bfloat16", *table([HEADER, *cells], {2, 5})])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--target", default="h200", choices=("a100", "h100", "h200"), help="the machine (default: h200)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where the numbers are written (default: {OUT})")
    options = parser.parse_args(arguments)
    target = machine(options.target)
    found = [(study, list(rows(study, target))) for study in STUDIES]
    print("\n\n".join(shown(study, lines) for study, lines in found))
    print(f"\na river of {RIVER:,} places, heads 1, key 8: levels one after the other, and states through memory")
    bound = list(river(target))
    print(
        "\n".join(
            table(
                [("devices", "levels", "memory"), *((str(n), units.seconds(a), units.seconds(b)) for n, a, b in bound)], set()
            )
        )
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(options.out) as stream:
        values = {
            "target": target.name,
            "scans": [
                {"title": study.title, "spec": study.spec, "rows": [asdict(row) for row in lines]} for study, lines in found
            ],
            "river": bound,
        }
        stream.write((json.dumps(values, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(start(main, "benchmarks.scale"))
