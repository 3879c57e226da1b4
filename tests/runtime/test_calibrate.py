"""What is measured of a machine can be planned with."""

from __future__ import annotations

from pathlib import Path

import pytest

import stmlang
from stmlang.cost import calibration
from stmlang.cost.lookup import target_of
from stmlang.runtime.calibrate import MEASUREMENTS, measure, record


def test_a_measured_record_is_kept_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path))
    steps = list(measure())
    assert len(steps) == MEASUREMENTS
    found = {key: value for _, fields in steps for key, value in fields.items()}
    calibration.save(record(found))
    target = target_of("cpu")
    assert target == record(found)
    assert target.measured
    assert all(rate > 1e8 for rate in target.matmul.values())
    op = stmlang.compile("std:plstm/image_d", target="cpu", rows=4, cols=4, key=4, value=4)
    assert op.plan.target.measured
    assert "measured" in op.explain()
