"""The benchmark of decays measures what it says, on sizes too small to mean anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.decays import CASES, PASSES, Case, Row, measure, show

PLAIN = [case for case in CASES if case.plain is not None and case.sizes["time"] == 16]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
def test_plain_scans_agree(case: Case) -> None:
    """Which `measure` asserts."""
    row = measure(replace(case, sizes={"time": 3, "key": 4, "value": 3}), "inference", repeats=1)
    assert row.over == "lax.scan"
    assert row.ratio == pytest.approx(row.ours / row.theirs)


@pytest.mark.parametrize("case", [case for case in CASES if case.strategy is not None], ids=lambda case: case.name)
def test_another_scan_in_the_place_of_a_plain_one(case: Case) -> None:
    small = dict.fromkeys(case.sizes, 2)
    row = measure(replace(case, sizes=small, other_sizes=small), "training", repeats=1)
    assert (row.over.split()[0], row.passes) == (case.strategy, "forward+backward")


def test_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show([Row("a", PASSES["training"], "walk", "lax.scan", 2e-3, 1e-3, 2.0, 1.0)])
    out = capsys.readouterr().out
    assert "2.00 MISSED" in out
    assert "0 of 1 rows" in out
