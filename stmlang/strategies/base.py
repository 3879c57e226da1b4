"""What a strategy is to the planner and to all who run over the strategies. No JAX: what one does is loaded when it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from stmlang.cost.candidate import Candidate, Rejection
from stmlang.cost.problem import Problem
from stmlang.cost.settings import NoSettings, S, Settings, parse_settings, settings_dict
from stmlang.cost.target import Target

ONE_GRAPH = "it is made for one graph, and here graphs come at run time"


@dataclass(frozen=True, slots=True)
class Offers:
    """What a strategy can be asked for beside results: the `gating` matrix, and whether its tables can have shapes that many
    graphs share, so that they can come `at_run_time`. States that enter and leave, and all directions in a call, are no offers:
    every strategy knows both. One that knows `several` writes and reads a node is given them as they
    are; to any other each write with each read is a head of its own (`one_each`)."""

    gating: bool = False
    at_run_time: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """What a strategy finds in its operands beside gates and inputs, and what it takes for granted.

    `factors`: those of a rank-one transition, where the facts name them; `deltas`: transition and mark in the form of the delta
    rule; `local`: gates to be evaluated node by node, on a regular topology; `direct`: the direct gate, where there is one to
    add, which the strategy then adds. A strategy of `uniform` gates reads those of one node and takes them for those of all, so
    that no node can be left out.
    """

    factors: bool = False
    deltas: bool = False
    local: bool = False
    direct: bool = False
    uniform: bool = False


@dataclass(frozen=True)
class Strategy(Generic[S]):
    """One way to evaluate scans.

    `settings` is its dataclass, `NoSettings` where it has none. Of a problem that it does not refuse

    * `propose` lists the settings worth costing, or says why there are none;
    * `fitted` makes settings that were asked for fit, which may be others than those proposed, or says what is wrong with them;
    * `misread` says what is wrong with values that are none of its settings;
    * `cost` tells what settings that fit cost on a target;
    * `odd` are settings at the boundaries of what it takes, for those who look for faults.

    Reasons are ends of the sentence "cannot be used: ...". What it `offers` and `needs` is said here alone, for those who plan
    and those who run it. `lowering` is what it does, a `stmlang.lower.strategy.Lowering`, which holds functions and nothing
    else; None where that is `LOWERING` in `stmlang.strategies.NAME.lower`, which is imported when it is first asked for.

    A `kernel` is made of kernels for GPUs of our own. It is admitted on targets that run them, and chosen where it was measured
    (`stmlang.plan.choose.is_guess`).
    """

    name: str
    summary: str
    settings: type[S]
    refuses: Callable[[Problem], str | None]
    propose: Callable[[Problem], Sequence[S] | str]
    fitted: Callable[[Problem, S], S | str]
    misread: Callable[[Problem, Mapping[str, object]], str]
    cost: Callable[[Problem, S, Target], Candidate]
    odd: Callable[[Problem], Iterable[S]]
    offers: Offers = field(default_factory=Offers)
    needs: Needs = field(default_factory=Needs)
    lowering: Any = None
    kernel: bool = False


AnyStrategy = Strategy[Any]


def plain_strategy(
    name: str,
    summary: str,
    refuses: Callable[[Problem], str | None],
    cost: Callable[[Problem, Target], Candidate],
    *,
    offers: Offers = Offers(),
    needs: Needs = Needs(),
    lowering: Any = None,
    kernel: bool = False,
) -> Strategy[NoSettings]:
    """A strategy without settings."""

    def only(problem: Problem) -> Sequence[NoSettings]:
        del problem
        return (NoSettings(),)

    def fitted(problem: Problem, settings: NoSettings) -> NoSettings:
        del problem
        return settings

    def misread(problem: Problem, values: Mapping[str, object]) -> str:
        del problem
        return f"it has no setting `{next(iter(values))}`"

    def costed(problem: Problem, settings: NoSettings, target: Target) -> Candidate:
        del settings
        return cost(problem, target)

    return Strategy(name, summary, NoSettings, refuses, only, fitted, misread, costed, only, offers, needs, lowering, kernel)


def seen_by(strategy: AnyStrategy, problem: Problem) -> Problem:
    """The problem that a strategy is given: none knows nodes of several steps, or directions with inputs of their own."""
    apart = problem.unrolled.apart
    return apart if strategy.offers.several else apart.one_each


def refusal(strategy: AnyStrategy, problem: Problem, target: Target) -> str | None:
    """Why a strategy cannot evaluate a scan on a target; None where it can."""
    if strategy.kernel and not target.kernels:
        return f"it is made of kernels for NVIDIA's H100 and H200, and the target is `{target.name}`"
    return _unable(strategy, problem)


def _unable(strategy: AnyStrategy, problem: Problem) -> str | None:
    """Why it cannot on any target."""
    if problem.room is not None and not strategy.offers.at_run_time:
        return ONE_GRAPH
    return strategy.refuses(seen_by(strategy, problem))


def proposed(strategy: AnyStrategy, problem: Problem, target: Target) -> Iterator[Candidate | Rejection]:
    """All candidates of a strategy that are worth costing, or the reason why there are none."""
    seen = seen_by(strategy, problem)
    settings = refusal(strategy, problem, target) or strategy.propose(seen)
    if isinstance(settings, str):
        yield Rejection(strategy.name, settings)
    else:
        yield from (strategy.cost(seen, entry, target) for entry in settings)


def fit_settings(strategy: Strategy[S], problem: Problem, asked: Settings | Mapping[str, object]) -> S | str:
    """Settings that were asked for, as the strategy's own or by name, made fit; or what is wrong with them. The problem is one
    that the strategy does not refuse."""
    problem = seen_by(strategy, problem)
    if isinstance(asked, strategy.settings):
        return strategy.fitted(problem, asked)
    if not isinstance(asked, Mapping):
        asked = settings_dict(asked)
    settings = parse_settings(strategy.settings, asked)
    return strategy.misread(problem, asked) if settings is None else strategy.fitted(problem, settings)


def asked_for(
    strategy: AnyStrategy, problem: Problem, asked: Settings | Mapping[str, object], target: Target
) -> Candidate | Rejection:
    """A strategy with settings that were asked for, or the reason why it cannot be used so."""
    reason = refusal(strategy, problem, target)
    settings = reason or fit_settings(strategy, problem, asked)
    if isinstance(settings, str):
        return Rejection(strategy.name, settings)
    return strategy.cost(seen_by(strategy, problem), settings, target)


def odd_settings(strategy: Strategy[S], problem: Problem) -> list[S]:
    """Settings at the boundaries of what a strategy takes, made fit; none where it cannot evaluate the scan."""
    if _unable(strategy, problem) is not None:
        return []
    seen = seen_by(strategy, problem)
    fitting = (strategy.fitted(seen, settings) for settings in strategy.odd(seen))
    return list(dict.fromkeys(settings for settings in fitting if not isinstance(settings, str)))
