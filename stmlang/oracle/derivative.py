"""Derivatives of the reference, to the last digit: the oracle for forward and reverse mode.

Every function of the language is analytic on either side of its kinks, so `f(x + 1e-30j d)` has the derivative of `f` along
`d`, times 1e-30, as its imaginary part; nothing is subtracted, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.oracle.functions import Floats, floats
from stmlang.oracle.recurrence import ReferenceResult, reference
from stmlang.scan.scan import Scan

STEP = 1e-30


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a scan is called with."""

    q: npt.ArrayLike
    k: npt.ArrayLike
    v: npt.ArrayLike
    gates: Mapping[str, npt.ArrayLike] = field(default_factory=dict[str, npt.ArrayLike])
    initial: Sequence[Mapping[str, npt.ArrayLike]] | None = None


def derivative(scan: Scan, dag: DAG, at: Arguments, along: Arguments) -> ReferenceResult:
    """The derivative of result and final states at a point along a change of all its arguments. The change may lack gates and
    states; they stay as they are then.

    Raises ValueError as `reference` does.
    """

    inputs, initial = turned(at, along)
    result = reference(scan, dag, *inputs, initial)
    state = tuple({name: slope(array) for name, array in ports.items()} for ports in result.state)
    return ReferenceResult(slope(result.h), state)


Inputs = tuple[Floats, Floats, Floats, dict[str, Floats]]


def turned(at: Arguments, along: Arguments | None) -> tuple[Inputs, list[dict[str, Floats]] | None]:
    """`(q, k, v, gates)` and the initial states, moved a little along a change in the imaginary direction, if there is one."""

    def moved(point: Mapping[str, npt.ArrayLike], change: Mapping[str, npt.ArrayLike]) -> dict[str, Floats]:
        return {name: step(array, change.get(name)) for name, array in point.items()}

    initial = None
    if at.initial is not None:
        tangents = None if along is None else along.initial
        changes: Sequence[Mapping[str, npt.ArrayLike]] = tangents or [{} for _ in at.initial]
        initial = [moved(point, change) for point, change in zip(at.initial, changes, strict=True)]
    if along is None:
        return (floats(at.q), floats(at.k), floats(at.v), moved(at.gates, {})), initial
    return (step(at.q, along.q), step(at.k, along.k), step(at.v, along.v), moved(at.gates, along.gates)), initial


def step(point: npt.ArrayLike, change: npt.ArrayLike | None) -> Floats:
    """The point, moved a little along the change in the imaginary direction."""
    array = floats(point)
    return array if change is None else array + 1j * STEP * np.asarray(change, dtype=np.float64)


def slope(moved: Floats) -> Floats:
    """The derivative that a moved value carries."""
    return moved.imag / STEP
