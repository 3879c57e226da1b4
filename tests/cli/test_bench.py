"""`stmlang bench`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stmlang.runtime import bench
from tests.cli.test_tune import TEXT
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

SMALL = ["--set", "t=6", "--repeats", "2"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "s.stm"
    path.write_text(TEXT)
    return path


def test_both_passes_beside_softmax(stmlang, spec):
    result = stmlang("bench", spec, *SMALL)
    assert result.status == 0, result.err
    for words in ("s, forward (first the predicted choice)", "s, forward + backward", "softmax attention", "to softmax", "XLA"):
        assert words in result.out
    assert "regret" not in result.out


def test_json_of_every_candidate(stmlang, spec):
    result = stmlang("bench", spec, *SMALL, "--mode", "inference", "--all", "--batch", "2", "--json")
    assert result.status == 0, result.err
    (found,) = json.loads(result.out)["passes"]
    assert found["pass"] == "forward"
    assert len(found["candidates"]) > 2
    assert [entry["chosen"] for entry in found["candidates"]].count(True) == 1
    assert found["candidates"][0]["chosen"]
    assert found["regret"] >= 1
    assert found["softmax"]["seconds"] > 0
    least = min(entry["ratio"] for entry in found["candidates"])
    assert found["regret"] == pytest.approx(found["candidates"][0]["ratio"] / least)
    for entry in found["candidates"]:
        assert min(entry["seconds"], entry["trace_seconds"], entry["xla_seconds"], entry["predicted_bytes"]) > 0
        assert entry["temporary_bytes"] >= 0


def test_a_strategy_that_is_asked_for(stmlang, spec):
    result = stmlang("bench", spec, *SMALL, "--mode", "inference", "--strategy", "recurrent")
    assert result.status == 0
    assert "first the strategy asked for" in result.out
    assert "recurrent" in result.out


def test_attention_that_does_not_fit_is_blockwise_or_left_out(stmlang, spec, monkeypatch):
    monkeypatch.setattr(bench.AttentionSize, "pairs_bytes", lambda *_: 10**18)
    words = ["bench", spec, *SMALL, "--mode", "inference"]
    assert "softmax attention: blockwise, since its pairs do not fit" in stmlang(*words).out
    monkeypatch.setattr(bench.AttentionSize, "flops", lambda *_: 10**18)
    result = stmlang(*words, "--json")
    (found,) = json.loads(result.out)["passes"]
    assert found["softmax"]["seconds"] is None
    assert "too long" in found["softmax"]["note"]
    assert found["candidates"][0]["ratio"] is None
    assert "left out" in stmlang(*words).out


def test_an_interruption_prints_what_was_measured(stmlang, spec, monkeypatch):
    real, count = bench.Bench._row, iter(range(9))

    def row(self, estimate):
        if next(count):
            raise KeyboardInterrupt
        return real(self, estimate)

    monkeypatch.setattr(bench.Bench, "_row", row)
    result = stmlang("bench", spec, *SMALL, "--all", "--mode", "inference")
    assert result.status == 130
    assert "softmax attention" in result.out


def test_standard_input(stmlang):
    result = stmlang("bench", "-", *SMALL, stdin=TEXT.encode())
    assert result.status == 0, result.err
    assert "forward + backward" in result.out


def test_nothing_to_measure(stmlang, spec):
    result = stmlang("bench", spec, "--set", "t=0")
    assert result.status == 1
    assert "STM5403" in result.err
