"""Say what is in an artifact: which scan, for which machines, what it takes and returns, how it is evaluated."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

from stmlang.cli.options import add_json
from stmlang.cli.output import print_json, room, tell
from stmlang.source.diagnostic import Diagnostic, SpecError

NAME = "inspect"
SUMMARY = "say what is in an artifact"

KINDS = {"scan": "scan", "scans": "scan in several programs", "graphs": "scan of graphs", "model": "model"}
Row = tuple[str, list[str]]
"""A label, and what is said behind it: on one line if it fits, else a line for each entry."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artifact", metavar="OP.stmx", type=Path, help="a file that `stmlang compile` or `op.export` wrote")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, also where the artifact cannot run here, which is said. Raises SpecError for a file that is none, or is damaged."""
    from stmlang.runtime.describe import described

    if arguments.artifact.suffix == ".stm" and arguments.artifact.is_file():
        help = f"`stmlang explain {arguments.artifact}` says what is known of a spec"
        raise SpecError([Diagnostic("STM5303", f"`{arguments.artifact}` is a spec, not an artifact", None, help=help)])
    description = described(arguments.artifact)
    if arguments.json:
        print_json(description)
    else:
        _report(description)
    return 0


def _report(description: dict[str, Any]) -> None:
    from stmlang.source.columns import wrapped
    from stmlang.source.wording import count

    members = sorted(description["members"].items(), key=lambda entry: -entry[1])
    parts = cast(list[dict[str, Any]], description.get("parts", [description]))
    rows: list[Row] = [
        *(row for number, part in enumerate(parts) for row in _of_program(part, description["kind"], number, len(parts))),
        ("versions", [", ".join(f"{name} {version}" for name, version in description["versions"].items())]),
        ("holds", [f"{name} ({count(size, 'byte')})" for name, size in members]),
        ("here", ["it runs" if description["runs_here"] else f"it does not run: {description['why_not']}"]),
    ]
    kind, size = KINDS[description["kind"]], count(description["bytes"], "byte")
    tell(f"{description['file']}: a {kind}, {size}, format {description['format']}")
    for label, words in rows:
        together = ", ".join(words)
        fits = len(together) + 14 <= (room() or len(together) + 14)
        for number, entry in enumerate([together] if words and fits else words):
            for line in wrapped(f"  {'' if number else label:<12}{entry}", room()):
                tell(line)


def _of_program(part: dict[str, Any], kind: str, number: int, count: int) -> list[Row]:
    """Of a program of an artifact, and what all programs of a scan have in common with the first."""
    from stmlang.source.wording import listing

    batch, bucket = part["batch"], part.get("bucket")
    rows: list[Row] = [
        ("platforms", [listing(part["platforms"], "and")]),
        ("batch", ["any size" if batch == "symbolic" else "no batch axis" if batch is None else str(batch)]),
        ("gradients", ["can be differentiated once" if part["differentiable"] else "compiled for inference only"]),
    ]
    if bucket is not None:
        rows[1] = ("bucket", [f"{bucket[name]:,} {name}" for name in ("graphs", "nodes", "edges")])
    rows += _of_model(part) if kind == "model" else _of_scan(part)
    if number == 0 and count == 1:
        return rows
    heading: Row = ("", [f"program {number + 1} of {count}"])
    return [
        heading,
        *(rows if number == 0 else [row for row in rows if row[0] in ("platforms", "batch", "bucket", "strategy")]),
    ]


def _of_scan(description: dict[str, Any]) -> list[Row]:
    signature = description["signature"]
    shapes = {name: [f"{leaf} {_shape(shape)}" for leaf, shape in signature[name].items()] for name in ("inputs", "gates")}
    return [
        ("scan", [f"{description['scan']}, of `{description['source']}`"]),
        ("data type", [signature["dtype"]]),
        ("states", ["takes an initial state and returns the final one" if description["with_state"] else "starts from zero"]),
        ("step", ["goes step by step too"] if description["step"] else []),
        ("strategy", [_strategy(description)]),
        ("takes", shapes["inputs"]),
        ("gates", shapes["gates"]),
        ("returns", [_shape(signature["result"])]),
    ]


def _of_model(description: dict[str, Any]) -> list[Row]:
    return [
        ("model", [f"{description['model']}, {description['parameters']:,} parameters"]),
        ("scans", [f"{entry['scan']} by {entry['strategy']}" for entry in description["scans"]]),
        ("graphs", [f"up to {size:,} {name}" for name, size in description["graphs"].items()]),
        ("is", [description["signature"]]),
    ]


def _strategy(description: dict[str, Any]) -> str:
    settings = cast(dict[str, Any], description["config"])
    words = " ".join([str(description["strategy"]), *(f"{name}={value}" for name, value in settings.items())])
    return f"{words}, planned for {description['target']}"


def _shape(sizes: list[int]) -> str:
    return f"({', '.join(map(str, sizes))})"
