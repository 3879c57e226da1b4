"""`stmlang fuzz`: what it prints, its exit status, what it saves, and replaying that."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stmlang.fuzz import worker
from stmlang.fuzz.fuzzer import Fuzzer
from stmlang.fuzz.jobs import Draw, Evaluate, Outcome, Plan
from stmlang.fuzz.saved import load
from stmlang.fuzz.trial import Finding, Way
from tests.cli.command import run_process

TEXT = """
scan s(key = 2) on grid(rows, cols) {
    source = sigmoid(linear(x))
    transition[out, in] = given(-0.5, 0.5)
}
"""


class Hand:
    """In place of a process: grids of at least two rows fail `value` by `recurrent`."""

    closed = 0
    faulty = True

    def __init__(self, _: float) -> None:
        self.connection, self.deadline, self.job = object(), float("inf"), None

    def send(self, job: Any) -> None:
        self.job = job

    def receive(self) -> Any:
        return self.ask(self.job)

    def ask(self, job: Any) -> Any:
        match job:
            case Plan():
                return [Way("recurrent", {}), Way("chunkwise", {"tile": (1, 1)})]
            case Draw():
                return {"q": np.zeros(2)}
            case Evaluate(check=check, trial=trial, way=way, draws=draws):
                wrong = check == "value" and way.strategy == "recurrent" and "rows = 1," not in trial.text
                if self.faulty and wrong:
                    return Outcome("wrong", Finding(check, way.label, "`h` is off", 0.5, 1e-12), draws=1)
                return Outcome("passed", draws=draws)

    def close(self) -> None:
        Hand.closed += 1


@pytest.fixture(autouse=True)
def hand(monkeypatch: pytest.MonkeyPatch) -> type[Hand]:
    monkeypatch.setattr(worker, "Worker", Hand)
    monkeypatch.setattr("stmlang.fuzz.fuzzer.wait", lambda connections, _: connections)
    monkeypatch.setattr(Hand, "closed", 0)
    monkeypatch.setattr(Hand, "faulty", True)
    return Hand


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "s.stm"
    path.write_text(TEXT)
    return path


def test_a_finding_is_saved_small_and_replayed(stmlang, spec, tmp_path, hand):
    result = stmlang("fuzz", spec, "--examples", "60", "--out", tmp_path / "found", "--workers", "2")
    assert result.status == 1
    assert hand.closed == 2
    (path,) = (tmp_path / "found").glob("*.stm")
    assert f"stmlang fuzz --replay {path}" in result.out
    assert "value, recurrent: `h` is off (off by 0.5, allowed is 1e-12)" in result.out
    assert re.search(r"60 examples with [\d,]+ sets of values in", result.out)
    assert re.search(r"^value +\d+ +\d+ +[1-9]", result.out, re.MULTILINE)
    found = load(path)
    assert "grid(rows = 2, cols = 1)" in found.trial.text
    assert "key = 1" in found.trial.text
    again = stmlang("fuzz", "--replay", path.with_suffix(".npz"))
    assert again.status == 1
    assert "still fails: value, recurrent: `h` is off" in again.out
    hand.faulty = False
    fixed = stmlang("fuzz", "--replay", path)
    assert fixed.status == 0
    assert "passes now" in fixed.out


def test_nothing_found(stmlang, spec, tmp_path, hand):
    hand.faulty = False
    result = stmlang("fuzz", spec, "--examples", "30", "--out", tmp_path / "found", "--set", "rows=3")
    assert result.status == 0
    assert "no finding" in result.out
    assert not (tmp_path / "found").exists()


def test_json(stmlang, spec, tmp_path):
    result = stmlang("fuzz", spec, "--examples", "60", "--out", tmp_path / "found", "--json", "--seed", "5")
    found = json.loads(result.out)
    assert result.status == 1
    assert (found["ok"], found["seed"], found["examples"], found["interrupted"]) == (False, 5, 60, False)
    assert sum(entry["examples"] for entry in found["strategies"].values()) == 60
    sets = {name: entry["value_sets"] for name, entry in found["checks"].items()}
    assert sum(sets.values()) == found["value_sets"] > 40 * 60
    tried = found["checks"]["grad"]["examples"]
    assert (sets["grad"], sets["oracles"]) == (64 * tried, 8 * found["checks"]["oracles"]["examples"])
    assert set(found["strategies"]) == {"recurrent", "chunkwise"}
    assert set(found["generators"]) == {"spec"}
    (finding,) = found["findings"]
    assert finding["check"] == "value"
    assert Path(finding["file"]).exists()
    replayed = json.loads(stmlang("fuzz", "--replay", finding["file"], "--json").out)
    assert (replayed["ok"], replayed["outcome"], replayed["now"]["error"]) == (False, "wrong", 0.5)


def test_an_interruption_prints_all_there_is(stmlang, spec, tmp_path, monkeypatch, hand):
    run = Fuzzer.run

    def interrupted(fuzzer: Fuzzer, hands: Any) -> Any:
        for tried in run(fuzzer, hands):
            yield tried
            if fuzzer.kept and fuzzer.counts.total >= 10:
                raise KeyboardInterrupt

    monkeypatch.setattr(Fuzzer, "run", interrupted)
    result = stmlang("fuzz", spec, "--minutes", "60", "--out", tmp_path / "found")
    assert result.status == 130
    assert hand.closed == 1
    assert "value, recurrent" in result.out
    assert "interrupted" in result.err
    assert len(list((tmp_path / "found").iterdir())) == 2


def test_an_interruption_while_shrinking_keeps_the_finding(stmlang, spec, tmp_path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stmlang.fuzz.fuzzer.shrink", interrupted)
    result = stmlang("fuzz", spec, "--examples", "60", "--out", tmp_path / "found")
    assert result.status == 130
    assert "1 finding" in result.out
    assert load(next((tmp_path / "found").glob("*.npz"))).finding.error == 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategies", "rekurrent"], "unknown strategy `rekurrent`; there are recurrent, "),
        (["--checks", "value,valeu"], "unknown check `valeu`; there are value, "),
        (["--strategies", "front end"], "unknown strategy `front end`"),
        (["--strategies", "a,,b"], "with commas between them"),
        (["--examples", "0"], "not a positive number"),
        (["--minutes", "-1"], "not a positive number of minutes"),
        (["--seed", "-1"], "not a positive number"),
    ],
)
def test_usage_errors(stmlang, spec, options, words):
    result = stmlang("fuzz", spec, *options)
    assert result.status == 2
    assert words in result.err


def test_what_applies_to_nothing_says_so(stmlang, spec, tmp_path):
    result = stmlang("fuzz", spec, "--strategies", "delta", "--examples", "5", "--out", tmp_path)
    assert result.status == 0
    assert "nothing was tried" in result.err


def test_bad_specs_and_places(stmlang, spec, tmp_path):
    assert "STM0001" in stmlang("fuzz", tmp_path / "missing.stm").err
    assert "STM1014" in stmlang("fuzz", spec, "--set", "depth=3").err
    refused = stmlang("fuzz", spec, "--out", spec)
    assert refused.status == 1
    assert "STM5101" in refused.err


def test_bad_files_to_replay(stmlang, spec, tmp_path):
    assert "STM5501" in stmlang("fuzz", "--replay", spec).err
    assert "STM5501" in stmlang("fuzz", "--replay", tmp_path).err
    result = stmlang("fuzz", spec, "--examples", "60", "--out", tmp_path / "found")
    (path,) = (tmp_path / "found").glob("*.npz")
    with np.load(path) as archive:
        about = json.loads(str(archive["about"]))
        arrays = {name: archive[name] for name in archive.files}
    about["finding"]["check"] = "a check of old"
    np.savez(path, **{**arrays, "about": np.array(json.dumps(about))})
    assert "STM5503" in stmlang("fuzz", "--replay", path).err
    path.write_bytes(b"")
    damaged = stmlang("fuzz", "--replay", path, "--json")
    assert damaged.status == 1
    assert json.loads(damaged.out)["diagnostics"][0]["code"] == "STM5501"
    assert result.status == 1


def test_a_real_run(tmp_path):
    """Two runs in processes of their own agree to the last character, but for the time they took."""
    spec = tmp_path / "s.stm"
    spec.write_text("scan s on chain(t) { source = sigmoid(linear(x)); transition = 0.5 }")
    words = ["fuzz", spec, "--examples", "4", "--checks", "value,jit", "--strategies", "recurrent", "--json", "--out", tmp_path]
    found = [json.loads(run_process(*words).stdout) for _ in range(2)]
    assert [run.pop("spent") > 0 for run in found] == [True, True]
    assert found[0] == found[1]
    assert found[0]["examples"] == 4


def test_the_other_commands_do_without_it(tmp_path):
    code = (
        "import sys; from stmlang.cli.main import main; status = main(sys.argv[1:]); "
        "sys.exit(9 if {'hypothesis', 'stmlang.oracle', 'stmlang.fuzz'} & set(sys.modules) else status)"
    )
    spec = tmp_path / "s.stm"
    spec.write_text("scan s on chain(t = 3) { source = 1; transition = 0.5 }")
    assert run_process("check", spec, code=code).returncode == 0
