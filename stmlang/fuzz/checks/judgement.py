"""What is computed beside what is expected and what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stmlang.fuzz.trial import Finding, NothingClaimed, Way
from stmlang.oracle.recurrence import ReferenceResult


@dataclass(frozen=True, eq=False)
class Comparison:
    """Arrays of one shape, the last one the largest difference that is allowed; infinite where nothing is."""

    name: str
    computed: Any
    expected: Any
    allowed: Any


def of_results(computed: Any, expected: ReferenceResult, allowed: ReferenceResult) -> Iterator[Comparison]:
    """The result, and the final states if there are any in `computed = (h, state or None)`."""
    h, state = computed
    states: tuple[dict[str, Any], ...] = () if state is None else state
    yield Comparison("result", h, expected.h, allowed.h)
    for number, ports in enumerate(states):
        for port, array in ports.items():
            name = f"final state of direction {number}, port {port}"
            yield Comparison(name, array, expected.state[number][port], allowed.state[number][port])


def judge(check: str, way: Way, comparisons: Iterable[Comparison]) -> Finding | None:
    """The worst of what is further off than allowed.

    Raises NothingClaimed where there are numbers, but nothing is claimed of any.
    """
    worst: tuple[float, Finding] | None = None
    numbers = claims = 0
    for comparison in comparisons:
        computed, expected, allowed = (
            np.asarray(array, dtype=np.float64) for array in (comparison.computed, comparison.expected, comparison.allowed)
        )
        if computed.shape != expected.shape:
            what = f"{comparison.name} has shape {computed.shape}, should be {expected.shape}"
            return Finding(check, way.label, what, float("inf"), 0.0)
        claim = np.isfinite(allowed)
        numbers, claims = numbers + computed.size, claims + int(claim.sum())
        with np.errstate(all="ignore"):
            error = np.abs(computed - expected)
            ratio = np.where(claim, np.where(error <= allowed, 0.0, np.where(error > allowed, error / allowed, np.inf)), 0.0)
        if not ratio.any() or (worst is not None and float(ratio.max()) <= worst[0]):
            continue
        place = np.unravel_index(int(ratio.argmax()), ratio.shape)
        at = f" at {tuple(map(int, place))}" if place else ""
        what = f"{comparison.name}{at} is {computed[place]:.9g}, should be {expected[place]:.9g}"
        worst = float(ratio.max()), Finding(check, way.label, what, float(error[place]), float(allowed[place]))
    if numbers and not claims:
        raise NothingClaimed("rounding may change these numbers beyond recognition")
    return None if worst is None else worst[1]
