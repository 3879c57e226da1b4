"""The measured CPU record: written whole, read only where it fits."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from stmlang.cost import calibration
from stmlang.cost.lookup import target_of
from stmlang.cost.target import CPU

MEASURED = replace(CPU, matmul={"float32": 1e11, "float64": 5e10, "bfloat16": 2e10}, vector=9e9, memory=10**10)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_round_trip(cache):
    assert calibration.load() is None
    assert target_of("cpu") == CPU
    place = calibration.save(MEASURED)
    assert place.parent == cache
    assert calibration.load() == replace(MEASURED, measured=True)
    assert target_of("cpu") == target_of("auto") == replace(MEASURED, measured=True)
    assert target_of("cpu", calibrated=False) == CPU
    assert target_of("gpu").name == "h100"
    assert [entry.name for entry in cache.iterdir()] == [place.name]


@pytest.mark.parametrize("damage", ["schema", "key", "negative", "nan", "missing", "text", "empty"])
def test_a_record_that_cannot_be_trusted_is_not_used(damage):
    place = calibration.save(MEASURED)
    found = json.loads(place.read_text())
    match damage:
        case "schema":
            found["schema"] = 2
        case "key":
            found["key"]["jax"] = "0.0"
        case "negative":
            found["target"]["vector"] = -1
        case "nan":
            found["target"]["matmul"]["float32"] = math.nan
        case "missing":
            del found["target"]["bandwidth"]
        case _:
            found = "text"
    place.write_text("" if damage == "empty" else json.dumps(found))
    assert calibration.load() is None
    assert target_of("cpu") == CPU


def test_other_versions_have_another_place():
    key = calibration.machine_key()
    assert calibration.path(key) != calibration.path(key | {"jax": "0.0"})


def test_a_failed_write_leaves_nothing(monkeypatch, cache):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(calibration.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        calibration.save(MEASURED)
    assert list(cache.iterdir()) == []
