"""Compile a spec to an artifact that runs without its source, for this machine or others."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stmlang.cli.options import TARGETS, add_json, add_planning, add_spec, batch_size, bucket_sizes
from stmlang.cli.output import print_json, tell
from stmlang.source.diagnostic import Diagnostic, SpecError
from stmlang.source.wording import listing

if TYPE_CHECKING:
    from stmlang.plan.plan import Plan
    from stmlang.runtime.artifact import Part
    from stmlang.scan.scan import Scan

NAME = "compile"
SUMMARY = "compile a spec to an artifact"

Found = tuple["Part", "Plan"]
"""A part of the artifact, and the plan for it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_planning(parser, target=False)
    parser.add_argument("-o", "--output", metavar="OUT.stmx", type=Path, required=True, help="the artifact to write")
    parser.add_argument(
        "--target",
        dest="targets",
        choices=TARGETS,
        action="append",
        help="a machine to plan for (default: auto); may be given several times, once for each platform",
    )
    parser.add_argument(
        "--batch",
        metavar="N",
        dest="batches",
        type=batch_size,
        action="append",
        help="a batch size of the artifact, `symbolic` for any, `none` for no batch axis (default: symbolic); may be given "
        "several times",
    )
    parser.add_argument(
        "--bucket",
        metavar="graphs=G,nodes=N,edges=E",
        dest="buckets",
        type=bucket_sizes,
        action="append",
        help="room for batches of graphs that come at run time, and `largest=`, the nodes of the largest of them, `levels=`, "
        "`line_edges=`; may be given several times",
    )
    parser.add_argument(
        "--with-state", action="store_true", help="let the artifact take an initial state and return the final one"
    )
    parser.add_argument("--step", action="store_true", help="let the artifact hold the step of a chain or grid too")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compile for the platforms of the targets and write the artifact."""
    from stmlang.cli.files import require_output
    from stmlang.cli.progress import working
    from stmlang.cli.specs import sized_spec
    from stmlang.scan.topology import Runtime

    output: Path = arguments.output
    require_output(output, arguments.spec)
    scan = sized_spec(arguments)
    at_run_time = isinstance(scan.topology, Runtime)
    _require_fitting(arguments, scan, at_run_time)
    with working("planning") as say_now:
        from stmlang.runtime.artifact import write_scans
        from stmlang.runtime.graphs import write_graphs

        found = list((_graph_parts if at_run_time else _parts)(arguments, scan, say_now))
        (write_graphs if at_run_time else write_scans)(output, [part for part, _ in found])
    labels, parts = [plan.chosen.candidate.label for _, plan in found], [_about(plan, part) for part, plan in found]
    summary: dict[str, Any] = {
        "artifact": str(output),
        "bytes": output.stat().st_size,
        "scan": scan.name,
        "dtype": arguments.dtype,
        "with_state": arguments.with_state,
        "step": arguments.step,
        **(parts[0] if len(parts) == 1 else {}),
        "parts": parts,
    }
    if arguments.json:
        print_json(summary)
        return 0
    wrote = f"wrote {output} ({summary['bytes']:,} bytes): scan {summary['scan']} for"
    for number, (part, label) in enumerate(zip(parts, labels, strict=True)):
        for_what = [part["platforms"][0], *_of_part(part, alone=len(parts) == 1), arguments.dtype, label]
        tell(f"{wrote if number == 0 else '  and for'} {', '.join(for_what)}")
    return 0


def _of_part(part: dict[str, Any], *, alone: bool) -> list[str]:
    """What a part is for besides its platform, where that has to be said."""
    if part["bucket"] is not None:
        return [" ".join(f"{name}={part['bucket'][name]}" for name in ("graphs", "nodes", "edges"))]
    if alone:
        return []
    return [{None: "no batch axis", "symbolic": "any batch"}.get(part["batch"], f"batches of {part['batch']}")]


def _require_fitting(arguments: argparse.Namespace, scan: Scan, at_run_time: bool) -> None:
    """Raises SpecError (STM3301, STM5010) for options that a scan on its kind of graph does not take."""
    if at_run_time and not arguments.buckets:
        message = f"the graphs of scan `{scan.name}` come at run time, so an artifact needs to know how many it has room for"
        help = "say it: `--bucket graphs=64,nodes=2048,edges=4096`"
        raise SpecError([Diagnostic("STM3301", message, None, help=help)])
    given = [name for name in _REFUSED[at_run_time] if getattr(arguments, name)]
    if given:
        names = listing([_REFUSED[at_run_time][name] for name in given], "and")
        why = "a scan on graphs takes a batch of them already, and has no steps" if at_run_time else "its graph is known"
        raise SpecError(
            [Diagnostic("STM5010", f"{names} cannot be given for scan `{scan.name}`: {why}", None, help="leave it out")]
        )


_REFUSED = {
    True: {"batches": "`--batch`", "with_state": "`--with-state`", "step": "`--step`"},
    False: {"buckets": "`--bucket`"},
}
"""Options that go with graphs at run time (False) and with others (True) only."""


def _parts(arguments: argparse.Namespace, scan: Scan, say: Callable[[str], object]) -> Iterator[Found]:
    """A program for each target and batch."""
    from stmlang.cli.specs import compile_spec

    for target in arguments.targets or ["auto"]:
        for batch in cast(list[Any], arguments.batches or ["symbolic"]):
            compiled = compile_spec(arguments, scan, target, batch if isinstance(batch, int) else 1)
            platform = compiled.plan.target.platform
            say(f"lowering {compiled.plan.chosen.candidate.label} for {platform}")
            part = compiled.part((platform,), batch, arguments.with_state, arguments.step)
            yield part, compiled.plan


def _graph_parts(arguments: argparse.Namespace, scan: Scan, say: Callable[[str], object]) -> Iterator[Found]:
    """A program for each target and bucket."""
    from stmlang.cli.specs import graph_spec

    for target in arguments.targets or ["auto"]:
        graphs = graph_spec(arguments, scan, target)
        for sizes in arguments.buckets:
            say(f"lowering for a bucket of {sizes.get('graphs', 0):,} graphs")
            part = graphs.part(sizes)
            yield part, next(reversed(graphs.compiled.values())).plan


def _about(plan: Plan, part: Part) -> dict[str, Any]:
    described = cast(dict[str, Any], part.described)
    return {
        "target": plan.target.name,
        "platforms": described["platforms"],
        "batch": described["batch"],
        "bucket": described.get("bucket"),
        "strategy": plan.strategy,
        "config": plan.config,
        "predicted_seconds": plan.chosen.seconds,
    }
