"""Time the best predicted candidates on this machine, and keep the result for `compile` and `explain`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from stmlang.cli.options import MODES, add_batch, add_call, add_json, add_spec, duration
from stmlang.cli.output import print_diagnostics, print_json, say, tell

if TYPE_CHECKING:
    from stmlang.runtime.tune import Trial, Tuner

NAME = "tune"
SUMMARY = "time candidates on this machine and keep the result"
INTERNAL, INTERRUPTED = 70, 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument(
        "--budget",
        metavar="TIME",
        type=duration,
        default=60.0,
        help="how long to try: 30s, 5min (default: 60s); compiling counts, and what was begun is finished",
    )
    parser.add_argument("--mode", choices=MODES, default="training", help="what to time: a call, or one with its gradients")
    add_call(parser)
    add_batch(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """0, or 70 if the numbers of a candidate were wrong, once the right ones are kept; 130 if interrupted, likewise."""
    from stmlang.cli.specs import prepare_scan, sized_spec
    from stmlang.plan.target import target_of
    from stmlang.runtime.compile import device_of, machine
    from stmlang.runtime.tune import Tuner, wrong_numbers

    prepared = prepare_scan(arguments, sized_spec(arguments), arguments.mode, arguments.batch)
    device = device_of("auto")
    assert device is not None
    tuner = Tuner(prepared, target_of(machine()), device, arguments.budget)
    start = time.perf_counter()
    interrupted = _try(tuner)
    spent = time.perf_counter() - start
    faults = wrong_numbers(tuner.faults).diagnostics
    if arguments.json:
        from stmlang.source.render import to_json

        found = _summary(tuner, spent, interrupted)
        print_json({"ok": not faults, **found, "diagnostics": [to_json(diagnostic) for diagnostic in faults]})
    else:
        _report(tuner, spent, interrupted)
        print_diagnostics(faults)
    return INTERRUPTED if interrupted else INTERNAL if faults else 0


def _try(tuner: Tuner) -> bool:
    """All trials, with a progress bar on standard error; whether they were interrupted."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        waiting = [entry.candidate.label for entry in tuner.candidates]
        task = progress.add_task(f"trying {waiting[0]}", total=len(waiting))
        try:
            for _ in tuner.run():
                ahead = waiting[len(tuner.trials) :]
                progress.update(task, advance=1, description=f"trying {ahead[0]}" if ahead else "comparing the fastest")
        except KeyboardInterrupt:
            return True
    return False


def _summary(tuner: Tuner, spent: float, interrupted: bool) -> dict[str, Any]:
    """The result for programs."""
    from dataclasses import asdict

    from stmlang.plan.tuned import place_of

    record, predicted = tuner.record, tuner.plan.chosen.candidate.label
    tried = {trial.measured.label: trial for trial in tuner.trials}
    return {
        "scan": tuner.prepared.declared.name,
        "key": dict(tuner.key),
        "predicted": predicted,
        "winner": None if record is None else record.winner,
        "speedup": _speedup(tuner),
        "checked": tuner.checked,
        "tried": [{**asdict(trial.measured), "predicted_seconds": trial.estimate.seconds} for trial in tuner.trials],
        "not_tried": [label for label in tuner.order if label not in tried],
        "budget": tuner.budget,
        "spent": spent,
        "interrupted": interrupted,
        "file": None if record is None else str(place_of(tuner.key)),
    }


def _speedup(tuner: Tuner) -> float | None:
    """How much faster the winner is than the predicted choice, if both are known."""
    if tuner.record is None:
        return None
    before = tuner.record.of(tuner.plan.chosen.candidate.label)
    won = tuner.record.of(tuner.record.winner)
    return None if before is None or before.fault or won is None else before.ratio / won.ratio


def _report(tuner: Tuner, spent: float, interrupted: bool) -> None:
    """The result for people."""
    from stmlang.plan import units
    from stmlang.plan.show import columns
    from stmlang.plan.tuned import place_of

    record, predicted = tuner.record, tuner.plan.chosen.candidate.label
    base, winner = ("", "") if record is None else (f"to {record.baseline}", record.winner)
    rows = [("", "candidate", "time", base, "predicted", "compile", "temporary", "")]
    for line in columns([*rows, *(_row(trial, winner) for trial in tuner.trials)], left={0, 1, 7}) if tuner.trials else ():
        tell(line)
    if record is not None:
        speedup = _speedup(tuner)
        gain = "the predicted choice" if winner == predicted else f"predicted was {predicted}"
        tell("")
        tell(f"{winner}: {gain}" + (f", {speedup:.2f}x as fast" if speedup and winner != predicted else ""))
        tell(f"checked: {record.checked}")
        tell(f"kept in {place_of(tuner.key)}")
    left = len(tuner.order) - len(tuner.trials)
    if left:
        stopped = "interrupted" if interrupted else _why_left(tuner)
        say(f"{left} candidate{'s' * (left != 1)} not tried after {units.seconds(spent)}: {stopped}")


def _row(trial: Trial, winner: str) -> tuple[str, ...]:
    from stmlang.plan import units

    entry = trial.measured
    if entry.fault:
        return ("", entry.label, "", "", "", "", "", f"excluded: {entry.fault}")
    return (
        ">" if entry.label == winner else "",
        entry.label,
        units.seconds(entry.seconds),
        f"{entry.ratio:.2f}x +- {entry.ratio * entry.noise:.2f}",
        units.seconds(trial.estimate.seconds),
        units.seconds(entry.compile_seconds),
        units.size(entry.temporary_bytes),
        "",
    )


def _why_left(tuner: Tuner) -> str:
    from stmlang.plan import units
    from stmlang.runtime.tune import HOPELESS

    if len(tuner.trials) < len(tuner.candidates):
        return f"the budget of {units.seconds(tuner.budget)} is spent"
    return f"predicted to be more than {HOPELESS:.0f} times slower"
