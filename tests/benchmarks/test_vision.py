"""The comparison of models of images measures what it says, on sizes too small to mean anything."""

from __future__ import annotations

import pytest

from benchmarks.vision import TABLES, Model, Size, measure, show

SMALL, TINY = Size(8, 2, (1e9, 1e9)), Model(dim=16, heads=2, depth=2, patch=4)


@pytest.mark.parametrize(("table", "mode"), [("models", "training"), ("layers", "inference")])
def test_a_table(table: str, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = measure(TABLES[table](SMALL, TINY), SMALL, mode, repeats=1)
    assert rows[0].ratio == 1
    for row in rows:
        assert row.ratio == pytest.approx(row.seconds / rows[0].seconds)
        assert row.compile_seconds > 0
    show(rows)
    assert all(row.name in capsys.readouterr().out for row in rows[:1])
