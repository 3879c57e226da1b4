"""Whether two outcomes are the same, to rounding or bit for bit."""

from __future__ import annotations

import numpy as np

from stmlang.fuzz.relations.instance import Floats, Outcome
from stmlang.fuzz.trial import Finding, NothingClaimed, Way


def same(relation: str, way: Way, computed: Outcome, expected: Outcome, allowed: Outcome | None) -> Finding | None:
    """The difference that most exceeds what is allowed; any bit is too much where that is None.

    Raises NothingClaimed where nothing can be said of any number.
    """
    worst: Finding | None = None
    certain = False
    limits = None if allowed is None else dict(_named(allowed))
    for (what, array), (_, other) in zip(_named(computed), _named(expected), strict=True):
        if array.shape != other.shape:
            return Finding(relation, way.label, f"{what} has shape {array.shape}, should be {other.shape}", float("inf"), 0.0)
        limit = np.zeros(other.shape) if limits is None else limits[what]
        known = np.isfinite(limit) & (np.isfinite(other) | (limits is not None))
        certain = certain or bool(known.any()) or other.size == 0
        finding = _worst(relation, way, what, array[known], other[known], limit[known])
        if finding is not None and (worst is None or _excess(finding) > _excess(worst)):
            worst = finding
    if not certain:
        raise NothingClaimed("its numbers are too large for float64")
    return worst


def _named(outcome: Outcome) -> list[tuple[str, Floats]]:
    states = [(f"state {number} {port}", ports[port]) for number, ports in enumerate(outcome.state) for port in sorted(ports)]
    return [("h", outcome.h), *states]


def _worst(relation: str, way: Way, what: str, computed: Floats, expected: Floats, limit: Floats) -> Finding | None:
    with np.errstate(invalid="ignore"):
        error = np.abs(computed - expected)
    error = np.where(np.isfinite(error), error, np.inf)
    over = error - limit
    if not (over > 0).any():
        return None
    place = int(np.argmax(over))
    return Finding(relation, way.label, what, float(error[place]), float(limit[place]))


def _excess(finding: Finding) -> float:
    return finding.error - finding.allowed
