"""Tuning: what is tried, what is kept, and what compilation makes of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stmlang
from stmlang.check import load
from stmlang.compiler import Call, prepare
from stmlang.cost.target import CPU
from stmlang.plan.tuned import Device, place_of, read
from stmlang.runtime import tune
from stmlang.runtime.measure import Timing, scan_program
from stmlang.runtime.tune import Tuner

TEXT = """
scan s(heads = 1, key = 3, value = 2) on chain(t = 6) {
    source = sigmoid(linear(x))
    transition = tanh(linear(x))
    mark = param(0.5)
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def paces(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Seconds of each candidate by label, one millisecond if it is not there, instead of the machine's."""
    found: dict[str, float] = {}

    def timed(calls: dict[str, Any], repeats: int, **_: Any) -> dict[str, Timing]:
        for call in calls.values():
            call()
        return {label: Timing((found.get(label, 1e-3),) * repeats) for label in calls}

    monkeypatch.setattr(tune, "time_interleaved", timed)
    return found


def tuner(budget: float = 1e9, **options: Any) -> Tuner:
    prepared = prepare(load(TEXT, {}), Call("float32", "inference", **options))
    return Tuner(prepared, CPU, Device.cpu(), budget)


def compiled(**options: Any) -> Any:
    return stmlang.compile(TEXT, target="cpu", mode="inference", **options)


def test_the_fastest_is_kept_and_compiled(paces: dict[str, float]) -> None:
    run = tuner()
    labels = [entry.candidate.label for entry in run.candidates]
    assert labels[0] == run.plan.chosen.candidate.label == compiled().plan.chosen.candidate.label
    paces[labels[1]] = 0.4e-3
    trials = list(itertools.islice(run.run(), 3))
    assert [trial.measured.label for trial in trials] == labels[:3]
    assert not run.faults
    assert run.record == read(place_of(run.key))
    assert run.record.winner == labels[1]
    assert all(entry.compile_seconds > 0 for entry in run.record.measured)
    op = compiled()
    assert op.plan.chosen.candidate.label == labels[1]
    assert op.plan.tuning.speedup == pytest.approx(2.5)
    assert "tuned: 2.50x as fast as the predicted choice" in op.explain()
    assert compiled(tuned=False).plan.chosen.candidate.label == labels[0]
    assert "as asked" in compiled(tuned=False).explain()
    assert compiled(batch=2).plan.tuning.notes == ("measured for batch 1; here batch 2",)


def test_ties_and_a_second_run(paces: dict[str, float]) -> None:
    run = tuner()
    first, second = (entry.candidate.label for entry in run.candidates[:2])
    paces[second] = 0.96e-3
    list(itertools.islice(run.run(), 2))
    assert run.record.winner == first
    assert read(place_of(run.key)) == run.record
    paces[second] = 0.93e-3
    again = tuner()
    list(itertools.islice(again.run(), 2))
    assert again.record.winner == first
    paces[second] = 0.5e-3
    other = tuner()
    list(itertools.islice(other.run(), 2))
    assert other.record.winner == second
    third = tuner()
    assert third.candidates[0].candidate.label == first  # still what all ratios refer to


def test_the_fastest_are_compared_in_the_end(monkeypatch: pytest.MonkeyPatch, paces: dict[str, float]) -> None:
    monkeypatch.setattr(tune, "HOPELESS", 10.0)
    run = tuner()
    labels = [entry.candidate.label for entry in run.candidates]
    assert len(labels) > 1
    paces |= {label: 1e-3 * (10 + number) for number, label in enumerate(labels)}
    steps = run.run()
    for _ in labels:
        next(steps)
    assert run.record.winner == labels[0]
    paces[labels[1]] = 5e-3
    with pytest.raises(StopIteration):
        next(steps)
    assert run.record.winner == labels[1]
    assert run.record.of(labels[1]) == run.trials[1].measured
    assert run.trials[1].measured.ratio == pytest.approx(0.5)


def test_what_was_measured_before_an_interruption_is_kept(monkeypatch: pytest.MonkeyPatch, paces: dict[str, float]) -> None:
    run = tuner()
    paces[run.candidates[0].candidate.label] = 2e-3
    steps = run.run()
    next(steps)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tune, "scan_program", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert [entry.seconds for entry in read(place_of(run.key)).measured] == [2e-3]


def test_the_budget_is_kept_but_one_is_always_tried() -> None:
    run = tuner(budget=1e-9)
    assert len(list(run.run())) == 1
    assert run.record.winner == run.plan.chosen.candidate.label


def test_wrong_numbers_are_excluded(monkeypatch: pytest.MonkeyPatch, paces: dict[str, float]) -> None:
    run = tuner()
    wrong = run.candidates[0].candidate
    paces[wrong.label] = 1e-6

    def spoilt(op: Any, *arguments: Any) -> Any:
        program = scan_program(op, *arguments)
        if op.plan.chosen.candidate != wrong:
            return program
        return replace(program, call=lambda *given: program.call(*given) + 0.1)

    monkeypatch.setattr(tune, "scan_program", spoilt)
    list(itertools.islice(run.run(), 2))
    assert [entry.label for entry in run.faults] == [wrong.label]
    (found,) = tune.wrong_numbers(run.faults).diagnostics
    assert found.code == "STM5402"
    assert "result off by" in found.message
    op = compiled()
    assert op.plan.chosen.candidate.label == run.candidates[1].candidate.label
    assert "the numbers of the predicted choice" in op.explain()


def test_a_candidate_that_does_not_compile_is_excluded(monkeypatch: pytest.MonkeyPatch, paces: dict[str, float]) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no such kernel\nand more")

    monkeypatch.setattr(tune, "scan_program", fail)
    run = tuner()
    (trial,) = itertools.islice(run.run(), 1)
    assert trial.measured.fault == "RuntimeError: no such kernel"
    assert run.record is None
    assert not paces


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_cache_that_cannot_be_written_is_said_first(place: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").write_text("")
    monkeypatch.setenv("STMLANG_CACHE", str(cache / place))
    with pytest.raises(stmlang.SpecError, match="STM5401"):
        tuner()


def test_nothing_to_measure() -> None:
    with pytest.raises(stmlang.SpecError, match="STM5403"):
        Tuner(prepare(load(TEXT.replace("t = 6", "t = 0"), {}), Call()), CPU, Device.cpu(), 1.0)
