"""The bytes that devices are sent for a scan that they share, counted in compiled programs, beside the least possible.

    python -m benchmarks.exchange                 every scan, on 2, 4 and 8 devices; a mesh of two axes has 2x2, 2x4 and 4x2
    python -m benchmarks.exchange --devices 3     on another number of them

Devices are made of one CPU. XLA compiles for so many, and its text names every collective: all that is sent is counted there,
those of a loop as often as it turns, and nothing is run. Pieces are evaluated node by node, which compiles fastest: what is
sent does not depend on it. The least possible is that each piece is sent the states that enter it across cuts
(`stmlang.cost.exchange`); of a gradient the same the other way besides. Where graphs are divided it is nothing, and of a
gradient nothing but what all graphs share, which a call does not have.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from stmlang.cost import units
from stmlang.ending import start
from stmlang.source.columns import table
from stmlang.xla_flags import hasten

DEVICES = (2, 4, 8)
MOST = 8
HEADER = ("devices", "way", "passes", "forward", "predicted", "least", "forward and backward", "least of both")
WIDTHS = {"f64": 8, "s64": 8, "u64": 8, "f32": 4, "s32": 4, "u32": 4, "bf16": 2, "f16": 2, "s8": 1, "u8": 1, "pred": 1}
INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = (?P<type>\(.*?\)|\S+) (?P<name>[\w-]+)\((?P<rest>.*)$")
ARRAY = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")
COLLECTIVES = ("collective-permute", "all-gather", "all-reduce", "all-to-all", "reduce-scatter")


@dataclass(frozen=True)
class Study:
    """A scan of `sizes` on each device, cut along `axes`; where that is `graphs`, graphs that are divided."""

    title: str
    spec: str
    axes: tuple[str, ...]
    sizes: dict[str, int]


STUDIES = (
    Study("a chain of numbers", "std:plstm/chain", ("time",), {"time": 4, "heads": 4, "key": 16, "value": 16}),
    Study("a chain of the delta rule", "std:chain/deltanet", ("time",), {"time": 4, "heads": 4, "key": 16, "value": 16}),
    Study(
        "an image by rows, P-mode", "std:plstm/image_p", ("rows",), {"rows": 2, "cols": 8, "heads": 4, "key": 16, "value": 16}
    ),
    Study(
        "an image by rows and columns, P-mode",
        "std:plstm/image_p",
        ("rows", "cols"),
        {"rows": 2, "cols": 2, "heads": 4, "key": 16, "value": 16},
    ),
    Study(
        "an image by rows and columns, D-mode",
        "std:plstm/image_d",
        ("rows", "cols"),
        {"rows": 2, "cols": 2, "heads": 4, "key": 16, "value": 16},
    ),
    Study("graphs, divided", "std:plstm/graph_p", ("graphs",), {"heads": 4, "key": 16, "value": 16}),
)


@dataclass(frozen=True)
class Row:
    """What is sent one way between devices, so many along each axis of their mesh: bytes between all of them, forward and with
    a gradient, as counted, what `explain` says of the forward pass, and the least possible."""

    devices: tuple[int, ...]
    way: str
    passes: int
    forward: int
    predicted: int
    fewest: int
    both: int
    fewest_both: int


def sent(text: str, devices: int) -> int:
    """The bytes that all devices together are sent in a compiled program, of which every collective is among all of them.

    Of an array that is gathered, scattered or exchanged each device is sent all but its own part; a sum is scattered and
    gathered. Raises ValueError for a loop of a collective whose number of turns the text does not say.
    """
    lines: dict[str, list[str]] = {}
    entry, current = "", list[str]()
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.-]+) \(.*\{\s*$", line)
        if head:
            current = lines.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        else:
            current.append(line)

    def of(computation: str) -> int:
        return sum(_of_line(line, devices, of) for line in lines[computation])

    return of(entry)


def _of_line(line: str, devices: int, of: Any) -> int:
    found = INSTRUCTION.match(line)
    if found is None:
        return 0
    name, rest = found["name"], found["rest"]
    if name == "while":
        body = of(re.findall(r"body=%?([\w.-]+)", rest)[0])
        turns = re.search(r'"known_trip_count":\{"n":"(\d+)"', rest)
        if body and turns is None:
            raise ValueError(f"a loop sends, and does not say how often it turns: {line.strip()[:200]}")
        return body * int(turns[1]) if turns else 0
    called = re.findall(r"(?:calls|to_apply|true_computation|false_computation)=%?([\w.-]+)", rest)
    branches = re.search(r"branch_computations=\{([^}]*)\}", rest)
    called += [name.strip().lstrip("%") for name in branches[1].split(",")] if branches else []
    kind = name.removesuffix("-start")
    if kind not in COLLECTIVES:
        return max((of(each) for each in called), default=0)
    shapes = cast("list[tuple[str, str]]", ARRAY.findall(found["type"]))
    arrays = [WIDTHS[kind] * prod(map(int, filter(None, sizes.split(",")))) for kind, sizes in shapes]
    size = arrays[-1] if name.endswith("-start") else sum(arrays)
    if kind == "collective-permute":
        pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", rest)
        return size * (pairs[1].count("{") if pairs else 0)
    return size * (devices - 1) * {"all-reduce": 2, "reduce-scatter": devices}.get(kind, 1)


def meshes(devices: int, axes: int) -> list[tuple[int, ...]]:
    """Those of so many devices whose axes, so many, have more than one each."""
    if axes == 1:
        return [(devices,)]
    splits = [(first, devices // first) for first in range(2, devices) if devices % first == 0]
    return [(first, *rest) for first, others in splits for rest in meshes(others, axes - 1)]


def rows(study: Study, counts: tuple[int, ...]) -> Iterator[Row]:
    """A row for each mesh of so many devices and each way."""
    import jax
    from jax.sharding import AxisType

    import stmlang
    from stmlang.runtime.sharded import ShardedScan

    for shape in (shape for devices in counts for shape in meshes(devices, len(study.axes))):
        devices, names = prod(shape), ("x", "y", "z")[: len(shape)]
        types = (AxisType.Auto,) * len(shape)
        mesh = jax.make_mesh(shape, names, axis_types=types, devices=jax.devices()[:devices])
        along = dict(zip(study.axes, shape, strict=True))
        sizes = {name: size * along.get(name, 1) for name, size in study.sizes.items()}
        shard = dict(zip(study.axes, names, strict=True))
        options: dict[str, Any] = {"target": "cpu", "strategy": "recurrent", "mesh": mesh, "shard": shard, **sizes}
        op: Any = stmlang.compile(study.spec, **options)
        if study.axes == ("graphs",):
            forward, both = counted(op.at(_graphs(devices)), devices)
            yield Row(shape, "none", 0, forward, 0, 0, both, 0)
            continue
        split = op.split
        fewest = split.border.least * len(split.scan.directions)
        for way in sorted(split.ranked, key=lambda way: way.way):
            forward, both = counted(ShardedScan(op.pieces, replace(split, exchange=way)), devices)
            yield Row(shape, way.way, way.passes, forward, way.bytes, fewest, both, 2 * fewest)


def counted(op: Any, devices: int) -> tuple[int, int]:
    """The bytes of a forward pass, and with the gradient of a sum of squares in everything that lies along the mesh."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding

    if hasattr(op, "along"):
        lies = op.along.lies
    else:
        lies = NamedSharding(op.split.tiling.mesh, op.split.tiling.spec(op.split.node_axes))
    signature = op.signature

    def struct(shape: tuple[int, ...]) -> Any:
        return jax.ShapeDtypeStruct(shape, signature.dtype, sharding=lies)

    inputs = [struct(shape) for shape in signature.inputs.values()]
    constants = {leaf.name for leaf in op.scan.leaves if leaf.kind == "param"}
    gates = {name: struct(shape) for name, shape in signature.gates.items() if name not in constants}
    whole = {name: jnp.ones(signature.gates[name], signature.dtype) for name in constants}

    def forward(inputs: Any, gates: Any) -> Any:
        return op(*inputs, {**gates, **whole})

    def both(inputs: Any, gates: Any) -> Any:
        h, back = cast("tuple[Any, Any]", jax.vjp(forward, inputs, gates))
        return h, back(2 * h)

    texts = [str(jax.jit(function).lower(inputs, gates).compile().as_text()) for function in (forward, both)]
    return sent(texts[0], devices), sent(texts[1], devices)


def _graphs(devices: int) -> Any:
    """Paths of a few lengths, three for every two devices."""
    from stmlang.graph import from_edges

    return [from_edges([(node, node + 1) for node in range(3 + k % 4)]).dag for k in range(3 * devices // 2)]


def shown(study: Study, found: list[Row]) -> str:
    cells = [
        (
            "x".join(map(str, row.devices)),
            row.way,
            str(row.passes),
            units.size(row.forward),
            units.size(row.predicted),
            units.size(row.fewest),
            units.size(row.both),
            units.size(row.fewest_both),
        )
        for row in found
    ]
    sizes = ", ".join(f"{name} {size}" for name, size in study.sizes.items())
    return "\n".join([f"{study.title} ({study.spec}, on each device {sizes}, float32)", *table([HEADER, *cells], {1})])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exchange", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--devices", type=int, action="append", choices=range(2, MOST + 1), help="how many (default: 2, 4, 8)")
    parser.add_argument("--only", default="", help="the scans whose titles contain a word")
    options = parser.parse_args(arguments)
    os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(MOST))
    hasten()
    for study in STUDIES:
        if options.only in study.title:
            print(shown(study, list(rows(study, tuple(options.devices or DEVICES)))), end="\n\n", flush=True)
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.exchange")
