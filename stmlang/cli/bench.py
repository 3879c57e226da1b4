"""Measure a scan: time, compile time and memory, beside softmax attention of the same size."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Literal

from stmlang.cli.options import MODES, add_batch, add_call, add_choice, add_json, add_spec, positive
from stmlang.cli.output import print_json, room, say, tell
from stmlang.ending import rescuing
from stmlang.source.wording import count

if TYPE_CHECKING:
    from stmlang.runtime.bench import Bench, Row

NAME = "bench"
SUMMARY = "measure time, compile time and memory"
PASSES = {"inference": "forward", "training": "forward + backward"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument("--mode", choices=(*MODES, "both"), default="both", help="a call, one with its gradients, or both")
    add_call(parser)
    add_choice(parser)
    add_batch(parser)
    parser.add_argument("--repeats", metavar="N", type=positive, default=9, help="how often each is timed (default: 9)")
    parser.add_argument(
        "--all", dest="every", action="store_true", help="measure every candidate that fits, not just the choice"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0. An interruption prints what was measured."""
    from stmlang.cli.specs import call_of, prepare_scan, request_of, sized_spec
    from stmlang.compiler import plan
    from stmlang.runtime.bench import Bench
    from stmlang.runtime.tune import require_nodes

    scan = sized_spec(arguments)
    benches: list[Bench] = []
    modes: tuple[Literal["inference", "training"], ...] = ("inference", "training")
    for mode in modes:
        if arguments.mode in (mode, "both"):
            prepared = prepare_scan(arguments, scan, call_of(arguments, mode=mode))
            require_nodes(prepared)
            benches.append(Bench(prepared, plan(prepared, request_of(arguments)), arguments.repeats))

    def show(interrupted: bool = False) -> None:
        done = [bench for bench in benches if bench.done]
        if arguments.json:
            print_json({"passes": [_entry(bench) for bench in done], "interrupted": interrupted}, ok=not interrupted)
        else:
            _report(done)

    with rescuing(lambda: show(interrupted=True)):
        _measure(benches, arguments.every)
    show()
    return 0


def _measure(benches: list[Bench], every: bool) -> None:
    """Everything, with a progress bar on standard error."""
    from stmlang.cli.progress import progress_bar

    before = 0
    with progress_bar("measuring", sum(len(bench.candidates(every)) for bench in benches)) as show:
        for bench in benches:
            ahead = [*(estimate.candidate.label for estimate in bench.candidates(every)), "done"]
            show(before, f"measuring {ahead[0]}, {PASSES[bench.mode]}")
            for _ in bench.rows(every):
                show(before + len(bench.done), f"measuring {ahead[len(bench.done)]}, {PASSES[bench.mode]}")
            before += len(bench.done)


def _entry(bench: Bench) -> dict[str, Any]:
    """One pass for programs."""
    attention = bench.attention
    return {
        "scan": bench.prepared.declared.name,
        "pass": PASSES[bench.mode],
        "mode": bench.mode,
        "tuned": bench.plan.tuning.used,
        "regret": bench.regret(),
        "softmax": {
            "seconds": None if attention.timing is None else attention.timing.median,
            "compile_seconds": None if attention.program is None else attention.program.compile_seconds,
            "temporary_bytes": None if attention.program is None else attention.program.temporary_bytes,
            "note": attention.note,
        },
        "candidates": [
            {
                "label": row.estimate.candidate.label,
                "chosen": row.chosen,
                "seconds": row.seconds,
                "ratio": row.ratio,
                "predicted_seconds": row.estimate.seconds,
                "trace_seconds": row.trace_seconds,
                "xla_seconds": row.xla_seconds,
                "temporary_bytes": row.temporary_bytes,
                "predicted_bytes": row.estimate.memory,
            }
            for row in bench.done
        ],
        "left_out": [entry.estimate.candidate.label for entry in bench.plan.ranked if not entry.fits],
    }


def _report(benches: list[Bench]) -> None:
    """A table for each pass."""
    from stmlang.source.columns import table

    for number, bench in enumerate(benches):
        origin = (
            "the strategy asked for"
            if bench.plan.forced
            else "the tuned choice"
            if bench.plan.tuning.used
            else "the predicted choice"
        )
        if number:
            tell("")
        tell(f"{bench.prepared.declared.name}, {PASSES[bench.mode]} (first {origin})")
        rows = [("", "candidate", "time", "to softmax", "predicted", "trace", "XLA", "temporary")]
        rows += [_attention_row(bench), *(_row(row) for row in bench.done)]
        for line in table([(*row, "") for row in rows], {0, 1}, room(), (7, 6, 5, 4)):
            tell(line)
        if bench.attention.note:
            tell(f"softmax attention: {bench.attention.note}")
        regret = bench.regret()
        if regret is not None:
            fastest = min(bench.done, key=lambda row: row.pace).estimate.candidate.label
            tell(f"regret {regret:.2f}: the choice's time to that of the fastest, {fastest}")
        left = [entry for entry in bench.plan.ranked if not entry.fits]
        if left:
            say(f"{count(len(left), 'candidate')} left out for want of memory: the limit is too low")


def _attention_row(bench: Bench) -> tuple[str, ...]:
    from stmlang.cost import units

    program, timing = bench.attention.program, bench.attention.timing
    if program is None or timing is None:
        return ("", "softmax attention", "left out", "", "", "", "", "")
    made = (units.seconds(program.trace_seconds), units.seconds(program.xla_seconds), units.size(program.temporary_bytes))
    return ("", "softmax attention", units.seconds(timing.median), "1.00x", "", *made)


def _row(row: Row) -> tuple[str, ...]:
    from stmlang.cost import units

    return (
        ">" if row.chosen else "",
        row.estimate.candidate.label,
        units.seconds(row.seconds),
        "" if row.ratio is None else f"{row.ratio:.2f}x",
        units.seconds(row.estimate.seconds),
        units.seconds(row.trace_seconds),
        units.seconds(row.xla_seconds),
        units.size(row.temporary_bytes),
    )
