"""What the fuzzer has done to trials: planning, checking, drawing arguments; and all checks by name."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, Literal, Protocol

import jax

from stmlang.fuzz.saved import Numbers, Saved, numbers_of
from stmlang.fuzz.trial import Check, Finding, NotApplicable, NothingClaimed, Trial, Way, ways
from stmlang.source.diagnostic import Diagnostic, SpecError

PLANNER, FRONT_END = Way("planner", {}), Way("front end", {})
"""What stands for a way where a check has none."""
PLANS = "plans"
"""The check that a scan can be compiled at all."""

Kind = Literal["passed", "skipped", "wrong", "raised", "died", "hung"]


@dataclass(frozen=True)
class Outcome:
    """How a check of a trial ended: `skipped` where it does not apply; of the others all but `passed` come with a finding:
    numbers are `wrong`, the check `raised` an exception (`cause` says which, and where), or its process `died` or `hung`. A
    finding is about the values of one `draw`; `draws` counts those that were judged."""

    kind: Kind
    finding: Finding | None = None
    cause: str = ""
    draw: int = 0
    draws: int = 0

    @property
    def manner(self) -> str:
        """The same for findings that have one fault, as far as one can tell."""
        return f"{self.kind} {self.cause}".strip()


@dataclass(frozen=True)
class Evaluate:
    """Run a check; `optimized` lets XLA optimize. It is run on so many `draws` of values, from the trial's own on, until there
    is a finding. The reply is an `Outcome`."""

    check: str
    trial: Trial
    way: Way
    optimized: bool = False
    draws: int = 1


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
    trial = job.trial
    match job:
        case Evaluate(check=check, way=way, optimized=optimized):
            with _optimizing(optimized):
                return _evaluate(every_check()[check], check, trial.draws(job.draws), way)
        case Plan():
            return [] if _evaluate(_plans, PLANS, [trial], PLANNER).finding else ways(trial.compiled(None, "float64"))
        case Draw():
            return _numbers(trial)


def _numbers(trial: Trial) -> Numbers | None:
    try:
        return numbers_of(trial.arguments(trial.compiled(None, "float64")))
    except Exception:  # what is wrong with the trial was found already: it is saved without numbers
        return None


def _evaluate(check: Check, name: str, draws: Sequence[Trial], way: Way) -> Outcome:
    """A check of each draw of a trial, up to the first that it objects to."""
    judged = 0
    for trial in draws:
        try:
            finding = check(trial, way)
        except NothingClaimed:
            continue
        except NotApplicable:
            break
        except Exception as error:
            return _raised(error, name, trial.draw, judged, way)
        judged += 1
        if finding is not None:
            finding = Finding(name, way.label, finding.what, finding.error, finding.allowed)
            return Outcome("wrong", finding, draw=trial.draw, draws=judged)
    return Outcome("passed", draws=judged) if judged else Outcome("skipped")


def _raised(error: Exception, name: str, draw: int, judged: int, way: Way) -> Outcome:
    frame = extract_tb(error.__traceback__)[-1]
    where = f"at {Path(frame.filename).name}:{frame.lineno}"
    lines = str(error).strip().splitlines() or [""]
    what = f"{type(error).__name__}: {lines[0][:300]} {where}"
    finding = Finding(name, way.label, what, float("inf"), 0.0)
    return Outcome("raised", finding, f"{type(error).__name__} {where}", draw, judged + 1)


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
