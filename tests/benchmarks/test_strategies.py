"""The benchmark measures what it says, on sizes too small to mean anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.strategies import CASES, PASSES, Case, Row, measure, measure_flatness, show, write

SMALL = Case("D-3x2", "std:plstm/image_d", {"rows": 3, "cols": 2, "key": 4, "value": 4}, 2, 1, {"inference": 1e9}, "parallel")


@pytest.fixture(scope="module")
def row() -> Row:
    return measure(SMALL, "inference", repeats=1)


def test_a_row(row: Row) -> None:
    assert row.choice in row.tried
    assert row.best in row.tried
    assert row.met is True
    assert row.ratio == pytest.approx(row.ours / row.softmax)
    assert row.regret is not None
    assert row.regret >= 1
    assert row.compile_seconds > 0
    assert row.whole_bytes is not None
    assert len(row.tried) + row.untried >= 4


def test_flatness() -> None:
    flat = measure_flatness("flat", "std:plstm/image_d", 2, 3, "training", repeats=1)
    assert flat.name == "flat 2 to 3"
    assert flat.ratio == pytest.approx(flat.ours / flat.softmax)


def test_what_is_written(row: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    met = Row(**{**vars(row), "memory_met": True, "compile_met": True, "regret": 1.0})
    missed = Row(**{**vars(row), "met": False, "target": 1e-9, "regret": 2.0})
    write([met, missed], tmp_path / "deep" / "strategies.json")
    written = json.loads((tmp_path / "deep" / "strategies.json").read_text())
    wanted = {"name", "ours", "softmax", "ratio", "target", "regret", "compile_seconds", "temporary_bytes"}
    assert wanted <= set(written["rows"][0])
    assert "<svg" in (tmp_path / "deep" / "strategies.svg").read_text()
    show([met, missed])
    out = capsys.readouterr().out
    assert "1 of 2 rows met their targets" in out
    assert "missed: D-3x2 forward: ratio" in out
    assert "regret: D-3x2 forward" in out


def test_every_row_of_the_table_has_a_target() -> None:
    assert {case.name for case in CASES} >= {"D-14x14", "P-14x14", "D-24x24", "P-24x24", "D-64x64", "P-64x64", "chain-4096"}
    assert all(set(case.targets) == set(PASSES) for case in CASES)
