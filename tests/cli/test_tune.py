"""`stmlang tune`, and what `explain` and `compile` make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stmlang.runtime import tune
from stmlang.runtime.measure import scan_program
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

TEXT = """
scan s(heads = 1, key = 3, value = 2) on chain(t) {
    source = sigmoid(linear(x))
    transition = tanh(linear(x))
}
"""
QUICK = ["--set", "t=6", "--mode", "inference", "--budget", "1ms"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "s.stm"
    path.write_text(TEXT)
    return path


def test_a_tuned_result_is_printed_kept_and_explained(stmlang, spec, cache):
    result = stmlang("tune", spec, *QUICK)
    assert result.status == 0, result.err
    assert "the predicted choice" in result.out
    assert "checked: results as the reference has them" in result.out
    assert f"kept in {cache}" in result.out
    assert "not tried after" in result.err
    assert "the budget of 1 ms is spent" in result.err
    explained = stmlang("explain", spec, "--set", "t=6", "--mode", "inference", "--target", "cpu")
    assert "(tuned: the predicted choice is the fastest)" in explained.out
    assert "measured on this machine" in explained.out
    other = stmlang("explain", spec, "--set", "t=7", "--mode", "inference")
    assert "measured for 6; here 7" in other.out
    assert "as asked" in stmlang("explain", spec, "--set", "t=6", "--mode", "inference", "--no-tuned").out
    forced = stmlang("explain", spec, "--set", "t=6", "--mode", "inference", "--strategy", "recurrent")
    assert "`recurrent` was asked for" in forced.out
    far = stmlang("explain", spec, "--set", "t=6", "--mode", "inference", "--target", "h100")
    assert "the plan is for another" in far.out


def test_an_artifact_records_what_was_tuned(stmlang, spec, tmp_path):
    assert stmlang("tune", spec, *QUICK).status == 0
    for name, options in (("tuned", []), ("plain", ["--no-tuned"])):
        output = tmp_path / f"{name}.stmx"
        words = ["--set", "t=6", "--mode", "inference", "--batch", "1", "-o", output]
        assert stmlang("compile", spec, *words, *options).status == 0

        import stmlang as package

        tuning = json.loads(package.load(output).plan)["tuning"]
        assert tuning["used"] is (name == "tuned")
        assert tuning["measured" if name == "tuned" else "notes"]


def test_a_damaged_cache_is_a_note(stmlang, spec, cache):
    assert stmlang("tune", spec, *QUICK).status == 0
    (file,) = cache.glob("tuned-*.json")
    file.write_text("{")
    result = stmlang("explain", spec, "--set", "t=6", "--mode", "inference")
    assert result.status == 0
    assert f"`{file}` is damaged" in result.out
    assert stmlang("tune", spec, *QUICK).status == 0
    assert "(tuned:" in stmlang("explain", spec, "--set", "t=6", "--mode", "inference").out


def test_json(stmlang, spec):
    found = json.loads(stmlang("tune", spec, *QUICK, "--batch", "2", "--json").out)
    assert found["ok"] is True
    assert found["winner"] == found["predicted"] == found["tried"][0]["label"]
    assert found["speedup"] == 1
    assert found["tried"][0]["seconds"] > 0
    assert found["not_tried"]
    assert found["key"]["batch"] == 2
    assert Path(found["file"]).exists()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_wrong_numbers_are_loud(stmlang, spec, monkeypatch, options):
    count = iter(range(100))

    def spoilt(op, *arguments):
        program = scan_program(op, *arguments)
        first = next(count) == 0
        return replace(program, call=lambda *given: program.call(*given) + 0.1 * first)

    monkeypatch.setattr(tune, "scan_program", spoilt)
    monkeypatch.setattr(tune.Tuner, "run", two_trials(tune.Tuner.run))
    result = stmlang("tune", spec, "--set", "t=6", "--mode", "inference", *options)
    assert result.status == 70
    if options:
        found = json.loads(result.out)
        assert found["ok"] is False
        assert found["diagnostics"][0]["code"] == "STM5402"
        assert "off by" in found["tried"][0]["fault"]
        assert found["winner"] == found["tried"][1]["label"]
    else:
        assert "error[STM5402]" in result.err
        assert "excluded: result off by" in result.out
        assert "kept in" in result.out


def two_trials(run):
    def some(tuner):
        for number, trial in enumerate(run(tuner)):
            yield trial
            if number == 1:
                return

    return some


def test_an_interruption_keeps_what_was_measured(stmlang, spec, cache, monkeypatch):
    run = tune.Tuner.run

    def interrupted(tuner):
        yield next(run(tuner))
        raise KeyboardInterrupt

    monkeypatch.setattr(tune.Tuner, "run", interrupted)
    result = stmlang("tune", spec, "--set", "t=6", "--mode", "inference")
    assert result.status == 130
    assert "kept in" in result.out
    assert "interrupted" in result.err
    assert list(cache.glob("tuned-*.json"))


@pytest.mark.parametrize(
    ("options", "code"),
    [([], "STM5001"), (["--set", "t=0"], "STM5403"), (["--set", "t=6", "--memory-limit", "10"], "STM5005")],
)
def test_what_cannot_be_tuned(stmlang, spec, options, code):
    result = stmlang("tune", spec, *options)
    assert result.status == 1
    assert f"error[{code}]" in result.err
    assert json.loads(stmlang("tune", spec, *options, "--json").out)["diagnostics"][0]["code"] == code


def test_a_cache_that_cannot_be_written(stmlang, spec, monkeypatch):
    monkeypatch.setenv("STMLANG_CACHE", str(spec))
    result = stmlang("tune", spec, *QUICK)
    assert result.status == 1
    assert "STM5401" in result.err
    assert "set STMLANG_CACHE" in result.err
