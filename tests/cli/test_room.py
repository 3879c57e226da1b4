"""What is printed for people: within the terminal, in words of the spec, with the right plurals; `ok` in all JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stmlang.cli.tune import spread
from tests.helpers.compilation import quick_compilation

__all__ = ["quick_compilation"]

TEXT = """
scan s(heads = 1, key = 2, value = 2) on chain(t) {
    source = sigmoid(linear(x))
    transition = linear(x)
    stabilize P
}
"""
SCANS = {
    "image": ["std:plstm/image_p", "--set", "rows=14", "--set", "cols=14"],
    "volume": ["std:plstm/volume_d", "--set", "depth=3", "--set", "rows=4", "--set", "cols=4"],
    "chain": ["std:chain/deltanet", "--set", "time=300"],
    "graph": ["std:plstm/graph_p"],
    "tree": ["std:plstm/tree"],
}


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "s.stm").write_text(TEXT)
    return tmp_path / "s.stm"


def at_width(monkeypatch: pytest.MonkeyPatch, width: int | None) -> None:
    for name in ("explain", "tune", "bench", "listing", "inspect", "codes", "doctor"):
        monkeypatch.setattr(f"stmlang.cli.{name}.room", lambda: width)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("scan", SCANS)
def test_explanations_fit(stmlang, monkeypatch, scan, width):
    at_width(monkeypatch, width)
    result = stmlang("explain", *SCANS[scan], "--target", "cpu")
    assert result.status == 0, result.err
    lines = [line for line in result.out.splitlines() if "print(stmlang.compile" not in line]
    assert max(map(len, lines)) <= width, max(lines, key=len)
    at_width(monkeypatch, None)
    wide = stmlang("explain", *SCANS[scan], "--target", "cpu").out
    if scan != "graph":
        names = {line.split()[0] for line in wide.partition("cannot be used\n")[2].splitlines() if line}
        assert names <= {line.split()[0] for line in result.out.partition("cannot be used\n")[2].splitlines() if line}


@pytest.mark.parametrize("words", [["list"], ["doctor"], ["explain", "STM2023"], ["explain", "STM5305"]], ids=" ".join)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_others_fit(stmlang, monkeypatch, words, width):
    at_width(monkeypatch, width)
    lines = stmlang(*words).out.splitlines()
    assert max(len(line) for line in lines if not re.match(r" *\d* \|", line)) <= width  # the source is as it is


@pytest.mark.parametrize("width", [60, 80, 120])
def test_diagnostics_fit(stmlang, monkeypatch, width):
    wide = stmlang("check", "std:plstm/image_q").err
    assert max(map(len, wide.splitlines())) > 120
    monkeypatch.setattr("stmlang.cli.output.room", lambda _=None: width)
    narrow = stmlang("check", "std:plstm/image_q").err
    assert max(map(len, narrow.splitlines())) <= width
    assert narrow.split() == wide.split()


@pytest.mark.parametrize("scan", SCANS)
def test_explanations_are_in_words_of_the_spec(stmlang, scan):
    out = stmlang("explain", *SCANS[scan], "--target", "cpu").out
    assert "@" not in out
    assert not re.search(r"\b1 (heads|nodes|edges|levels|directions|line edges|sides|cells)\b", out)
    assert not re.search(r"\b0 ns\b", out)


def test_a_proof_and_an_insertion_name_leaves_as_the_spec_does(stmlang, spec):
    result = stmlang("explain", spec, "--set", "t=1", "--target", "cpu")
    assert "@" not in result.out + result.err
    assert "scan s: 1 node, 2 edges, 1 line edge, 1 level" in result.out
    assert "1 head, key 2, value 2, 1 direction" in result.out
    facts = json.loads(stmlang("explain", spec, "--emit", "facts", "--json").out)
    assert "@" not in json.dumps(facts["stability"])


def test_what_takes_no_time_is_no_stage(stmlang, spec):
    out = stmlang("explain", spec, "--set", "t=0", "--target", "cpu").out
    assert not re.search(r"\b0 ns", out)
    assert " arithmetic" not in out


def test_spreads():
    assert spread(1, 1.0) == "timed once"
    assert spread(9, 0.064) == "within 6 %"
    assert spread(9, 0.0) == "within 1 %"
    assert spread(3, 0.8) == "noisy"


def test_a_trial_that_was_timed_once_claims_no_spread(stmlang, spec):
    result = stmlang("tune", spec, "--set", "t=6", "--mode", "inference", "--budget", "1ms")
    assert result.status == 0
    assert "+-" not in result.out
    assert re.search(r"1\.00x +(timed once|within \d+ %|noisy)", result.out)


JSON = {
    "check": ["check", "s.stm"],
    "explain": ["explain", "s.stm", "--set", "t=3", "--target", "cpu"],
    "explain graph": ["explain", "std:plstm/graph_p", "--target", "cpu"],
    "explain code": ["explain", "STM2023"],
    **{f"--emit {stage}": ["explain", "s.stm", "--set", "t=3", "--emit", stage, "--target", "cpu"] for stage in
       ("tree", "scan", "facts", "plan", "jaxpr")},
    "compile": ["compile", "s.stm", "--set", "t=3", "-o", "op.stmx"],
    "tune": ["tune", "s.stm", "--set", "t=6", "--mode", "inference", "--budget", "1ms"],
    "bench": ["bench", "s.stm", "--set", "t=3", "--mode", "inference", "--repeats", "1"],
    "list": ["list"],
    "show": ["show", "s.stm"],
    "doctor": ["doctor"],
}  # fmt: skip


@pytest.mark.parametrize("command", JSON)
def test_json_begins_with_ok(stmlang, spec, monkeypatch, command):
    monkeypatch.chdir(spec.parent)
    result = stmlang(*JSON[command], "--json")
    assert result.status == 0, result.out
    assert next(iter(json.loads(result.out).items())) == ("ok", True)


def test_json_of_what_fails(stmlang, spec, monkeypatch):
    monkeypatch.chdir(spec.parent)
    (spec.parent / "bad.stm").write_text("scan s on chain(t) { source = 1 }\n")
    for words in (["check"], ["explain"], ["tune"], ["bench"], ["compile", "-o", "a.stmx"]):
        found = json.loads(stmlang(words[0], "bad.stm", *words[1:], "--json").out)
        assert next(iter(found.items())) == ("ok", False)
