"""Many sets of values at once: every set gets the bits that it gets by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from stmlang.fuzz.checks.point import Point, points_at
from stmlang.fuzz.trial import Trial
from stmlang.oracle import value_sets
from stmlang.oracle.recurrence import ReferenceResult
from stmlang.oracle.value_sets import bounds, derivatives, references
from tests.helpers.cases import DELTA, GIVEN, NONE, SMALL, SUM

VOLUME = "    directions all concat\n    source = softplus(linear(x)); transition = given(-0.2, 0.2)\n    stabilize D\n"
NORMS = """
    w[out] = given(); source = largest(w, over = out) + sum(l1norm(w, over = out), over = out)
    transition[key, key'] = given(-1, 1)
"""
TRACKS = "    source[track] = exp(param(spread(-1, 1))); transition[track, track'] = given(-0.4, 0.4); normalize mlstm\n" + NONE
TRIALS = {
    "chain": Trial(f"scan a(heads = 2, key = 3, value = 2) on chain(t = 6) {{\n{GIVEN}{NONE}}}\n", "", "random", 0),
    "one number": Trial(f"scan a(heads = 1, key = 1, value = 1) on chain(t = 1) {{\n{GIVEN}{NONE}}}\n", "", "signs", 0),
    "matrices": Trial(f"scan a(heads = 1, key = 2, value = 1) on chain(t = 4) {{\n{DELTA}}}\n", "", "kept", 1),
    "quotients": Trial(f"scan a(heads = 1, key = 2, value = 3) on chain(t = 4) {{\n{SUM}{NONE}}}\n", "", "random", 2),
    "volume": Trial(
        f"scan a(heads = 1, key = 1, value = 1) on grid(depth = 2, rows = 1, cols = 3) {{\n{VOLUME}}}\n", "", "tiny", 3
    ),
    "norms": Trial(f"scan a(heads = 3, key = 2, value = 2) on {SMALL} {{\n{NORMS}    stabilize P\n}}\n", "", "exact", 4),
    "tracks": Trial(f"scan a(heads = 2, key = 2, value = 2, track = 2) on chain(t = 5) {{\n{TRACKS}}}\n", "", "random", 5),
}


def points(trial: Trial, count: int, dtype: str = "float64") -> list[Point]:
    op = trial.compiled(None, dtype)
    draws = trial.draws(count)
    return points_at(op.scan, op, dtype, [draw.arguments(op) for draw in draws], True, draws)


def arrays(result: ReferenceResult) -> Iterator[bytes]:
    yield result.h.tobytes()
    yield from (ports[port].tobytes() for ports in result.state for port in sorted(ports))


@pytest.mark.parametrize("room", [value_sets.ROOM, 200])
@pytest.mark.parametrize("name", TRIALS)
def test_a_set_gets_the_bits_that_it_gets_by_itself(name: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one turn, and with many."""
    monkeypatch.setattr(value_sets, "ROOM", room)
    here = points(TRIALS[name], 9)
    scan, dag = here[0].scan, here[0].dag
    sets, along = [point.at for point in here], [point.along(None) for point in here]
    with np.errstate(all="ignore"):
        for dtype in ("float64", "float32"):
            together = [
                references(scan, dag, sets),
                derivatives(scan, dag, sets, along),
                bounds(scan, dag, dtype, sets),
                bounds(scan, dag, dtype, sets, along),
            ]
            for number, (at, change) in enumerate(zip(sets, along, strict=True)):
                alone = [
                    references(scan, dag, [at]),
                    derivatives(scan, dag, [at], [change]),
                    bounds(scan, dag, dtype, [at]),
                    bounds(scan, dag, dtype, [at], [change]),
                ]
                for many, (single,) in zip(together, alone, strict=True):
                    assert list(arrays(many[number])) == list(arrays(single))


def test_points_that_are_looked_at_together_are_what_they_are_alone() -> None:
    for name in ("chain", "quotients", "norms"):
        together = points(TRIALS[name], 9)
        for draw, point in enumerate(together):
            (alone,) = points(replace(TRIALS[name], draw=draw), 1)
            assert list(arrays(point.result)) == list(arrays(alone.result))
            assert list(arrays(point.allowed)) == list(arrays(alone.allowed))
            assert [slope.expected for slope in point.slopes] == [slope.expected for slope in alone.slopes]
            assert [slope.allowed for slope in point.slopes] == [slope.allowed for slope in alone.slopes]


def test_a_set_that_overflows_takes_none_along() -> None:
    text = TRIALS["chain"].text.replace("mark[in] = given()", "mark = exp(900 * given())")
    here = points(Trial(text, "", "exact", 0), 12)
    known = [point for point in here if point.together.results[point.place] is not None]
    assert 0 < len(known) < len(here)
    for point in known:
        (alone,) = points(Trial(text, "", "exact", 0, draw=point.draw), 1)
        assert list(arrays(point.allowed)) == list(arrays(alone.allowed))


def test_a_matrix_that_is_no_number_bounds_nothing() -> None:
    """What is not finite has no singular values."""
    body = "    source = 1; transition[key, key'] = given()\n    stabilize none\n"
    trial = Trial(f"scan a(heads = 1, key = 2, value = 1) on chain(t = 3) {{\n{body}}}\n", "", "random", 0)
    op = trial.compiled(None, "float64")
    (point,) = points(trial, 1)
    gates = {name: np.full(np.shape(array), np.inf) for name, array in point.at.gates.items()}
    at = replace(point.at, gates=gates)
    with np.errstate(all="ignore"):
        (bound,) = bounds(op.scan, op.dag, "float64", [at])
    assert not np.isfinite(bound.h).all()


def test_each_draw_is_drawn_anew_and_always_alike() -> None:
    trial = Trial(TRIALS["chain"].text.replace("mark[in] = given()", "mark[in] = given(0, 1)"), "", "random", 0)
    op = trial.compiled(None, "float64")
    drawn = [draw.arguments(op) for draw in trial.draws(64)]
    again = [draw.arguments(op) for draw in trial.draws(64)]
    for first, second in zip(drawn, again, strict=True):
        assert all(np.array_equal(first.gates[name], second.gates[name]) for name in first.gates)
    assert len({np.asarray(at.q).tobytes() for at in drawn}) == 64
    marks = np.concatenate([np.ravel(np.asarray(at.gates["mark"])) for at in drawn])
    for special in (0.0, 1.0, -1.0, 1000.0):
        assert (marks == special).any()
    assert ((marks == 0) & np.signbit(marks)).any()
    assert ((np.abs(marks) > 0) & (np.abs(marks) < 1e-29)).any()


def test_along_everything_every_array_is_moved() -> None:
    """A gradient that is wrong anywhere is met by each draw."""
    for point in points(TRIALS["chain"], 9)[1:]:
        assert set(point.slopes[-1].changes) == set(range(len(point.arrays[0])))
        assert all(change.all() for change in point.slopes[-1].changes.values())
    assert len({tuple(point.slopes[0].changes) for point in points(TRIALS["chain"], 9)[1:]}) > 3
