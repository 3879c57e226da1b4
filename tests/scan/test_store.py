"""Scans as JSON values come back as they were, and nothing else comes of any value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stmlang.check import load
from stmlang.check.search_path import library_specs
from stmlang.scan.store import scan_from_json, scan_json


@pytest.mark.parametrize("name", sorted(name for name in library_specs() if name != "gates"))
def test_specs_of_the_library_come_back(name: str) -> None:
    scan = load(f"std:{name}")
    assert scan_from_json(json.loads(json.dumps(scan_json(scan)))) == scan


@pytest.mark.parametrize(
    "value", [None, [], {"is": "Popen"}, {"is": "Axis", "name": "t", "size": 3}, {"is": "Axis", "name": "t"}, {"is": "Mode"}]
)
def test_what_is_no_scan_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"no scan|no part|other fields"):
        scan_from_json(value)
