"""What the fuzzer has done to trials: planning, checking, drawing arguments; and all checks by name."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, Protocol

import jax

from stmlang.cost.settings import Config, freeze
from stmlang.fuzz.saved import Numbers, Recorded, Saved, numbers_of
from stmlang.fuzz.trial import Check, Finding, Listed, NotApplicable, Trial, Way, ways
from stmlang.runtime.compiled import CompiledScan
from stmlang.source.diagnostic import Diagnostic, SpecError

PLANNER, FRONT_END = Way("planner", {}), Way("front end", {})
"""What stands for a way where a check has none."""
PLANS = "plans"
"""The check that a scan can be compiled at all."""

Kind = Literal["passed", "skipped", "wrong", "raised", "died", "hung"]


@dataclass(frozen=True)
class Outcome:
    """How a check of a trial ended: `skipped` where it does not apply; of the others all but `passed` come with a finding:
    numbers are `wrong`, the check `raised` an exception (`cause` says which, and where), or its process `died` or `hung`."""

    kind: Kind
    finding: Finding | None = None
    cause: str = ""

    @property
    def manner(self) -> str:
        """The same for findings that have one fault, as far as one can tell."""
        return f"{self.kind} {self.cause}".strip()


@dataclass(frozen=True)
class Evaluate:
    """Run a check; `optimized` lets XLA optimize. The reply is an `Outcome`."""

    check: str
    trial: Trial
    way: Way
    optimized: bool = False


@dataclass(frozen=True)
class Plan:
    """Which ways there are. The reply is a list of them, empty where the scan cannot be compiled."""

    trial: Trial


@dataclass(frozen=True)
class Draw:
    """The numbers of a trial's arguments. The reply is None where there are none."""

    trial: Trial


Job = Evaluate | Plan | Draw


class Evaluator(Protocol):
    """Does jobs, one at a time."""

    def ask(self, job: Job) -> Any:
        """The reply to a job."""
        ...


def matrix() -> Mapping[str, Check]:
    """Every check of a compiled scan, by name."""
    from stmlang.fuzz.checks import CHECKS
    from stmlang.fuzz.relations import RELATIONS

    return {**CHECKS, **RELATIONS}


def text_checks() -> Mapping[str, Check]:
    """Every check of a text, by name; a trial's text stands for its bytes."""
    from stmlang.fuzz.frontend import TEXT_CHECKS

    def on_bytes(name: str, trial: Trial, _: Way) -> Finding | None:
        return TEXT_CHECKS[name](trial.text.encode("utf-8", "surrogateescape"))

    return {name: partial(on_bytes, name) for name in TEXT_CHECKS}


def every_check() -> Mapping[str, Check]:
    """All checks by name."""
    return {PLANS: _plans, **matrix(), **text_checks()}


def _plans(trial: Trial, _: Way) -> Finding | None:
    """A scan that is right can be compiled, by one strategy at least."""
    if ways(trial.compiled(None, "float64")):
        return None
    return Finding(PLANS, PLANNER.label, "no strategy can evaluate the scan", 1.0, 0.0)


def replaying(saved: Saved) -> Evaluate:
    """The job that sees a saved finding again, on its numbers. Raises SpecError (STM5503) where its check is gone."""
    check = saved.finding.check
    if check not in every_check():
        message = f"the finding is one of the check `{check}`, which this version of stmlang does not have"
        raise SpecError([Diagnostic("STM5503", message, None)])
    return Evaluate(check, saved.recorded, saved.way, saved.optimized)


# --- here


def answer(job: Job) -> Any:
    """The reply to a job, done in this process, which what crashes or hangs takes along."""
    trial = _shared(job.trial)
    match job:
        case Evaluate(check=check, way=way, optimized=optimized):
            with _optimizing(optimized):
                return _evaluate(every_check()[check], check, trial, way)
        case Plan():
            return [] if _evaluate(_plans, PLANS, trial, PLANNER).finding else ways(trial.compiled(None, "float64"))
        case Draw():
            return _numbers(trial)


def _numbers(trial: Trial) -> Numbers | None:
    try:
        return numbers_of(trial.arguments(trial.compiled(None, "float64")))
    except Exception:  # what is wrong with the trial was found already: it is saved without numbers
        return None


def _evaluate(check: Check, name: str, trial: Trial, way: Way) -> Outcome:
    try:
        found = check(trial, way)
    except NotApplicable:
        return Outcome("skipped")
    except Exception as error:
        frame = extract_tb(error.__traceback__)[-1]
        where = f"at {Path(frame.filename).name}:{frame.lineno}"
        lines = str(error).strip().splitlines() or [""]
        what = f"{type(error).__name__}: {lines[0][:300]} {where}"
        return Outcome("raised", Finding(name, way.label, what, float("inf"), 0.0), f"{type(error).__name__} {where}")
    if found is None:
        return Outcome("passed")
    return Outcome("wrong", Finding(name, way.label, found.what, found.error, found.allowed))


class _Shared(Trial):
    """A trial whose compiled scans are kept, so that its checks compile each way once."""

    def compiled(self, way: Way | None, dtype: str) -> CompiledScan:
        return _compiled(self.text, self.graphs, None if way is None else (way.strategy, freeze(way.config)), dtype)


class _SharedRecorded(Recorded, _Shared):
    """The same with known numbers."""


def _shared(trial: Trial) -> Trial:
    fields = (trial.text, trial.generator, trial.values, trial.seed, trial.graphs)
    return _SharedRecorded(*fields, trial.numbers) if isinstance(trial, Recorded) else _Shared(*fields)


@lru_cache(maxsize=16)
def _compiled(text: str, graphs: tuple[Listed, ...] | None, way: tuple[str, Config] | None, dtype: str) -> CompiledScan:
    return Trial(text, "", "", 0, graphs).compiled(None if way is None else Way(way[0], dict(way[1])), dtype)


@contextmanager
def _optimizing(on: bool) -> Generator[None]:
    """XLA optimizes, or compiles quickly."""
    config: Any = jax.config
    before = config.read("jax_disable_most_optimizations")
    config.update("jax_disable_most_optimizations", not on)
    try:
        yield
    finally:
        config.update("jax_disable_most_optimizations", before)
