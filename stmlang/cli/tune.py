"""Time the best predicted candidates on this machine, and keep the result for `compile` and `explain`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from stmlang.cli.options import MODES, add_batch, add_call, add_json, add_spec, duration
from stmlang.cli.output import print_diagnostics, print_json, room, say, tell
from stmlang.ending import rescuing
from stmlang.source.wording import count

if TYPE_CHECKING:
    from stmlang.runtime.tune import Trial, Tuner

NAME = "tune"
SUMMARY = "time candidates on this machine and keep the result"
INTERNAL = 70
NOISY = 0.5
"""Of what is no surer than this share of itself no bounds are given."""


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
    """0, or 70 if the numbers of a candidate were wrong, once the right ones are kept. An interruption prints what there is."""
    from stmlang.cli.specs import call_of, prepare_scan, sized_spec
    from stmlang.compiler import device_of, machine
    from stmlang.runtime.tune import Tuner, wrong_numbers

    prepared = prepare_scan(arguments, sized_spec(arguments), call_of(arguments))
    device = device_of("auto")
    assert device is not None
    tuner = Tuner(prepared, machine("auto"), device, arguments.budget)
    start = time.perf_counter()

    def show(interrupted: bool = False) -> None:
        spent, faults = time.perf_counter() - start, wrong_numbers(tuner.faults).diagnostics
        if arguments.json:
            from stmlang.source.diagnostic import to_json

            summary = _summary(tuner, spent, interrupted) | {"diagnostics": [to_json(diagnostic) for diagnostic in faults]}
            print_json(summary, ok=not faults and not interrupted)
        else:
            _report(tuner, spent, interrupted)
            print_diagnostics(faults)

    with rescuing(lambda: show(interrupted=True)):
        _try(tuner)
    show()
    return INTERNAL if tuner.faults else 0


def _try(tuner: Tuner) -> None:
    """All trials, with a progress bar on standard error."""
    from stmlang.cli.progress import progress_bar

    waiting = [entry.candidate.label for entry in tuner.candidates]
    with progress_bar(f"trying {waiting[0]}", len(waiting)) as show:
        for _ in tuner.run():
            ahead = waiting[len(tuner.trials) :]
            show(len(tuner.trials), f"trying {ahead[0]}" if ahead else "comparing the fastest")


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
    from stmlang.cost import units
    from stmlang.plan.tuned import place_of
    from stmlang.source.columns import table

    record, predicted = tuner.record, tuner.plan.chosen.candidate.label
    base, winner = ("", "") if record is None else (f"to {record.baseline}", record.winner)
    rows = [("", "candidate", "time", base, "", "predicted", "compile", "temporary", "")]
    for line in (
        table([*rows, *(_row(trial, winner) for trial in tuner.trials)], {0, 1, 4, 8}, room(), (7, 6, 5))
        if tuner.trials
        else ()
    ):
        tell(line)
    if record is not None:
        speedup = _speedup(tuner)
        gain = f"{speedup:.2f}x as fast as" if speedup else "the fastest whose numbers are right; those are wrong of"
        tell("")
        tell(
            f"{winner}: the predicted choice" if winner == predicted else f"{winner}: {gain} the predicted choice, {predicted}"
        )
        tell(f"checked: {record.checked}")
        tell(f"kept in {place_of(tuner.key)}")
    left = len(tuner.order) - len(tuner.trials)
    if left:
        stopped = "interrupted" if interrupted else _why_left(tuner)
        say(f"{count(left, 'candidate')} not tried after {units.seconds(spent)}: {stopped}")


def _row(trial: Trial, winner: str) -> tuple[str, ...]:
    from stmlang.cost import units

    entry = trial.measured
    if entry.fault:
        return ("", entry.label, "", "", "", "", "", "", f"excluded: {entry.fault}")
    return (
        ">" if entry.label == winner else "",
        entry.label,
        units.seconds(entry.seconds),
        f"{entry.ratio:.2f}x",
        spread(entry.turns, entry.noise),
        units.seconds(trial.estimate.seconds),
        units.seconds(entry.compile_seconds),
        units.size(entry.temporary_bytes),
        "",
    )


def spread(turns: int, noise: float) -> str:
    """How sure a ratio is that was measured in some turns: `within 6 %`, twice the standard error of their median."""
    if turns < 2:
        return "timed once"
    return f"within {max(1, round(100 * noise))} %" if noise < NOISY else "noisy"


def _why_left(tuner: Tuner) -> str:
    from stmlang.cost import units
    from stmlang.runtime.tune import HOPELESS

    if len(tuner.trials) < len(tuner.candidates):
        return f"the budget of {units.seconds(tuner.budget)} is spent"
    return f"predicted to be more than {HOPELESS:.0f} times slower"
