"""List the specs of the library, with a line on each."""

from __future__ import annotations

import argparse
from typing import Any

from stmlang.cli.options import add_json
from stmlang.cli.output import print_json, room, tell

NAME = "list"
SUMMARY = "list the specs of the library"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0."""
    from stmlang.source.columns import table, wrapped

    entries = [_entry(name) for name in _names()]
    if arguments.json:
        print_json({"specs": entries})
        return 0
    rows = [("spec", "runs on", "what it is"), *((entry["spec"], entry["topology"] or "", entry["what"]) for entry in entries)]
    for line in table(rows, range(3), room()):
        tell(line)
    tell("")
    for line in wrapped(f"`stmlang show {entries[0]['spec']}` prints one, `stmlang explain` says what is known of it", room()):
        tell(line)
    return 0


def _names() -> list[str]:
    from stmlang.check.search_path import library_specs

    return library_specs()


def _entry(name: str) -> dict[str, Any]:
    """One spec: its name, its scan and what that runs on, both None for definitions alone, and its first comment."""
    from stmlang.check import examine, open_spec
    from stmlang.check.search_path import STANDARD
    from stmlang.scan.topology import kind_of

    spec = open_spec(f"{STANDARD}:{name}")
    scan = examine(spec, {}).scan
    return {
        "spec": f"{STANDARD}:{name}",
        "scan": None if scan is None else scan.name,
        "topology": None if scan is None else kind_of(scan.topology),
        "what": headline(spec.source.text),
    }


def headline(text: str) -> str:
    """The first sentence of the comment that a text begins with."""
    words: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    first, stop, _ = " ".join(words).partition(". ")
    return first.removesuffix(".") if stop or first else ""
