"""Fits what programs take to what was measured: writes `stmlang/cost/coefficients.json`.

    python -m benchmarks.fit                     measure the training problems (what is there already is kept), fit, write
    python -m benchmarks.fit --measure 0         fit to what was measured before
    python -m benchmarks.fit --samples A B       to several files of samples, new ones going to the first: with those of
                                                 `benchmarks.regret` beside, held-out problems are not timed twice

Every candidate of a problem is timed in turns, see `benchmarks.samples`, and its coefficients are fitted so that the ranking of
candidates costs least, see `benchmarks.fitting`. Instructions are counted exactly, in the programs themselves. At the end
stands the regret, before and after, on the problems that nothing was fitted to, as far as they were measured
(`benchmarks.regret`). Other platforms' records stay as they are.

Rates are this machine's: run `stmlang doctor --calibrate` before.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy import optimize

from benchmarks.fitting import Observations, fit, regrets
from benchmarks.problems import STATED, Case, held_out_cases, training_cases
from benchmarks.samples import Sample, Samples, compiled, counted, measured, worth_timing
from stmlang.check import load
from stmlang.cost.candidate import Candidate, Stage
from stmlang.cost.coefficients import MODES, PATH, TERMS, Coefficients, Weights, read_records, write_records
from stmlang.cost.lookup import target_of
from stmlang.cost.problem import Problem
from stmlang.cost.roofline import estimate, stage_time
from stmlang.cost.target import Target
from stmlang.cost.work import SHARED
from stmlang.ending import start
from stmlang.facts import analyse
from stmlang.graph.topology import dag_of
from stmlang.scan.topology import Regular
from stmlang.strategies.base import asked_for
from stmlang.strategies.registry import strategy_named

SAMPLES = Path("build/fit/samples.json")
CACHES = tuple(2**power for power in (20, 21, 22))
FRESH = tuple(2**power for power in (23, 25))
"""Bytes of a cache, and of arrays whose memory is fresh, that are tried."""
PROGRAMS, ALIKE = 8, 2
"""So many programs of each strategy, mode and kind of topology are counted, at most, and so many of one problem."""
UNIT = 1e-9
"""Added to what every candidate takes, in seconds, so that none takes none."""

Key = tuple[str, str, str]
"""A strategy (or what all share), a stage, and the name of one of its weights."""


@dataclass(frozen=True)
class Observed:
    """A candidate of a problem, and what was timed of it."""

    case: Case
    problem: Problem
    sample: Sample
    session: int


def observed(samples: Sequence[Samples], cases: Iterable[Case]) -> tuple[list[Observed], list[Observed]]:
    """All that was timed of the cases, by session, and the programs whose instructions were counted."""
    observations: list[Observed] = []
    programs: list[Observed] = []
    session = 0
    for case in cases:
        for store in samples:
            programs += [Observed(case, problem_of(case), sample, -1) for sample in store.programs.get(case.name, {}).values()]
            for timed in store.cases.get(case.name, ()):
                observations += [Observed(case, problem_of(case), sample, session) for sample in timed.values()]
                session += 1
    return observations, programs


@cache
def problem_of(case: Case) -> Problem:
    """A case's problem; of graphs that come at run time, that of a batch of them."""
    shape = case.shape
    if shape.graphs:
        return compiled(case).compilation.program.problem
    sizes = {} if shape.family in STATED else dict(shape.sizes)
    scan = load(shape.spec, {"heads": case.heads, "key": case.key, "value": case.key, **sizes})
    dag = None if isinstance(scan.topology, Regular) else dag_of(scan.topology)
    facts = analyse(scan, dag)
    return Problem.of(facts.scan, dag, facts=facts, mode=case.mode, batch=case.batch)


def candidate_of(observation: Observed, target: Target) -> Candidate | None:
    """The candidate as it is costed now; None where its strategy no longer takes it."""
    strategy = strategy_named(observation.sample.strategy)
    built = asked_for(strategy, observation.problem, dict(observation.sample.config), target)
    return built if isinstance(built, Candidate) else None


def terms_of(candidate: Candidate, problem: Problem, target: Target) -> dict[Key, float]:
    """The seconds that a candidate takes by coefficient, at coefficients of one."""
    totals: dict[Key, float] = defaultdict(float)
    for stage in candidate.stages(problem.training):
        group = SHARED if stage.name.split(",")[0] in ("gates", "spectral norms") else candidate.strategy
        for term in TERMS:
            seconds = _seconds(stage, term, problem, target)
            if seconds:
                totals[group, stage.name, term] += seconds
    return totals


def _seconds(stage: Stage, term: str, problem: Problem, target: Target) -> float:
    """What one of a stage's counts takes alone."""
    alone = {name: 1.0 if name == term else 0.0 for name in TERMS}
    return stage_time(replace(stage, weights=Weights(**alone)), problem.dtype, target).total


# --- instructions ----------------------------------------------------------------------------------------------------


def fitted_instructions(
    observations: Sequence[Observed], target: Target, old: Coefficients
) -> dict[str, dict[str, dict[str, float]]]:
    """For each strategy and mode how many instructions belong to each of its terms: least squares, none negative, relative to
    what was counted. Of a mode or strategy that was not seen the old numbers stay."""
    rows: dict[tuple[str, str], list[tuple[Mapping[str, int], int]]] = defaultdict(list)
    for entry in observations:
        candidate = candidate_of(entry, target)
        if candidate is not None and entry.sample.instructions:
            rows[candidate.strategy, entry.case.mode].append((candidate.terms, entry.sample.instructions))
    fitted = {strategy: {mode: dict(terms) for mode, terms in modes.items()} for strategy, modes in old.instructions.items()}
    for (strategy, mode), programs in rows.items():
        names = sorted({name for terms, _ in programs for name in terms})
        counts = np.array([float(number) for _, number in programs])
        matrix = np.array([[terms.get(name, 0) for name in names] for terms, _ in programs], float)
        numbers: Float[np.ndarray, " terms"] = optimize.nnls(matrix / counts[:, None], np.ones(len(counts)))[0]
        fitted.setdefault(strategy, {})[mode] = dict(zip(names, numbers.tolist(), strict=True))
    for modes in fitted.values():
        for mode, other in (MODES, MODES[::-1]):
            modes.setdefault(mode, modes.get(other, {}))
    return fitted


# --- times -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """What was timed as a matrix, its columns named."""

    keys: tuple[Key, ...]
    observations: Observations


def table_of(observations: Sequence[Observed], target: Target) -> Table:
    """What was timed, costed by a target."""
    rows, seconds, sessions = list[dict[Key, float]](), list[float](), list[int]()
    for entry in observations:
        candidate = candidate_of(entry, target)
        if candidate is not None:
            rows.append(terms_of(candidate, entry.problem, target))
            seconds.append(entry.sample.usual)
            sessions.append(entry.session)
    keys = tuple(sorted({key for row in rows for key in row}))
    column = {key: number for number, key in enumerate(keys)}
    matrix = np.zeros((len(rows), len(keys) + 1))
    matrix[:, -1] = UNIT
    for number, row in enumerate(rows):
        for key, value in row.items():
            matrix[number, column[key]] = value
    _, dense = np.unique(np.array(sessions, int), return_inverse=True)
    return Table(keys, Observations(matrix, np.array(seconds), dense))


def shared_prior(table: Table) -> Float[np.ndarray, " terms"]:
    """Coefficients that are the same for all stages, one for each kind of term: where the others start from."""
    kinds = [key[2] for key in table.keys] + ["unit"]
    names = sorted(set(kinds))
    pooled = np.zeros((len(table.observations.seconds), len(names)))
    for column, kind in enumerate(kinds):
        pooled[:, names.index(kind)] += table.observations.terms[:, column]
    numbers = fit(replace(table.observations, terms=pooled), np.ones(len(names)))
    return np.array([numbers[names.index(kind)] for kind in kinds])


def fitted_record(observations: Sequence[Observed], programs: Sequence[Observed], target: Target, origin: str) -> Coefficients:
    """The record that ranks what was timed best, over the sizes of caches that are tried."""
    best: tuple[float, Coefficients] | None = None
    old = target.coefficients
    instructions = fitted_instructions([*observations, *programs], target, old)
    for cache_bytes in CACHES:
        for fresh in FRESH:
            record = replace(old, cache=cache_bytes, fresh=fresh, instructions=instructions)
            table = table_of(observations, replace(target, coefficients=record))
            weights = fit(table.observations, shared_prior(table))
            predicted = table.observations.terms @ weights
            loss = float(np.mean(np.log(regrets(predicted, table.observations)))) + _spread(predicted, table.observations)
            print(f"cache {cache_bytes:>9,}, fresh {fresh:>10,}: loss {loss:.4f}", file=sys.stderr, flush=True)
            if best is None or loss < best[0]:
                stages = _stages(table.keys, weights)
                best = loss, replace(record, measured=True, origin=origin, stages=_updated(old.stages, stages))
    assert best is not None
    return best[1]


def _spread(predicted: Float[np.ndarray, " candidates"], observations: Observations) -> float:
    """How far predictions are off inside of sessions, on average, in logarithms."""
    error = np.log(predicted / observations.seconds)
    means = np.bincount(observations.session, error) / np.bincount(observations.session)
    return float(np.mean(np.abs(error - means[observations.session])))


def _updated(
    old: Mapping[str, Mapping[str, Weights]], fitted: Mapping[str, Mapping[str, Weights]]
) -> dict[str, dict[str, Weights]]:
    """The fitted stages, and the old ones that no run had."""
    return {group: {**old.get(group, {}), **fitted.get(group, {})} for group in (*old, *fitted)}


def _stages(keys: Sequence[Key], weights: Float[np.ndarray, " terms"]) -> dict[str, dict[str, Weights]]:
    grouped: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (group, stage, term), weight in zip(keys, weights, strict=False):  # the last one is the unit's
        grouped[group][stage][term] = float(weight)
    return {group: {stage: Weights(**terms) for stage, terms in stages.items()} for group, stages in grouped.items()}


# --- regret ----------------------------------------------------------------------------------------------------------


def regret_of(observations: Sequence[Observed], target: Target) -> dict[str, float]:
    """By case the time of the candidate that a target's record chooses of those timed, over that of the fastest."""
    by_session: dict[int, list[Observed]] = defaultdict(list)
    for entry in observations:
        by_session[entry.session].append(entry)
    ratios: dict[str, float] = {}
    for entries in by_session.values():
        predicted: list[tuple[float, float]] = []
        for entry in entries:
            candidate = candidate_of(entry, target)
            if candidate is not None:
                predicted.append((estimate(candidate, entry.problem, target).seconds, entry.sample.usual))
        least = min(seconds for _, seconds in predicted)
        name = entries[0].case.name
        ratios[name] = max(ratios.get(name, 1.0), min(predicted)[1] / least)
    return ratios


def summary(ratios: Mapping[str, float]) -> str:
    """`62 problems: regret at most 1.31, median 1.00, mean 1.03, 3 above 1.2`."""
    values = np.array(list(ratios.values()))
    if not len(values):
        return "no problems"
    above = int((values > 1.2).sum())
    return (
        f"{len(values)} problems: regret at most {values.max():.2f}, median {np.median(values):.2f}, "
        f"mean {values.mean():.3f}, {above} above 1.2"
    )


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(stores: Sequence[Samples], cases: Iterable[Case], seconds: float) -> Iterator[str]:
    """Time what no store has yet, writing it down in the first after each problem, until so many seconds are over."""
    begun = time.monotonic()
    for case in cases:
        if any(case.name in samples.cases for samples in stores):
            continue
        if time.monotonic() - begun > seconds:
            return
        stores[0].add(case, measured(case, worth_timing(compiled(case).plan)))
        yield case.name


def count_programs(samples: Samples, cases: Iterable[Case]) -> Iterator[str]:
    """Count instructions of programs that differ in what these grow with, a few for each strategy and mode."""
    known: dict[tuple[str, ...], set[tuple[tuple[str, int], ...]]] = defaultdict(set)
    for case in cases:
        programs, alike = dict(samples.programs.get(case.name, {})), Counter[str]()
        for entry in compiled(case).plan.ranked:
            candidate = entry.estimate.candidate
            terms, similar = tuple(sorted(candidate.terms.items())), known[candidate.strategy, case.mode, *candidate.terms]
            if not entry.fits or terms in similar or len(similar) >= PROGRAMS or alike[candidate.strategy] >= ALIKE:
                continue
            similar.add(terms)
            alike[candidate.strategy] += 1
            if candidate.label not in programs:
                programs[candidate.label] = counted(case, candidate)
                samples.programs[case.name] = programs
                samples.write()
                yield f"{case.name}, {candidate.label}"


def main(arguments: list[str] | None = None) -> int:
    """Measure, fit, write, and say what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fit", description="Fit the costs of strategies to measured runs."
    )
    parser.add_argument("--samples", type=Path, nargs="+", default=[SAMPLES], help="files of samples; new ones go to the first")
    parser.add_argument("--measure", type=float, default=float("inf"), help="minutes of measuring at most")
    parser.add_argument("--out", type=Path, default=PATH, help="file to write")
    options = parser.parse_args(arguments)
    stores = [Samples.read(path) for path in options.samples]
    for name in measure(stores, (*training_cases(), *held_out_cases()), 60 * options.measure):
        print(f"measured {name}", file=sys.stderr, flush=True)
    for name in count_programs(stores[0], training_cases()):
        print(f"counted {name}", file=sys.stderr, flush=True)
    records = read_records()
    target = target_of("cpu")
    (training, programs), (held_out, _) = observed(stores, training_cases()), observed(stores, held_out_cases())
    problems = len({entry.case.name for entry in training})
    origin = f"fitted to {len(training)} runs of {problems} problems by `python -m benchmarks.fit`"
    record = fitted_record(training, programs, target, origin)
    write_records({**records, "cpu": record}, options.out)
    print(f"wrote {options.out}")
    for words, observations in (("fitted to", training), ("held out", held_out)):
        before, after = (
            summary(regret_of(observations, replace(target, coefficients=which))) for which in (records["cpu"], record)
        )
        print(f"{words}, before: {before}\n{words}, after:  {after}")
    return 0


if __name__ == "__main__":
    start(main, "benchmarks.fit")
