"""Look for wrong numbers: evaluate random examples in every way there is and compare, or replay one that was found."""

from __future__ import annotations

import argparse
import math
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stmlang.cli.options import add_json, add_settings, natural, positive
from stmlang.cli.output import print_json, print_usage, say, tell
from stmlang.ending import rescuing
from stmlang.source.wording import count

if TYPE_CHECKING:
    from stmlang.fuzz.fuzzer import Fuzzer, Kept, Source, Task
    from stmlang.fuzz.jobs import Outcome
    from stmlang.fuzz.saved import Saved
    from stmlang.fuzz.trial import Finding

NAME = "fuzz"
SUMMARY = "look for wrong numbers, or replay a finding"
USAGE = 2
EXAMPLES = 200
LIMIT = 120.0
"""Seconds of processor time that one example may take before it counts as hung."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "spec",
        metavar="SPEC",
        nargs="?",
        help="a path, `std:NAME` or `-`: fuzz this spec, its sizes small unless --set; without, generated specs",
    )
    add_settings(parser)
    parser.add_argument(
        "--examples", metavar="N", type=positive, help=f"how many (default: {EXAMPLES}, or as many as --minutes allows)"
    )
    parser.add_argument("--minutes", metavar="M", type=minutes, help="how long to look; what was begun is finished")
    parser.add_argument(
        "--seed", metavar="S", type=natural, default=0, help="the same seed gives the same examples (default: 0)"
    )
    parser.add_argument("--strategies", metavar="A,B", type=names, help="try only these, as `stmlang explain` lists them")
    parser.add_argument("--checks", metavar="A,B", type=names, help="run only these; an unknown name lists all")
    parser.add_argument(
        "--workers", metavar="W", type=positive, default=1, help="how many processes share the work (default: 1)"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("fuzz"), help="where findings are saved (default: the folder `fuzz`)"
    )
    parser.add_argument(
        "--replay", metavar="FILE", type=Path, help="run the check of a saved finding again, on the same numbers"
    )
    add_json(parser)


def names(text: str) -> tuple[str, ...]:
    """`a,b`: names without repetition."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    if not all(words):
        raise argparse.ArgumentTypeError(f"write names with commas between them instead of {text!r}")
    return words


def minutes(text: str) -> float:
    """A positive number of minutes, in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of minutes")
    return 60 * value


def run(arguments: argparse.Namespace) -> int:
    """0 where nothing was found, 1 for a finding, 2 for a wrong command line. An interruption prints what was counted."""
    if arguments.replay is not None:
        return _replay(arguments)
    from stmlang.fuzz.fuzzer import Fuzzer
    from stmlang.fuzz.saved import require_folder

    task = _task(arguments)
    if isinstance(task, str):
        print_usage("stmlang fuzz", task, arguments.json)
        return USAGE
    require_folder(arguments.out)
    examples = EXAMPLES if arguments.examples is None and arguments.minutes is None else arguments.examples
    fuzzer = Fuzzer(task, arguments.out, examples, arguments.minutes)
    start = time.monotonic()

    def show(interrupted: bool = False) -> None:
        spent = time.monotonic() - start
        if arguments.json:
            print_json(_summary(fuzzer, spent, interrupted), ok=not fuzzer.kept and not interrupted)
        else:
            _report(fuzzer, spent, interrupted)

    with rescuing(lambda: show(interrupted=True)):
        _look(fuzzer, arguments.workers)
    show()
    return 1 if fuzzer.kept else 0


# --- what to try


def _task(arguments: argparse.Namespace) -> Task | str:
    """What the command line asks for, or what is wrong with it. Raises SpecError where the spec is wrong."""
    from stmlang.fuzz.fuzzer import Task, strategy_names
    from stmlang.fuzz.jobs import FRONT_END, matrix, text_checks

    source = _source(arguments)
    checks = tuple(matrix())
    text = () if source.texts is None else tuple(text_checks())
    strategies = tuple(name for name in strategy_names() if text or name != FRONT_END.strategy)
    for what, requested, known in (
        ("strategy", arguments.strategies, strategies),
        ("check", arguments.checks, (*checks, *text)),
    ):
        unknown = [name for name in requested or () if name not in known]
        if unknown:
            return f"unknown {what} `{unknown[0]}`; there are {', '.join(known)}"
    chosen = arguments.strategies or strategies
    requested = arguments.checks or (*checks, *text)
    on_texts = tuple(name for name in text if name in requested and FRONT_END.strategy in chosen)
    return Task(source, arguments.seed, chosen, tuple(name for name in checks if name in requested), on_texts)


def _source(arguments: argparse.Namespace) -> Source:
    """A spec's trials, or generated ones."""
    from stmlang.fuzz.fuzzer import Source, generated

    if arguments.spec is None:
        return generated()
    from stmlang.cli.specs import open_named
    from stmlang.fuzz.contained import trials_of

    return Source(trials_of(open_named(arguments.spec), arguments.settings, arguments.search_path))


# --- looking


def _look(fuzzer: Fuzzer, workers: int) -> None:
    """All examples, with a progress bar on standard error."""
    from stmlang.cli.progress import progress_bar
    from stmlang.fuzz.worker import Worker

    total = fuzzer.seconds if fuzzer.examples is None else fuzzer.examples
    start = time.monotonic()
    with ExitStack() as stack:
        show = stack.enter_context(progress_bar("starting", total or 0))
        hands: list[Worker] = []
        for _ in range(workers):
            hands.append(Worker(LIMIT))
            stack.callback(hands[-1].close)
        for tried in fuzzer.run(hands):
            done = fuzzer.counts.total if fuzzer.examples is not None else time.monotonic() - start
            findings = count(len(fuzzer.kept), "finding")
            show(done, f"{count(fuzzer.counts.total, 'example')}, {findings}: {tried.job.check}, {tried.job.way.label}")


def _summary(fuzzer: Fuzzer, spent: float, interrupted: bool) -> dict[str, Any]:
    """The result for programs."""

    def counted(place: int) -> dict[str, dict[str, int]]:
        return {
            name: {"examples": examples, "value_sets": draws, "findings": findings}
            for name, (examples, draws, findings) in fuzzer.counts.by(place).items()
        }

    return {
        "seed": fuzzer.task.seed,
        "examples": fuzzer.counts.total,
        "value_sets": fuzzer.counts.draws.total(),
        "did_not_apply": fuzzer.counts.skipped,
        "spent": spent,
        "interrupted": interrupted,
        "generators": counted(0),
        "strategies": counted(1),
        "checks": counted(2),
        "findings": [_entry(kept.saved, kept) for kept in fuzzer.kept.values()],
    }


def _entry(saved: Saved, kept: Kept | None = None) -> dict[str, Any]:
    finding = saved.finding
    entry: dict[str, Any] = {
        "check": finding.check,
        "way": finding.way,
        "what": finding.what,
        "error": _finite(finding.error),
        "allowed": _finite(finding.allowed),
        "generator": saved.trial.generator,
        "values": saved.trial.values,
    }
    if kept is not None:
        entry |= {"file": None if kept.path is None else str(kept.path), "replay": _command(kept)}
    return entry


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def _command(kept: Kept) -> str:
    from shlex import quote

    return f"stmlang fuzz --replay {quote(str(kept.path))}"


def _report(fuzzer: Fuzzer, spent: float, interrupted: bool) -> None:
    """The result for people."""
    from stmlang.cost import units
    from stmlang.source.columns import columns

    counts = fuzzer.counts
    for place, what in enumerate(("generator", "strategy", "check")):
        entries = counts.by(place).items()
        rows = [(what, "examples", "value sets", "findings"), *((name, *map(str, numbers)) for name, numbers in entries)]
        for line in columns(rows, left={0}) if entries else ():
            tell(line)
        if entries:
            tell("")
    for kept in fuzzer.kept.values():
        tell(_words(kept.saved.finding))
        tell(f"    saved as {kept.path}; to see it again:")
        tell(f"    {_command(kept)}")
    number, apart = counts.findings.total(), len(fuzzer.kept)
    findings = count(number, "finding") + (f", {apart} of them different" if number > apart else "")
    examples = f"{count(counts.total, 'example')} with {count(counts.draws.total(), 'set')} of values"
    tried = f"{examples} in {units.seconds(spent)}, seed {fuzzer.task.seed}"
    tell(f"{tried}: {findings if number else 'no finding'}")
    if not counts.total and not interrupted:
        say("nothing was tried: the strategies and checks that were asked for apply to no example")


def _words(finding: Finding) -> str:
    """A finding in a line."""
    size = f" (off by {finding.error:.3g}, allowed is {finding.allowed:.3g})" if math.isfinite(finding.error) else ""
    return f"{finding.check}, {finding.way}: {finding.what}{size}"


# --- replaying


def _replay(arguments: argparse.Namespace) -> int:
    """0 where the check passes now, 1 where it still fails. Raises SpecError where the file is none that can be replayed."""
    from stmlang.fuzz import saved
    from stmlang.fuzz.jobs import replaying
    from stmlang.fuzz.worker import Worker

    saved_finding = saved.load(arguments.replay)
    job = replaying(saved_finding)
    worker = Worker(LIMIT)
    try:
        outcome: Outcome = worker.ask(job)
    finally:
        worker.close()
    finding = outcome.finding
    if arguments.json:
        now = (
            None
            if finding is None
            else _entry(saved.Saved(saved_finding.trial, saved_finding.way, finding, saved_finding.optimized, None))
        )
        print_json({"outcome": outcome.kind, "saved": _entry(saved_finding), "now": now}, ok=finding is None)
    elif finding is not None:
        tell(f"still fails: {_words(finding)}")
    elif outcome.kind == "skipped":
        tell(f"{job.check}, {job.way.label}: the check does not apply to this scan")
    else:
        tell(f"{job.check}, {job.way.label}: passes now; when it was saved: {_words(saved_finding.finding)}")
    return 0 if finding is None else 1
