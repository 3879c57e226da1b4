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
    from stmlang.source.wording import count, listing

    batch, members = description["batch"], sorted(description["members"].items(), key=lambda entry: -entry[1])
    rows: list[Row] = [
        ("platforms", [listing(description["platforms"], "and")]),
        ("batch", ["any size" if batch == "symbolic" else "no batch axis" if batch is None else str(batch)]),
        ("gradients", ["can be differentiated once" if description["differentiable"] else "compiled for inference only"]),
        *(_of_scan(description) if description["kind"] == "scan" else _of_model(description)),
        ("versions", [", ".join(f"{name} {version}" for name, version in description["versions"].items())]),
        ("holds", [f"{name} ({count(size, 'byte')})" for name, size in members]),
        ("here", ["it runs" if description["runs_here"] else f"it does not run: {description['why_not']}"]),
    ]
    tell(
        f"{description['file']}: a {description['kind']}, {count(description['bytes'], 'byte')}, format {description['format']}"
    )
    for label, words in rows:
        together = ", ".join(words)
        fits = len(together) + 14 <= (room() or len(together) + 14)
        for number, entry in enumerate([together] if words and fits else words):
            for line in wrapped(f"  {'' if number else label:<12}{entry}", room()):
                tell(line)


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
