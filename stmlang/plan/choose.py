"""The choice: the fastest candidate that fits, the same one every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stmlang.cost import units
from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.errors import plan_error
from stmlang.cost.problem import Problem
from stmlang.cost.roofline import Estimate, StageTime, estimate
from stmlang.cost.settings import Settings
from stmlang.cost.target import Target
from stmlang.log import PLAN, on, timed
from stmlang.plan.follow import follow, why_measured
from stmlang.plan.plan import Circumstances, Plan, Ranked, Tuning, memory_limit
from stmlang.plan.tuned import Found
from stmlang.strategies.base import AnyStrategy, asked_for, proposed, refusal
from stmlang.strategies.registry import strategies, strategy_named


def make_plan(
    problem: Problem,
    target: Target,
    *,
    strategy: str | None = None,
    settings: Settings | Mapping[str, object] | None = None,
    tuned: Found | None = None,
) -> Plan:
    """Cost every candidate and choose. `strategy` forces one by name, `settings` (the strategy's own, or by name) its
    settings too. What was measured on this machine (`tuned`) comes before what is predicted.

    Of equally fast candidates the one that is listed first wins. Raises SpecError: STM5003 for settings that the forced
    strategy cannot take, STM5004 where no strategy can evaluate the scan, STM5005 where none fits the memory limit, STM5006
    for an unknown strategy, STM5007 for one that cannot evaluate the scan.
    """
    words = f"{problem.scan.name} for {target.name}, {problem.mode}, {problem.dtype}, batch {problem.batch}"
    with timed(PLAN, words) as remarks:
        plan = _plan(problem, target, strategy, settings, tuned or Found(None))
        remarks.append(f"{len(plan.ranked)} candidates, {len(plan.rejections)} strategies that cannot be used")
        remarks.append(f"chosen {plan.chosen.candidate.label}, predicted to take {units.seconds(plan.chosen.seconds)}")
    if on(PLAN):
        _log(plan)
    return plan


def _log(plan: Plan) -> None:
    """Everything that was weighed, one line each."""
    for entry in plan.ranked:
        PLAN.debug("  %s: %s", entry.estimate.candidate.label, entry.why or "chosen")
    for rejection in plan.rejections:
        PLAN.debug("  %s cannot be used: %s", rejection.strategy, rejection.reason)


def _plan(
    problem: Problem,
    target: Target,
    strategy: str | None,
    settings: Settings | Mapping[str, object] | None,
    tuned: Found,
) -> Plan:
    forced = None if strategy is None else strategy_named(strategy)
    if settings is not None and forced is None:
        raise plan_error("STM5003", "settings were given without a strategy", help="name the strategy that they belong to")
    candidates, rejections = _all(problem, target)
    eligible = candidates if forced is None else _forced(problem, target, forced, settings, candidates, rejections)
    if not eligible:
        reasons = tuple(f"{rejection.strategy}: {rejection.reason}" for rejection in rejections)
        raise plan_error(
            "STM5004", f"no strategy can evaluate scan `{problem.scan.name}`", span=problem.scan.span, notes=reasons
        )
    listed = [*candidates, *(candidate for candidate in eligible if candidate not in candidates)]
    estimates = [estimate(candidate, problem, target) for candidate in listed]
    limit = memory_limit(problem, target)
    known = [entry for entry in estimates if entry.candidate in eligible]
    if forced is None:
        known = [entry for entry in known if not is_guess(entry.candidate, target)]
    predicted = _choose(known, problem, limit, target)
    chosen, tuning = follow(tuned, predicted, estimates, limit, forced is not None)
    order = sorted(estimates, key=lambda entry: (entry.memory > limit, entry.seconds))
    name = None if forced is None else forced.name
    ranked = tuple(Ranked(entry, entry.memory <= limit, _why(entry, chosen, limit, name, tuning, target)) for entry in order)
    circumstances = Circumstances.of(problem, target)
    return Plan(chosen, ranked, tuple(rejections), circumstances, target, forced is not None, tuning)


def rechosen(plan: Plan, chosen: Estimate) -> Plan:
    """The plan of one who asks for another of its candidates."""
    limit, name, untuned = plan.circumstances.memory_limit, chosen.candidate.strategy, Tuning()
    ranked = tuple(replace(entry, why=_why(entry.estimate, chosen, limit, name, untuned, plan.target)) for entry in plan.ranked)
    return replace(plan, chosen=chosen, ranked=ranked, forced=True, tuning=untuned)


def _all(problem: Problem, target: Target) -> tuple[list[Candidate], list[Rejection]]:
    """Everything proposed, in the order of the list."""
    entries = [entry for strategy in strategies() for entry in proposed(strategy, problem, target)]
    return (
        [entry for entry in entries if isinstance(entry, Candidate)],
        [entry for entry in entries if isinstance(entry, Rejection)],
    )


def _forced(
    problem: Problem,
    target: Target,
    strategy: AnyStrategy,
    settings: Settings | Mapping[str, object] | None,
    candidates: list[Candidate],
    rejections: list[Rejection],
) -> list[Candidate]:
    """The candidates of a strategy that was asked for: with the given settings exactly, else those it proposes."""
    own = [candidate for candidate in candidates if candidate.strategy == strategy.name]
    reasons = [rejection.reason for rejection in rejections if rejection.strategy == strategy.name]
    if (settings is None and not own) or refusal(strategy, problem, target):
        raise plan_error(
            "STM5007", f"strategy `{strategy.name}` cannot be used here: {'; '.join(reasons)}", span=problem.scan.span
        )
    if settings is None:
        return own
    entry = asked_for(strategy, problem, settings, target)
    if isinstance(entry, Candidate):
        return [entry]
    raise plan_error("STM5003", f"strategy `{strategy.name}` cannot take these settings: {entry.reason}")


def _choose(eligible: list[Estimate], problem: Problem, limit: int, target: Target) -> Estimate:
    """The fastest that fits; `min` keeps the first of equals."""
    fitting = [entry for entry in eligible if entry.memory <= limit]
    if fitting:
        return min(fitting, key=lambda entry: entry.seconds)
    least = min(eligible, key=lambda entry: entry.memory)
    origin = f"target `{target.name}` has" if problem.memory_limit is None else "the limit is"
    raise plan_error(
        "STM5005",
        f"scan `{problem.scan.name}` needs at least {units.size(least.memory)} for {problem.mode} "
        f"(`{least.candidate.label}`); {origin} {units.size(limit)}",
        span=problem.scan.span,
        notes=(f"batch {problem.batch}, {problem.heads} heads, {problem.counts.nodes:,} nodes, {problem.dtype}",),
        help="raise the memory limit, lower the batch, or use a smaller data type",
    )


def is_guess(candidate: Candidate, target: Target) -> bool:
    """Whether what a candidate is predicted to take says nothing yet: it is made of kernels of our own, and the target's record
    was fitted to no run of them."""
    return strategy_named(candidate.strategy).kernel and candidate.strategy not in target.coefficients.stages


def _why(entry: Estimate, chosen: Estimate, limit: int, forced: str | None, tuning: Tuning, target: Target) -> str:
    """Why a candidate was not chosen."""
    if entry is chosen:
        return ""
    if entry.memory > limit:
        return f"does not fit: needs {units.size(entry.memory)} of {units.size(limit)}"
    if tuning.used:
        return why_measured(entry.candidate.label, chosen.candidate.label, tuning)
    if forced is None and is_guess(entry.candidate, target):
        return "never measured: `stmlang tune` times it"
    if forced is not None and entry.seconds < chosen.seconds:
        return f"`{forced}` was asked for"
    if entry.seconds <= chosen.seconds:
        return "equally fast, but later in the list"
    return f"{units.excess(entry.seconds / chosen.seconds)} slower: {_culprit(entry, chosen)}"


def _culprit(entry: Estimate, chosen: Estimate) -> str:
    """The cost that most exceeds what the chosen candidate spends on the same kind of thing."""
    own, other = _kinds(entry), _kinds(chosen)
    kind = max(own, key=lambda name: own[name] - other[name])
    if kind == "steps":
        return f"{entry.steps:,} sequential steps cost {units.seconds(own['steps'])}"
    if kind == "products":
        count = sum(time.stage.products for time in entry.times)
        return f"{count:,} small matrix products cost {units.seconds(own['products'])}"
    if kind == "ops":
        return f"{sum(time.stage.ops for time in entry.times):,} operations cost {units.seconds(own['ops'])} to dispatch"
    worst = max(entry.times, key=lambda time: time.work)
    return _stage_words(worst)


def _kinds(entry: Estimate) -> dict[str, float]:
    return {
        "work": sum(time.work for time in entry.times),
        "steps": sum(time.steps for time in entry.times),
        "ops": sum(time.ops for time in entry.times),
        "products": sum(time.products for time in entry.times),
    }


def _stage_words(time: StageTime) -> str:
    stage = time.stage
    if time.arithmetic >= time.traffic:
        return f"{stage.name} takes {units.seconds(time.work)} for {units.si(stage.flops, 'flop')}"
    return f"{stage.name} takes {units.seconds(time.work)} to move {units.size(stage.bytes)}"
