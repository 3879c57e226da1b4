"""Processes that do jobs: what becomes of a crash and of a hang, and that real ones find what they should."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from stmlang.fuzz.jobs import FRONT_END, PLANNER, Draw, Evaluate, Outcome, Plan, answer
from stmlang.fuzz.trial import Trial, Way
from stmlang.fuzz.worker import PATIENCE, Worker
from tests.fuzz.serving import broken, obedient

WAY = Way("recurrent", {})
TRIAL = Trial("scan s(heads = 1, key = 1, value = 1) on chain(t = 2) { source = 1; transition = 0.5 }", "chain", "random", 3)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker(60.0, obedient)
    yield found
    found.close()


def check(name: str, optimized: bool = False) -> Evaluate:
    return Evaluate(name, TRIAL, WAY, optimized)


def test_a_process_that_dies_is_a_finding_and_is_replaced(worker):
    found = worker.ask(check("die"))
    assert found.kind == "died"
    assert (found.finding.check, found.finding.way) == ("die", "recurrent")
    assert "SIGSEGV" in found.finding.what
    found = worker.ask(check("leave"))
    assert found.finding.what == "the process ended with exit status 3: last words"
    assert worker.ask(check("anything")) == Outcome("passed")


def test_a_process_that_hangs_is_a_finding_and_is_replaced(worker, monkeypatch):
    assert worker.ask(check("anything")) == Outcome("passed")  # it is there
    with monkeypatch.context() as patch:
        patch.setattr(worker, "limit", 0.2)
        found = worker.ask(check("hang"))
    assert found.kind == "hung"
    assert found.finding.allowed == 0.2
    assert worker.ask(check("anything")) == Outcome("passed")


def test_a_reply_that_nobody_waited_for_is_not_taken_for_another(worker):
    worker.send(check("anything"))  # and whoever was to receive it was interrupted
    assert worker.connection.poll(60.0)
    assert isinstance(worker.ask(Plan(TRIAL)), tuple)
    assert worker.ask(check("anything")) == Outcome("passed")


def test_a_process_that_has_not_had_the_processor_gets_more_time(worker, monkeypatch):
    """What it has had so far counts, up to a time by the clock."""
    worker.send(check("anything"))
    sent, deadline = worker.deadline - worker.limit, worker.deadline
    now, used = deadline + 1.0, worker._used + 20.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(worker, "_processor_seconds", lambda: used)
    assert worker.spared()
    assert worker.deadline == now + worker.limit - 20.0
    used += worker.limit
    assert not worker.spared()
    used -= worker.limit
    now = sent + PATIENCE * worker.limit
    assert not worker.spared()
    monkeypatch.setattr(worker, "_processor_seconds", lambda: None)
    now = deadline + 1.0
    assert not worker.spared()
    monkeypatch.undo()
    assert worker.receive() == Outcome("passed")


def test_nothing_is_known_of_other_jobs_of_a_process_that_dies(worker):
    assert worker.ask(Plan(Trial("die", "", "", 0))) == []
    assert worker.ask(Draw(Trial("leave", "", "", 0))) is None


def test_a_process_compiles_in_haste_or_lets_xla_optimize(worker):
    first = worker.ask(Plan(TRIAL))
    assert first[1] is False
    assert worker.ask(check("anything", optimized=True)) == Outcome("passed")
    second = worker.ask(Plan(TRIAL))
    assert second[1] is True
    assert second[0] != first[0]
    assert worker.ask(Plan(TRIAL)) == second


def test_a_process_that_does_not_start():
    found = Worker(60.0, broken)
    try:
        with pytest.raises(RuntimeError, match="something is missing"):
            found.ask(check("anything"))
    finally:
        found.close()


def test_a_real_process():
    """It plans, draws and checks as this one does."""
    found = Worker(120.0)
    try:
        ways = found.ask(Plan(TRIAL))
        assert {way.strategy for way in ways} >= {"recurrent", "parallel", "linear"}
        numbers, own = found.ask(Draw(TRIAL)), TRIAL.arguments(TRIAL.compiled(None, "float64"))
        assert np.array_equal(numbers["q"], own.q)
        assert found.ask(Evaluate("linearity in v", TRIAL, ways[0])).kind == "passed"
        assert found.ask(Evaluate("relabel nodes", TRIAL, ways[0])).kind == "skipped"
        assert found.ask(Evaluate("answers", Trial("scan (", "texts", "", 0), FRONT_END)).kind == "passed"
        assert found.ask(Plan(Trial("scan (", "", "", 0))) == []
        wrong = found.ask(Evaluate("linearity in v", TRIAL, Way("raster", {"tile": (1, 1), "segments": 1})))
        assert wrong.kind == "raised"
        assert "SpecError" in wrong.finding.what
    finally:
        found.close()


def test_what_is_raised_is_told_apart():
    def outcome(text: str) -> Outcome:
        return answer(Evaluate("plans", Trial(text, "", "", 0), PLANNER))

    wrong, open_size = outcome("scan ("), outcome("scan s on chain(t) { source = 1; transition = 1 }")
    assert wrong.kind == open_size.kind == "raised"
    assert wrong.manner.startswith("raised SpecError at ")
    assert open_size.manner.startswith("raised ValueError at trial.py:")
    assert "STM" in wrong.finding.what
