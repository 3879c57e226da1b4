"""Timing the best predicted candidates on this machine, and keeping what was found: what `stmlang tune` does."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stmlang.compiler import Prepared, Request, plan_problem
from stmlang.cost.cache import cache_folder
from stmlang.cost.errors import plan_error
from stmlang.cost.roofline import Estimate
from stmlang.cost.target import Target
from stmlang.plan.choose import rechosen
from stmlang.plan.tuned import Device, Measured, keep, key_of, place_of, read
from stmlang.runtime.compiled import compiled
from stmlang.runtime.measure import Built, Timing, scan_program, time_interleaved
from stmlang.runtime.verdict import Inspector
from stmlang.source.diagnostic import SpecError

REPEATS = 41
TIMING_SECONDS = 1.5
"""Timing one candidate takes no longer, save for a call that does."""
FINALISTS = 5
CLOSE = 1.4
"""So many of the fastest, if they are at most so many times slower than the best, are timed once more, all in turns."""
FINAL_SECONDS = 8.0
FINAL_SHARE = 0.2
"""The final takes no longer, nor a larger share of the budget."""
HOPELESS = 10.0
"""Candidates that are predicted to be so many times slower than the best are not tried."""


@dataclass(frozen=True)
class Trial:
    """A candidate as it was predicted and as it was found."""

    estimate: Estimate
    measured: Measured


class Tuner:
    """Tries candidates of one problem until a budget of seconds is spent, compiling and checking included.

    The predicted choice comes first, then the others in the order of prediction, each timed in turns with the first whose
    numbers are right (an earlier run's, if it is still there, so that all ratios in the record have one base). In the end the
    fastest are timed once more, all of them in turns. After each step all that was found is written to the cache: `record` is
    what it holds. `candidates` are those that would be tried without a budget, in order.

    Raises SpecError: STM5005 where no candidate fits the memory limit, STM5401 where the cache cannot be written, STM5403 for
    a scan without nodes.
    """

    def __init__(self, prepared: Prepared, target: Target, device: Device, budget: float, seed: int = 0) -> None:
        self.prepared, self.budget, self.seed = prepared, budget, seed
        self.plan = plan_problem(prepared.problem, Request(tuned=False), target, device)
        require_nodes(prepared)
        require_cache()
        self.key = key_of(prepared.problem, device)
        self.record = read(place_of(self.key))
        self.previous = None if self.record is None else self.record.winner
        fitting = [entry.estimate for entry in self.plan.ranked if entry.fits]
        self.order = [entry.candidate.label for entry in fitting]
        hopeful = [entry for entry in fitting if entry.seconds <= HOPELESS * self.plan.chosen.seconds]
        first = None if self.record is None else self.record.baseline
        self.candidates = sorted(hopeful, key=lambda entry: entry.candidate.label != first)
        self.inspector = Inspector(prepared, target, fitting, seed)
        self.trials: list[Trial] = []
        self._base: tuple[str, Built] | None = None
        self._programs: dict[str, Built] = {}
        self._spent_at = float("inf")

    @property
    def checked(self) -> str:
        """What numbers were compared with."""
        return self.inspector.checked

    @property
    def faults(self) -> list[Measured]:
        """The candidates of this run whose numbers are wrong."""
        return [trial.measured for trial in self.trials if trial.measured.fault]

    def run(self) -> Iterator[Trial]:
        """Trial after trial, at least one. It may be left at any time: what was yielded is kept."""
        final = min(FINAL_SECONDS, FINAL_SHARE * self.budget)
        self._spent_at = time.perf_counter() + self.budget - final
        for estimate in self.candidates:
            if self.trials and time.perf_counter() >= self._spent_at:
                break
            self.trials.append(Trial(estimate, self._measure(estimate)))
            self._shortlist()
            self._keep()
            yield self.trials[-1]
        self._compare(final)

    def _compare(self, seconds: float) -> None:
        """The final. Where it could tell more precisely than the trial, its ratio counts."""
        if self._base is None:
            return
        programs = {self._base[0]: self._base[1], **self._programs}
        if len(programs) < 2:
            return
        timings = time_interleaved({label: program.run for label, program in programs.items()}, REPEATS, seconds=seconds)
        base = timings[self._base[0]]
        for number, trial in enumerate(self.trials):
            own = timings.get(trial.measured.label)
            if own is not None and own.noise(base) <= trial.measured.noise:
                times = {"seconds": own.median, "ratio": own.ratio(base), "noise": own.noise(base), "turns": len(own.samples)}
                self.trials[number] = Trial(trial.estimate, replace(trial.measured, **times))
        self._keep()

    def _shortlist(self) -> None:
        """Forget the programs that are out of the final."""
        right = sorted((trial.measured for trial in self.trials if not trial.measured.fault), key=lambda entry: entry.ratio)
        close = [entry.label for entry in right[:FINALISTS] if entry.ratio <= CLOSE * right[0].ratio]
        self._programs = {name: self._programs[name] for name in close}

    def _measure(self, estimate: Estimate) -> Measured:
        """Compile, check, time. Whatever goes wrong is the compiler's fault, and a fault of the candidate."""
        label = estimate.candidate.label
        try:
            op = compiled(self.prepared, rechosen(self.plan, estimate))
            program = scan_program(op, self.prepared.problem.mode, self.prepared.problem.batch, self.seed)
            if fault := self.inspector.fault(op, program):
                return Measured(label, 0.0, 0.0, 0.0, program.compile_seconds, program.temporary_bytes, fault)
            own, base = self._times(label, program)
        except Exception as error:
            text = error.diagnostics[0].message if isinstance(error, SpecError) else str(error)
            return Measured(label, 0.0, 0.0, 0.0, 0.0, 0, f"{type(error).__name__}: {text.partition(chr(10))[0]}")
        times = (own.median, own.ratio(base), own.noise(base))
        return Measured(label, *times, program.compile_seconds, program.temporary_bytes, turns=len(own.samples))

    def _times(self, label: str, program: Built) -> tuple[Timing, Timing]:
        """A candidate's times and the baseline's, which it becomes if there is none yet."""
        base, other = self._base or (label, program)
        seconds = max(0.0, min(TIMING_SECONDS, self._spent_at - time.perf_counter()))
        timings = time_interleaved({label: program.run, base: other.run}, REPEATS, seconds=seconds)
        self._base, self._programs[label] = (base, other), program
        return timings[label], timings[base]

    def _keep(self) -> None:
        """Write what there is, once anything has been timed."""
        if self._base is None:
            return
        measured = [trial.measured for trial in self.trials]
        try:
            self.record = keep(self.key, self._base[0], self.checked, measured, self.order, self.previous)
        except OSError as error:
            raise cannot_keep(error) from None


def require_nodes(prepared: Prepared) -> None:
    """Raises SpecError (STM5403) where there is nothing to measure."""
    if prepared.problem.counts.nodes == 0:
        raise plan_error("STM5403", f"scan `{prepared.declared.name}` has no nodes: there is nothing to measure")


def require_cache() -> None:
    """Raises SpecError (STM5401) where the cache certainly cannot be written, before much work is put into its content."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise cannot_keep(error) from None


def cannot_keep(error: OSError) -> SpecError:
    """The error for a cache that cannot be written."""
    return plan_error(
        "STM5401",
        f"what was measured cannot be kept in `{cache_folder()}`: {(error.strerror or str(error)).lower()}",
        help="set STMLANG_CACHE to a folder that can be written",
    )


def wrong_numbers(faults: list[Measured]) -> SpecError:
    """What to say of candidates that were excluded."""
    errors = [
        plan_error(
            "STM5402",
            f"candidate `{entry.label}` is excluded: {entry.fault}",
            help="this is a fault of stmlang, not of your spec: please report it with the spec and the command",
        )
        for entry in faults
    ]
    return SpecError([diagnostic for error in errors for diagnostic in error.diagnostics])
