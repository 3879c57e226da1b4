"""The fit of costs: it finds what was planted, and says what it cannot know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fit import Observed, fitted_instructions, fitted_record, problem_of, regret_of, summary
from benchmarks.fitting import SHARP, Observations, fit, regrets
from benchmarks.problems import held_out_cases, training_cases
from benchmarks.regret import row_of
from benchmarks.samples import Sample, Samples, counted, timed, worth_timing
from stmlang.cost.coefficients import Coefficients, Weights
from stmlang.cost.roofline import estimate
from stmlang.cost.settings import freeze, settings_dict
from stmlang.cost.target import CPU
from stmlang.plan import make_plan

SESSIONS, CANDIDATES, TERMS = 40, 6, 4


def planted(noise: float, seed: int = 0) -> tuple[Observations, np.ndarray]:
    """Times of a linear model, those of each session off by a factor of its own, as on a machine that others use."""
    random = np.random.default_rng(seed)
    weights = np.array([0.2, 1.0, 7.0, 30.0])
    terms = random.lognormal(0, 1.5, (SESSIONS * CANDIDATES, TERMS))
    session = np.repeat(np.arange(SESSIONS), CANDIDATES)
    busy = random.lognormal(0, 0.3, SESSIONS)[session]
    seconds = terms @ weights * busy * random.lognormal(0, noise, len(terms))
    return Observations(terms, seconds, session), weights


@pytest.mark.parametrize(("noise", "off"), [(0.0, 0.2), (0.05, 0.3)])
def test_planted_coefficients_are_found(noise: float, off: float) -> None:
    seen, weights = planted(noise)
    found = fit(seen, np.ones(TERMS))
    level = np.exp(np.mean(np.log(found / weights)))
    np.testing.assert_allclose(found / level, weights, rtol=off)
    assert np.mean(regrets(seen.terms @ found, seen)) < 1.02 < np.mean(regrets(seen.terms @ np.ones(TERMS), seen))


def test_what_nothing_depends_on_stays() -> None:
    seen, _ = planted(0.0)
    unused = replace(seen, terms=np.concatenate([seen.terms, np.zeros((len(seen.terms), 1))], 1))
    assert fit(unused, np.full(TERMS + 1, 3.0))[-1] == pytest.approx(3.0)


def test_regret_is_what_the_choice_loses() -> None:
    seen = Observations(np.ones((4, 1)), np.array([2.0, 1.0, 5.0, 10.0]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(regrets(np.array([1.0, 2.0, 1.0, 2.0]), seen), [2.0, 1.0])
    assert summary({"a": 2.0, "b": 1.0}) == "2 problems: regret at most 2.00, median 1.50, mean 1.500, 1 above 1.2"


def observations_of(number: int, record: Coefficients) -> list[Observed]:
    """A problem's candidates as if they took exactly what a record says."""
    case = training_cases()[number]
    given, target = problem_of(case), replace(CPU, coefficients=record)
    found: list[Observed] = []
    for entry in make_plan(given, target).ranked:
        candidate = entry.estimate.candidate
        seconds = (estimate(candidate, given, target).seconds,)
        config = freeze(settings_dict(candidate.settings))
        found.append(Observed(case, given, Sample(candidate.strategy, config, seconds, candidate.op_count, 0.0), number))
    return found


def test_a_record_is_fitted_to_its_own_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a record in which everything counts once: afterwards the choices are those that the times tell."""
    monkeypatch.setattr("benchmarks.fit.CACHES", (CPU.coefficients.cache,))
    monkeypatch.setattr("benchmarks.fit.FRESH", (CPU.coefficients.fresh,))
    seen = [entry for number in range(8) for entry in observations_of(number, CPU.coefficients)]
    unseen = {seen[0].sample.strategy: {"never timed": Weights(arithmetic=3.0)}}
    blank = replace(CPU, coefficients=Coefficients(measured=False, origin="", cache=1, fresh=1, stages=unseen))
    record = fitted_record(seen, (), blank, "planted")
    assert (record.measured, record.origin) == (True, "planted")
    assert record.weights(seen[0].sample.strategy, "never timed").arithmetic == 3.0
    before, after = (regret_of(seen, replace(CPU, coefficients=coefficients)) for coefficients in (blank.coefficients, record))
    assert max(before.values()) > 1.5
    # The fit is for an expected regret, which a choice that loses a tenth is nearly indifferent to.
    assert max(after.values()) < 1 + 1.1 * SHARP
    assert np.mean([*after.values()]) < 1.02


def test_instructions_are_told_exactly() -> None:
    case = next(case for case in training_cases() if case.shape.family == "chain" and case.mode == "inference")
    given = problem_of(case)
    plan = make_plan(given, CPU, strategy="linear")
    programs: list[Observed] = []
    for entry in plan.ranked:
        if entry.estimate.candidate.strategy == "linear":
            programs.append(Observed(case, given, counted(case, entry.estimate.candidate), -1))
    record = Coefficients(measured=False, origin="", cache=1, fresh=1)
    numbers = fitted_instructions(programs, replace(CPU, coefficients=record), record)
    told = replace(record, instructions=numbers)
    for entry in programs:
        candidate = make_plan(given, CPU, strategy="linear", settings=dict(entry.sample.config)).chosen.candidate
        assert told.instruction_count("linear", "inference", candidate.terms) == pytest.approx(
            entry.sample.instructions, rel=0.1
        )


def test_problems_are_many_and_apart() -> None:
    training, held_out = training_cases(), held_out_cases()
    names = {case.name for case in held_out}
    assert len(held_out) == len(names) >= 60
    assert not {case.name for case in training} & names
    for of in (lambda case: case.mode, lambda case: case.shape.family, lambda case: case.heads, lambda case: case.key):
        assert len({of(case) for case in held_out}) > 1


def test_samples_survive_storage(tmp_path: Path) -> None:
    samples, case = Samples(tmp_path / "samples.json"), training_cases()[0]
    sample = Sample("rows", (("axis", 0), ("tile", (2, 3))), (0.2, 0.1), 12, 1.5)
    samples.add(case, {"rows": sample})
    assert Samples.read(samples.path).cases == {case.name: [{"rows": sample}]}
    assert Samples.read(tmp_path / "none.json").cases == {}
    assert sample.usual < 0.2


def test_what_is_far_slower_soon_drops_out() -> None:
    from time import sleep

    found = timed({"fast": lambda: sleep(0.002), "slow": lambda: sleep(0.05)}, seconds=10.0, turns=6)
    assert len(found["fast"]) > len(found["slow"]) >= 2
    assert min(found["slow"]) > 0.04


def test_rivals_are_the_nearest_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    del monkeypatch
    case = next(case for case in held_out_cases() if case.shape.family == "image_d")
    plan = make_plan(problem_of(case), CPU)
    rivals = worth_timing(plan)
    assert rivals[0] == plan.chosen.candidate
    assert len(rivals) == len(set(rivals)) >= 2
    sample = Sample("rows", (), (1.0,), 1, 0.0)
    row = row_of(case, {"a": sample, "b": replace(sample, seconds=(2.0,))}, "b")
    assert (row.best, row.regret) == ("a", 2.0)
