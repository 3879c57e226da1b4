"""The benchmark of molecules measures what it says, on a batch too small to mean anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import graphs
from stmlang.experiments.tudataset.settings import Settings
from stmlang.graph import batch
from stmlang.graph.build import ragged_dag
from tests.experiments import tiny


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "REPEATS", 1)
    monkeypatch.setattr(graphs, "STRATEGIES", ("packed", "packed_nodes"))
    here = batch([ragged_dag(3, np.asarray([0, 0]), np.asarray([1, 2])), ragged_dag(2, np.asarray([0]), np.asarray([1]))])
    rows = graphs.rows_of("D", here)
    assert [row["strategy"] for row in rows] == ["packed"]
    assert rows[0]["ratio"] == pytest.approx(rows[0]["both"] / rows[0]["gin"])
    assert all(rows[0][name] > 0 for name in ("forward", "both", "gin"))


def test_epoch(tmp_path: Path) -> None:
    training = replace(Settings().training, batch=8)
    settings = Settings(data=tiny.write(tmp_path), training=training, hidden=8)
    row = graphs.epoch(tiny.NAME, settings, "gin")
    assert (row["model"], row["graphs"], row["judged"]) == ("gin-4", 24, 6)
    assert 0 < row["seconds"] < row["first"], "the first one compiles"
    assert row["processor_seconds"] > 0
