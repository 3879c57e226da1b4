"""List the specs of the library, with a line on each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stmlang.cli.options import add_json
from stmlang.cli.output import print_json, room, tell

if TYPE_CHECKING:
    from stmlang.syntax import tree

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
    """One spec: its name, its scan and what that runs on, both None for definitions alone, and its first comment.

    The library is right, as its tests say: it is read and not checked, which for all of it would take as long again.
    """
    from stmlang.check.search_path import STANDARD, library
    from stmlang.source.reading import read
    from stmlang.syntax import tree
    from stmlang.syntax.parser import parse

    source = read(library() / f"{name}.stm", f"{STANDARD}:{name}")
    items = parse(source).items
    scan = next((item for item in reversed(items) if isinstance(item, tree.ScanItem)), None)
    named = {item.name.text: item.value for item in items if isinstance(item, tree.TopologyItem)}
    return {
        "spec": f"{STANDARD}:{name}",
        "scan": None if scan is None else scan.name.text,
        "topology": None if scan is None else _kind(scan.topology, named),
        "what": headline(source.text),
    }


def _kind(topology: tree.TopologyExpression, named: Mapping[str, tree.TopologyExpression]) -> str:
    """The word for a topology of the library, `named` by the file itself or written where it is used."""
    from stmlang.syntax import tree

    match topology:
        case tree.TopologyName(name=name):
            return _kind(named[name.text], named)
        case tree.TopologyProduct():
            return "product"
        case _:
            return topology.kind.text


def headline(text: str) -> str:
    """The first sentence of the comment that a text begins with."""
    words: list[str] = []
    for line in text.split("\n"):
        if not line.startswith("#"):
            break
        words.append(line.removeprefix("#").strip())
    first, stop, _ = " ".join(words).partition(". ")
    return first.removesuffix(".") if stop or first else ""
