"""Tuned results: kept whole, used where they fit, explained where they do not, and never in the way."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace

import pytest

from stmlang.cost.cache import write_json
from stmlang.cost.target import CPU
from stmlang.plan import explain_text, make_plan, plan_from_json, plan_json, tuned
from stmlang.plan.tuned import Device, Measured, keep, key_of, look_up, place_of, winner
from tests.plan.scans import diamond, grid, problem

HERE = Device("cpu", "x86_64 tester", 2)
BIG = replace(CPU, memory=10**12)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def measured(label: str, ratio: float, fault: str = "", noise: float = 0.0) -> Measured:
    return Measured(label, ratio * 1e-3, ratio, noise, 1.0, 1000, fault)


def labels(given) -> list[str]:
    return [entry.estimate.candidate.label for entry in make_plan(given, BIG).ranked]


def tune(given, *ratios: float, faults: tuple[int, ...] = (), device: Device = HERE):
    """A record of the first candidates, with these times relative to the first whose numbers are right."""
    names = labels(given)
    found = [measured(names[at], ratio, "wrong by 2" if at in faults else "") for at, ratio in enumerate(ratios)]
    baseline = next(entry.label for entry in found if not entry.fault)
    return keep(key_of(given, device), baseline, "checked well", found, names, None)


def planned(given, device: Device | None = HERE, **options: object):
    return make_plan(given, BIG, tuned=look_up(given, device), **options)


def test_a_measured_winner_is_chosen():
    given = problem(grid(14, 14), directions=4)
    names = labels(given)
    assert planned(given).tuning == make_plan(given, BIG).tuning
    tune(given, 1.0, 0.5, 3.0)
    plan = planned(given)
    assert plan.chosen.candidate.label == names[1]
    assert plan.tuning.used
    assert plan.tuning.predicted == names[0]
    assert plan.tuning.speedup == pytest.approx(2)
    why = {entry.estimate.candidate.label: entry.why for entry in plan.ranked}
    assert why[names[0]] == "measured: 2.0x slower"
    assert why[names[2]] == "measured: 6.0x slower"
    assert why[names[3]] == "not measured"
    text = explain_text(plan)
    assert f"plan: {names[1]} (tuned: 2.00x as fast as the predicted choice, {names[0]})" in text
    assert "measured on this machine (checked well)" in text
    assert plan_from_json(plan_json(plan)) == plan


def test_predicted_plans_say_so():
    assert "(predicted: the fastest that fits)" in explain_text(planned(problem(grid(14, 14))))


def test_the_predicted_choice_may_win_or_be_wrong():
    given = problem(grid(14, 14))
    tune(given, 1.0, 0.97, 1.2)
    assert "(tuned: the predicted choice is the fastest)" in explain_text(planned(given))
    assert "as fast, within the noise" in explain_text(planned(given))
    other = problem(grid(15, 14))
    tune(other, 0.0, 1.0, 1.2, faults=(0,))
    plan = planned(other)
    assert plan.chosen.candidate.label == labels(other)[1]
    assert plan.tuning.speedup is None
    assert "the numbers of the predicted choice" in explain_text(plan)
    assert "wrong by 2" in explain_text(plan)
    assert plan_from_json(plan_json(plan)) == plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topology": grid(7, 14)}, "measured for 14 x 14; here 7 x 14"),
        ({"dtype": "bfloat16"}, "measured for float32; here bfloat16"),
        ({"mode": "inference"}, "measured for training; here inference"),
        ({"batch": 3}, "measured for batch 1; here batch 3"),
        ({"heads": 3, "key": 4}, "measured for heads 2, key 8; here heads 3, key 4"),
    ],
)
def test_results_for_other_calls_are_explained(changes, words):
    tune(problem(grid(14, 14)), 1.0, 0.5)
    options = {"topology": grid(14, 14)} | changes
    plan = planned(problem(options.pop("topology"), **options))
    assert not plan.tuning.used
    assert plan.tuning.notes == (words,)
    assert f"tuned results that are not used\n  {words}\n" in explain_text(plan)
    assert plan_from_json(plan_json(plan)) == plan


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (Device("cpu", "x86_64 other", 2), "measured for device x86_64 tester; here device x86_64 other"),
        (Device("cpu", "x86_64 tester", 8), "measured for cores 2; here cores 8"),
        (Device("gpu", "H100", 2), "measured for platform cpu, device x86_64 tester; here platform gpu, device H100"),
        (None, "they are used for this machine, and the plan is for another"),
    ],
)
def test_results_of_other_machines_are_explained(device, words):
    given = problem(grid(14, 14))
    tune(given, 1.0, 0.5)
    assert planned(given, device).tuning.notes == (words,)


def test_results_of_other_versions_are_explained(monkeypatch):
    given = problem(grid(14, 14))
    tune(given, 1.0, 0.5)
    real = tuned.installed
    monkeypatch.setattr(tuned, "installed", lambda name: "9.9" if name == "jax" else real(name))
    assert planned(given).tuning.notes == (f"measured for jax {real('jax')}; here jax 9.9",)


def test_other_graphs_and_other_scans():
    tune(problem(diamond()), 1.0, 0.5)
    assert planned(problem(diamond())).tuning.used
    shorter = replace(diamond(), edges=diamond().edges[:-1])
    assert planned(problem(shorter)).tuning.notes == ()  # the graph is part of the text
    assert planned(problem(diamond(), combine="concat")).tuning.notes == ()
    assert planned(problem(diamond(), name="another")).tuning.used


def test_a_memory_limit_of_now_counts():
    given = problem(grid(32, 32))
    ranked = make_plan(given, BIG).ranked
    greedy = max(range(1, len(ranked)), key=lambda at: ranked[at].estimate.memory)
    limit = ranked[greedy].estimate.memory - 1
    assert limit >= ranked[0].estimate.memory
    tune(given, *(0.5 if at == greedy else 1.0 + at for at in range(greedy + 1)))
    assert planned(given).chosen == ranked[greedy].estimate
    plan = planned(replace(given, memory_limit=limit))
    assert plan.chosen == ranked[0].estimate
    assert "does not fit the memory limit" in plan.tuning.notes[0]


def test_a_choice_that_was_asked_for_stays():
    given = problem(grid(14, 14))
    tune(given, 1.0, 0.5)
    plan = planned(given, strategy="recurrent")
    assert plan.strategy == "recurrent"
    assert plan.tuning.notes == ("`recurrent` was asked for",)
    ignored = make_plan(given, BIG, tuned=tuned.IGNORED)
    assert ignored.chosen == make_plan(given, BIG).chosen
    assert "as asked" in explain_text(ignored)


def test_new_candidates_call_for_another_run():
    given = problem(grid(14, 14))
    record = tune(given, 1.0, 0.5, 2.0)
    names = labels(given)
    keep(record.key, names[1], "", [measured(names[1], 1.0)], names, None)  # another baseline: the old record is replaced
    assert "was not measured: tune again" in planned(given).tuning.notes[0]
    keep(record.key, names[0], "", [measured(names[0], 1.0), measured("magic", 0.5)], names, None)
    assert "no candidate any more" in planned(given).tuning.notes[0]


DAMAGE = {
    "empty": "",
    "binary": "\0\1",
    "no object": "[1]",
    "deep": "[" * 100_000,
    "no key": '{"schema": 1}',
    "schema": {"schema": 99},
    "winner": {"winner": "magic"},
    "baseline": {"baseline": "magic"},
    "axes": {"key": {"axes": 5}},
    "key": {"key": {"axes": [1]}},
    "nan": {
        "measured": [
            {
                "label": "x",
                "seconds": float("nan"),
                "ratio": 1,
                "noise": 0,
                "compile_seconds": 1,
                "temporary_bytes": 1,
                "fault": "",
            }
        ]
    },
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_record_is_ignored_with_a_note(damage):
    given = problem(grid(14, 14))
    record = tune(given, 1.0, 0.5)
    place = place_of(record.key)
    change = DAMAGE[damage]
    place.write_text(change if isinstance(change, str) else json.dumps(json.loads(place.read_text()) | change))
    plan = planned(given)
    assert not plan.tuning.used
    assert "is damaged" in plan.tuning.notes[0]
    assert place.name in plan.tuning.notes[0]
    tune(given, 1.0, 0.5)
    assert planned(given).tuning.used


def test_only_a_few_records_are_explained():
    for rows in range(1, 6):
        tune(problem(grid(rows, 14)), 1.0, 0.5)
    notes = planned(problem(grid(14, 14))).tuning.notes
    assert len(notes) == 4
    assert notes[-1] == "and 2 more"


def test_two_runs_agree():
    a, b, c = measured("a", 1.0), measured("b", 0.97), measured("c", 1.3)
    assert winner([a, b, c]) == "a"
    assert winner([a, measured("b", 0.9), c]) == "b"
    assert winner([a, measured("b", 0.93), c], previous="a") == "a"
    assert winner([a, measured("b", 0.8), c], previous="a") == "b"
    assert winner([a, measured("b", 0.8, "wrong")], previous="b") == "a"
    assert winner([a, measured("b", 0.9, noise=0.02), measured("c", 0.85, noise=0.2)]) == "b"
    assert winner([a, measured("b", 0.8, noise=0.3)]) == "a"


def test_measurements_add_up():
    given = problem(grid(14, 14))
    names = labels(given)
    tune(given, 1.0, 0.5, 2.0)
    record = keep(key_of(given, HERE), names[0], "again", [measured(names[0], 1.0)], names, names[1])
    assert [entry.label for entry in record.measured] == names[:3]
    assert record.winner == names[1]


def add(number: int) -> None:
    given = problem(grid(14, 14))
    found = [measured("a", 1.0), measured(f"b{number}", 1.0 + number)]
    keep(key_of(given, HERE), "a", "", found, ["a"], None)


def test_writers_at_the_same_time_lose_nothing(cache):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.map(add, range(12), chunksize=1)
    record = look_up(problem(grid(14, 14)), HERE).record
    assert record is not None
    assert {entry.label for entry in record.measured} == {"a", *(f"b{number}" for number in range(12))}
    assert sorted(path.suffix for path in cache.iterdir()) == [".json", ".lock"]


def test_a_failed_write_leaves_the_old_record(monkeypatch, cache):
    given = problem(grid(14, 14))
    tune(given, 1.0, 0.5)
    monkeypatch.setattr("stmlang.cost.cache.os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_json(place_of(key_of(given, HERE)), {})
    assert planned(given).tuning.used
    assert not [path for path in cache.iterdir() if path.suffix == ".tmp"]
