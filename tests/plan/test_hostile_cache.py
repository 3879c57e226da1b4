"""Files of the cache that were damaged, or written by somebody else: never used, never a crash."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stmlang.cost import calibration
from stmlang.cost.lookup import target_of
from stmlang.cost.target import CPU, Target
from stmlang.plan import explain_text, make_plan, plan_from_json, plan_json, tuned
from stmlang.plan.tuned import Device, Measured, keep, key_of, look_up, place_of
from stmlang.source.diagnostic import SpecError
from tests.plan.scans import grid, problem

HERE = Device("cpu", "x86_64 tester", 2)
HUGE = int("9" * 400)

odd = st.one_of(
    st.sampled_from([HUGE, -HUGE, 10**4000, 1e308, -1e308, 1e-320, math.inf, -math.inf, math.nan, -1, 0, 2**63, True, None]),
    st.sampled_from(["", "\x1b[31m", "\ud800", "x" * 5000, "9" * 400, [], {}, [[]], [HUGE], {"a": HUGE}]),
    st.text(max_size=5),
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("STMLANG_CACHE", str(tmp_path / "cache"))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a value."""
    found = [path]
    if isinstance(value, dict):
        found += [place for key in value for place in places(value[key], (*path, key))]
    elif isinstance(value, list):
        found += [place for at in range(len(value)) for place in places(value[at], (*path, at))]
    return found


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """The value with another one at a place; `missing` for none."""
    if not path:
        return to
    copy = value.copy()
    if len(path) == 1 and to == "missing":
        copy.pop(path[0])
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


def spoilt(draw: st.DataObject, found: Any) -> bytes:
    """A file's content with a value or two replaced, or with bytes changed."""
    for _ in range(draw.draw(st.integers(1, 2))):
        found = changed(found, draw.draw(st.sampled_from(places(found))), draw.draw(st.one_of(odd, st.just("missing"))))
        if not isinstance(found, dict | list):
            break
    with_digits = json.dumps(found) if not _long(found) else "9" * 4500
    content = with_digits.encode("utf-8", "surrogatepass")
    if draw.draw(st.booleans()):
        at = draw.draw(st.integers(0, len(content)))
        content = content[:at] + draw.draw(st.binary(max_size=4)) + content[at + 1 :]
    return content


def _long(value: Any) -> bool:
    try:
        json.dumps(value)
    except ValueError:
        return True
    return False


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_tuned_record(draw):
    given = problem(grid(2, 2))
    place = place_of(key_of(given, HERE))
    place.unlink(missing_ok=True)
    names = ("chunkwise tile=2x2", "recurrent")
    measured = [Measured(name, 1e-3 * at, 1.0 * at, 0.1, 1.0, 1000, turns=9) for at, name in enumerate(names, 1)]
    keep(key_of(given, HERE), names[0], "checked", measured, names, None)
    place.write_bytes(spoilt(draw, json.loads(place.read_bytes())))
    for other in (given, problem(grid(3, 2))):
        plan = make_plan(other, CPU, tuned=look_up(other, HERE))
        text = explain_text(plan)
        assert text.replace("\n", "").isprintable()
        assert plan_from_json(plan_json(plan)) == plan
    record = tuned.read(place)
    assert record is None or record.measured


@pytest.mark.parametrize("name", ["temporary_bytes", "seconds", "ratio", "noise", "compile_seconds", "turns", "label", "fault"])
def test_a_number_of_400_digits(name):
    given = problem(grid(6, 5))
    label = make_plan(given, CPU).chosen.candidate.label
    keep(key_of(given, HERE), label, "checked", [Measured(label, 1e-3, 1.0, 0.1, 1.0, 1000)], [label], None)
    place = place_of(key_of(given, HERE))
    found = json.loads(place.read_bytes())
    found["measured"][0][name] = HUGE
    place.write_text(json.dumps(found))
    assert tuned.read(place) is None
    text = explain_text(make_plan(given, CPU, tuned=look_up(given, HERE)))
    assert "is damaged, or of another version" in text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_calibration(draw):
    place = calibration.save(CPU)
    place.write_bytes(spoilt(draw, json.loads(place.read_bytes())))
    found = calibration.load()
    assert found is None or isinstance(found, Target)
    assert explain_text(make_plan(problem(grid(6, 5)), target_of("cpu")))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_stored_plan(draw):
    """What an artifact holds: a plan, or STM5008."""
    text = plan_json(make_plan(problem(grid(2, 2)), CPU))
    found = spoilt(draw, json.loads(text)).decode("utf-8", "replace")
    with suppress(SpecError):
        plan_from_json(found)
