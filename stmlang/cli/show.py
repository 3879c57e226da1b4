"""Print the text of a spec, such as one of the library."""

from __future__ import annotations

import argparse

from stmlang.cli.options import add_json
from stmlang.cli.output import print_json, write_text

NAME = "show"
SUMMARY = "print the text of a spec"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "spec", metavar="SPEC", help="`std:NAME` for a spec of the library, as `stmlang list` names them, or a path"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0. Raises SpecError where there is no such text."""
    from stmlang.cli.specs import open_named

    source = open_named(arguments.spec).source
    if arguments.json:
        print_json({"spec": source.name, "text": source.text})
    else:
        write_text(source.text)
    return 0
