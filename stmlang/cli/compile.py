"""Compile a spec to an artifact that runs without its source, for this machine or another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Literal

from stmlang.cli.options import add_json, add_planning, add_spec, batch_size
from stmlang.cli.output import print_json, tell

NAME = "compile"
SUMMARY = "compile a spec to an artifact"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_planning(parser)
    parser.add_argument("-o", "--output", metavar="OUT.stmx", type=Path, required=True, help="the artifact to write")
    parser.add_argument(
        "--batch",
        metavar="N",
        type=batch_size,
        default="symbolic",
        help="the artifact's batch size, `symbolic` for any, `none` for no batch axis (default: symbolic)",
    )
    parser.add_argument(
        "--with-state", action="store_true", help="let the artifact take an initial state and return the final one"
    )
    parser.add_argument("--step", action="store_true", help="let the artifact hold the step of a chain or grid too")
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compile for the target's platform and write the artifact."""
    from stmlang.cli.files import require_output
    from stmlang.cli.progress import working
    from stmlang.cli.specs import compile_spec

    output: Path = arguments.output
    require_output(output, arguments.spec)
    batch: int | Literal["symbolic"] | None = arguments.batch
    with working("planning") as say_now:
        compiled = compile_spec(arguments, batch if isinstance(batch, int) else 1)
        platform = compiled.plan.target.platform
        say_now(f"lowering {compiled.plan.chosen.candidate.label} for {platform}")
        compiled.export(output, platforms=(platform,), batch=batch, with_state=arguments.with_state, step=arguments.step)
    summary: dict[str, Any] = {
        "artifact": str(output),
        "bytes": output.stat().st_size,
        "scan": compiled.scan.name,
        "target": compiled.plan.target.name,
        "platforms": [platform],
        "dtype": arguments.dtype,
        "batch": batch,
        "with_state": arguments.with_state,
        "step": arguments.step,
        "strategy": compiled.plan.strategy,
        "config": compiled.plan.config,
        "predicted_seconds": compiled.plan.chosen.seconds,
    }
    if arguments.json:
        print_json(summary)
    else:
        plan = compiled.plan.chosen.candidate.label
        tell(f"wrote {output} ({summary['bytes']:,} bytes): scan {summary['scan']} for {platform}, {arguments.dtype}, {plan}")
    return 0
