"""Batches: what is tried, counted, and kept, with an evaluator that finds what the test wants it to find."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from stmlang.fuzz.examples import shrink
from stmlang.fuzz.fuzzer import BATCH, SHRINK_SECONDS, Fuzzer, Source, Task, _step, batch, strategy_names
from stmlang.fuzz.jobs import FRONT_END, PLANNER, PLANS, Draw, Evaluate, Job, Outcome, Plan
from stmlang.fuzz.saved import load
from stmlang.fuzz.trial import Finding, Trial, Way

CHECKS = tuple(f"check {number}" for number in range(10))
TRIALS = st.builds(
    Trial, st.text("ab", min_size=1, max_size=6), st.sampled_from(["one", "two"]), st.just("random"), st.integers(0, 9)
)
TEXTS = st.builds(Trial, st.text("xy", max_size=6), st.just("texts"), st.just(""), st.just(0))


class Fake:
    """Every trial has the strategies of its letters; `check 3` does not apply to texts with `b`; `fails` says what is found."""

    def __init__(self, fails: Any = lambda _: None) -> None:
        self.fails, self.jobs = fails, []

    def ask(self, job: Job) -> Any:
        self.jobs.append(job)
        match job:
            case Plan(trial=trial):
                strategies = {"a": ("recurrent", "dense"), "b": ("recurrent", "linear")}
                names = sorted({name for letter in trial.text for name in strategies[letter]})
                return [
                    Way(name, {"chunk": size} if name == "linear" else {})
                    for name in names
                    for size in (1, 2)[: 1 + (name == "linear")]
                ]
            case Draw():
                return {"q": np.zeros(3)}
            case Evaluate(check=check, trial=trial, way=way):
                if check == "check 3" and "b" in trial.text:
                    return Outcome("skipped")
                what = self.fails(job)
                return Outcome("wrong", Finding(check, way.label, what, 1.0, 0.0)) if what else Outcome("passed")


def tried(task: Task, examples: int, evaluator: Fake | None = None, folder: Path | None = None) -> tuple[Fuzzer, list[Any]]:
    fuzzer = Fuzzer(task, folder, examples, None)
    return fuzzer, list(fuzzer.alone(evaluator or Fake()))


def task(strategies: tuple[str, ...] | None = None, texts: bool = True, seed: int = 0) -> Task:
    return Task(
        Source(TRIALS, TEXTS if texts else None),
        seed,
        strategies or strategy_names(),
        CHECKS,
        ("answers", "reports") if texts else (),
    )


def test_strategies_checks_and_settings_come_up_equally_often():
    fuzzer, found = tried(task(), 600)
    assert fuzzer.counts.total == 600 == sum(example.outcome.kind != "skipped" for example in found)
    strategies = {name: count for name, (count, _, _) in fuzzer.counts.by(1).items()}
    assert set(strategies) == {"recurrent", "dense", "linear", FRONT_END.strategy}
    own = [count for name, count in strategies.items() if name != FRONT_END.strategy]
    assert max(own) - min(own) < 0.25 * max(own)
    both = Counter((key[1], key[2]) for key in fuzzer.counts.examples.elements())
    for name in ("recurrent", "dense", "linear"):
        counts = [both[name, check] for check in CHECKS if check != "check 3"]
        assert min(counts) > 0
        assert max(counts) <= 2 * min(counts) + 3
    settings = Counter(example.job.way.label for example in found if example.job.way.strategy == "linear")
    assert settings["linear chunk=1"] < 2 * settings["linear chunk=2"]
    assert settings["linear chunk=2"] < 2 * settings["linear chunk=1"]
    assert both["linear", "check 3"] == 0
    assert fuzzer.counts.skipped > 0
    assert {example.job.optimized for example in found} == {False, True}


def test_the_same_seed_tries_the_same():
    assert tried(task(), 150)[1] == tried(task(), 150)[1]
    assert tried(task(), 150)[1] != tried(task(seed=1), 150)[1]


def test_batches_do_not_depend_on_each_other():
    whole = tried(task(), 2 * BATCH)[1]
    lane, evaluator, reply = batch(task(), 1), Fake(), None
    second = []
    while (step := _step(lane, reply)) is not None:
        reply = evaluator.ask(step[1])
        if isinstance(step[1], Evaluate):
            second.append(step[1])
    assert [example.job for example in whole][-len(second) :] == second


def test_only_what_was_asked_for_is_tried():
    fuzzer, found = tried(task(("linear",)), 100)
    assert {example.job.way.strategy for example in found} == {"linear"}
    assert fuzzer.counts.total == 100
    nothing, _ = tried(task(("delta",), texts=False), 100)
    assert nothing.counts.total == 0


def test_a_rare_strategy_is_sought():
    rare = Source(st.builds(Trial, st.sampled_from(["a"] * 24 + ["b"]), st.just("one"), st.just("random"), st.integers(0, 999)))
    fuzzer, _ = tried(Task(rare, 0, strategy_names(), CHECKS), 600)
    assert fuzzer.counts.by(1)["linear"][0] > 60


def test_the_first_finding_is_kept_at_once_and_then_a_smaller_one(tmp_path, monkeypatch):
    def fails(job: Evaluate) -> str:
        return "wrong" if job.check == "check 5" and job.way.strategy == "linear" and job.trial.text.count("b") >= 2 else ""

    kept_before_shrinking = []

    def watched(*arguments: Any) -> None:
        kept_before_shrinking.append(len(list(tmp_path.glob("*.npz"))))
        shrink(*arguments)

    monkeypatch.setattr("stmlang.fuzz.fuzzer.shrink", watched)
    fuzzer, _ = tried(task(), 300, Fake(fails), tmp_path)
    assert kept_before_shrinking == [1]
    (kept,) = fuzzer.kept.values()
    assert kept.saved.trial.text == "bb"
    assert kept.saved.finding.check == "check 5"
    assert load(kept.path).trial == kept.saved.trial
    assert len(list(tmp_path.iterdir())) == 2
    assert fuzzer.counts.findings.total() >= 1
    assert fuzzer.counts.by(2)["check 5"][2] == fuzzer.counts.findings.total()


def test_shrinking_ends_though_no_time_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("stmlang.fuzz.fuzzer.time", SimpleNamespace(monotonic=lambda: now[0]))

    class Slow(Fake):
        def ask(self, job: Job) -> Any:
            now[0] += 25.0
            return super().ask(job)

    def fails(job: Evaluate) -> str:
        return "wrong" if job.check == "check 5" and job.way.strategy == "linear" else ""

    evaluator = Slow(fails)
    fuzzer = Fuzzer(task(), None, 300, None)
    for example in fuzzer.alone(evaluator):
        if example.outcome.finding is not None:
            break
    (kept,) = fuzzer.kept.values()
    begun = next(place for place, job in enumerate(evaluator.jobs) if isinstance(job, Draw))
    assert 25.0 * (len(evaluator.jobs) - begun) <= SHRINK_SECONDS + 4 * 25.0
    assert kept.saved.finding.check == "check 5"


def test_findings_that_differ_are_kept_apart(tmp_path):
    def fails(job: Evaluate) -> str:
        return "always" if job.check in ("check 1", "reports") else ""

    fuzzer, _ = tried(task(), 300, Fake(fails), tmp_path)
    strategies = {name for name in fuzzer.counts.by(1) if name != FRONT_END.strategy}
    assert {(check, strategy) for check, strategy, _ in fuzzer.kept} == {("reports", FRONT_END.strategy)} | {
        ("check 1", strategy) for strategy in strategies
    }
    texts = fuzzer.kept["reports", FRONT_END.strategy, "wrong"]
    assert texts.saved.trial.text == ""
    assert texts.saved.numbers is None
    assert fuzzer.counts.findings.total() > len(fuzzer.kept)


def test_a_scan_that_cannot_be_planned_is_a_finding():
    class Planless(Fake):
        def ask(self, job: Job) -> Any:
            if isinstance(job, Plan):
                return []
            return Outcome("raised", Finding(PLANS, "", "no", 1.0, 0.0)) if isinstance(job, Evaluate) else None

    fuzzer, _ = tried(task(texts=False), 20, Planless())
    assert list(fuzzer.kept) == [(PLANS, PLANNER.strategy, "raised")]
    assert fuzzer.kept[PLANS, PLANNER.strategy, "raised"].saved.trial.text == "a"


class Hand(Fake):
    """An evaluator that answers later: in the order that `turns` says."""

    def __init__(self, fails: Any = lambda _: None) -> None:
        super().__init__(fails)
        self.deadline, self.connection, self.job = float("inf"), object(), None

    def send(self, job: Job) -> None:
        assert self.job is None
        self.job = job

    def receive(self) -> Any:
        job, self.job = self.job, None
        assert job is not None
        return self.ask(job)


@pytest.mark.parametrize("hands", [1, 2, 3])
def test_several_hands_try_the_same_examples(hands, monkeypatch):
    turns = itertools.cycle([0, 1, 1, 2, 0, 1])
    monkeypatch.setattr("stmlang.fuzz.fuzzer.wait", lambda connections, _: [connections[next(turns) % len(connections)]])
    fuzzer = Fuzzer(task(), None, 500, None)
    found = list(fuzzer.run([Hand() for _ in range(hands)]))
    alone, expected = tried(task(), 500)
    assert fuzzer.counts == alone.counts
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_time_ends_it(monkeypatch):
    now = itertools.count()
    monkeypatch.setattr("stmlang.fuzz.fuzzer.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("stmlang.fuzz.fuzzer.wait", lambda connections, _: connections)
    fuzzer = Fuzzer(task(), None, None, 300.0)
    found = list(fuzzer.run([Hand()]))
    assert 10 < len(found) < 300
