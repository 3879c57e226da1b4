"""The comparison of scans measures what it says, on sizes too small to mean anything."""

from __future__ import annotations

import pytest

from benchmarks.ratios import PAIRS, Pair, measure, show

SMALL = Pair(
    "small", "std:plstm/image_delta", "std:plstm/image_d", {"rows": 3, "cols": 2, "heads": 1, "key": 4, "value": 4}, 1e9
)


def test_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    row = measure(SMALL, "inference", repeats=1)
    assert row.ratio == pytest.approx(row.ours / row.theirs)
    assert row.recurrent > 0
    show([row])
    assert "1 of 1 rows met their targets" in capsys.readouterr().out


def test_rows_have_names_of_their_own() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)
