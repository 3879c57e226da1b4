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
from math import sqrt
from pathlib import Path

from stmlang.check import load
from stmlang.compiler import Call, Request, machine, plan, prepare
from stmlang.cost import units
from stmlang.cost.exchange import exchanges, least
from stmlang.cost.target import Target
from stmlang.ending import start
from stmlang.facts import analyse
from stmlang.graph.shapes import edge_state_shape
from stmlang.runtime.crossing import border_of
from stmlang.scan.topology import Regular
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
    """A scan of `sizes`, of which the first axis is cut, as a layer calls it in training."""

    title: str
    spec: str
    sizes: dict[str, int]
    heads: int
    key: int


STUDIES = (
    Study("a chain of 10^8 nodes", "std:plstm/chain", {"time": 10**8}, 4, 64),
    Study(
        "a P-mode layer on an image of 4,096 x 4,096 pixels in patches of 16",
        "std:plstm/image_p",
        {"rows": 256, "cols": 256},
        6,
        64,
    ),
    Study("a D-mode layer on the same", "std:plstm/image_d", {"rows": 256, "cols": 256}, 6, 64),
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


def rows(study: Study, target: Target) -> Iterator[Row]:
    """A row for each number of devices that the first axis can be cut for; none where a piece does not fit a device."""
    (axis, size), *others = study.sizes.items()
    sizes = {"heads": study.heads, "key": study.key, "value": study.key, **dict(others)}
    work = None
    for devices in DEVICES:
        if devices > size:
            return
        scan = load(study.spec, {**sizes, axis: -(-size // devices)})
        try:
            chosen = plan(prepare(scan, Call("bfloat16")), Request(target.name, tuned=False)).chosen
        except SpecError:
            continue
        runs = analyse(scan).scan
        assert isinstance(runs.topology, Regular)
        crossing = (*(other.size or 1 for other in runs.topology.axes[1:]), *edge_state_shape(runs))
        border, directions = border_of(runs, crossing, 4), len(runs.directions)
        told = exchanges(border, directions, devices, chosen.forward_seconds, target, False)[0]
        telling = 0.0 if devices == 1 else 2 * told.seconds  # a backward pass tells as much again
        total = chosen.seconds + telling
        work = chosen.seconds * devices if work is None else work
        nodes = scan.topology.axes[0].size if isinstance(scan.topology, Regular) else None
        count = (nodes or 0) * (1 if not others else others[0][1])
        way, sent, fewest = ("", 0, 0) if devices == 1 else (told.way, told.bytes, least(border, directions, devices))
        share = work / (devices * total)
        yield Row(
            devices, count, chosen.candidate.label, chosen.seconds, chosen.memory, way, sent, fewest, telling, total, share
        )


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
    found = {study.title: list(rows(study, target)) for study in STUDIES}
    print("\n\n".join(shown(study, found[study.title]) for study in STUDIES))
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
            "scans": {title: [asdict(row) for row in lines] for title, lines in found.items()},
            "river": bound,
        }
        stream.write((json.dumps(values, indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(start(main, "benchmarks.scale"))
