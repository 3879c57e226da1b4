"""Draw a spec: what it runs on, what its gates depend on, what a node reads, how it is evaluated."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stmlang.cli.options import add_batch, add_json, add_planning, add_spec, natural
from stmlang.cli.output import print_json, tell
from stmlang.draw.names import WHAT

if TYPE_CHECKING:
    from stmlang.facts import Facts
    from stmlang.graph.dag import DAG
    from stmlang.plan.plan import Plan

NAME = "draw"
SUMMARY = "draw topology, gates, receptive field, plan and memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument("--what", choices=WHAT, default="all", help="which picture (default: all)")
    parser.add_argument(
        "-o", dest="output", metavar="FILE", type=Path, help="a .svg, .png or .html file (default: SCAN.html, or SCAN-WHAT.svg)"
    )
    parser.add_argument(
        "--node",
        metavar="N",
        type=natural,
        help="the number of the node whose receptive field is drawn (default: in the middle)",
    )
    add_planning(parser)
    add_batch(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0. Raises SpecError, also for what cannot be drawn (STM5213)."""
    from stmlang.draw.all import pictures_of

    facts, dag, plan = _known(arguments)
    pictures = pictures_of(arguments.what, facts, dag, plan, node=arguments.node)
    name = facts.scan.name
    path: Path = arguments.output or Path(f"{name}.html" if arguments.what == "all" else f"{name}-{arguments.what}.svg")
    pictures.save(path)
    if arguments.json:
        shown = [{"title": picture.title, "caption": picture.caption} for picture in pictures.pictures]
        print_json({"file": str(path), "pictures": shown})
    else:
        tell(f"{path}: {', '.join(picture.title for picture in pictures.pictures)}")
    return 0


def _known(arguments: argparse.Namespace) -> tuple[Facts, DAG | None, Plan | None]:
    """What there is to draw of a spec; of one whose graphs come at run time no graph and no plan."""
    from stmlang.cli.output import print_diagnostics
    from stmlang.cli.specs import call_of, load_spec, request_of
    from stmlang.compiler import plan, prepare
    from stmlang.facts import analyse
    from stmlang.scan.topology import Runtime

    scan = load_spec(arguments)
    if isinstance(scan.topology, Runtime):
        return analyse(scan), None, None
    prepared = prepare(scan, call_of(arguments))
    print_diagnostics(prepared.facts.notes)
    drawn_plan = (
        plan(prepared, request_of(arguments, arguments.target)) if arguments.what in ("plan", "memory", "all") else None
    )
    return prepared.facts, prepared.dag, drawn_plan
