"""Scans as JSON values come back as they were, and nothing else comes of any value."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stmlang.check import load
from stmlang.check.search_path import library_specs
from stmlang.facts import analyse
from stmlang.scan.expression import Spectral, inside
from stmlang.scan.store import scan_from_json, scan_json


@pytest.mark.parametrize("name", sorted(name for name in library_specs() if name != "gates"))
def test_specs_of_the_library_come_back(name: str) -> None:
    scan = load(f"std:{name}")
    assert scan_from_json(json.loads(json.dumps(scan_json(scan)))) == scan


def test_stabilized_scans_come_back() -> None:
    """A transition that is a matrix on a DAG is divided by a spectral norm, a form that no text can hold."""
    text = "scan s(key = 3) on dag(nodes <= 8, edges <= 16) { source[key] = linear(x); transition[key, key'] = linear(x) }"
    scan = analyse(load(text)).scan
    assert any(isinstance(expr, Spectral) for gate in scan.gates for clause in gate.clauses for expr in inside(clause.value))
    assert scan_from_json(json.loads(json.dumps(scan_json(scan)))) == scan


@pytest.mark.parametrize(
    "value", [None, [], {"is": "Popen"}, {"is": "Axis", "name": "t", "size": 3}, {"is": "Axis", "name": "t"}, {"is": "Mode"}]
)
def test_what_is_no_scan_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"no scan|no part|other fields"):
        scan_from_json(value)
