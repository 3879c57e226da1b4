"""Many evaluations in one: heads never mix, so a scan with three times the heads is three scans of the same gates.

The recurrence is walked once for all of them, which takes hardly longer than for one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import edge_state_shape, leaf_sites
from stmlang.oracle.derivative import Arguments
from stmlang.oracle.functions import Floats
from stmlang.oracle.recurrence import ReferenceResult
from stmlang.scan.scan import Scan

Array = npt.NDArray[np.float64]


def copies(scan: Scan, count: int) -> Scan:
    """A scan with so many times the heads."""
    return replace(scan, heads=count * scan.heads)


def side_by_side(scan: Scan, dag: DAG, arguments: Sequence[Arguments]) -> Arguments:
    """Arguments of several evaluations as those of one of `copies`. All have initial states, or none."""

    def joined(axis: int, pick: Callable[[Arguments], npt.ArrayLike]) -> Array:
        return np.concatenate([np.asarray(pick(one), dtype=np.float64) for one in arguments], axis=axis)

    gates: dict[str, npt.ArrayLike] = {}
    for leaf in scan.leaves:
        axis = 0 if leaf.kind == "param" else len(leaf_sites(scan, dag, leaf))
        gates[leaf.name] = joined(axis, lambda one, name=leaf.name: one.gates[name])
    initial = None
    if arguments[0].initial is not None:
        head = -len(edge_state_shape(scan))
        initial = [
            {port: joined(head, lambda one, number=number, port=port: (one.initial or ())[number][port]) for port in states}
            for number, states in enumerate(arguments[0].initial)
        ]
    return Arguments(
        joined(-2, lambda one: one.q), joined(-2, lambda one: one.k), joined(-2, lambda one: one.v), gates, initial
    )


def taken_apart(scan: Scan, count: int, found: ReferenceResult) -> list[ReferenceResult]:
    """The results of `copies`, one by one; `scan` is the one with its own heads."""
    outer = len(scan.directions) if scan.combine == "concat" else 1
    lead = found.h.shape[:-2]
    parts = found.h.reshape(*lead, outer, count, scan.heads, found.h.shape[-1])
    head = -len(edge_state_shape(scan))

    def state(array: Floats, number: int) -> Floats:
        return np.split(array, count, axis=head)[number]

    return [
        ReferenceResult(
            np.take(parts, number, axis=-3).reshape(*lead, outer * scan.heads, found.h.shape[-1]),
            tuple({port: state(array, number) for port, array in states.items()} for states in found.state),
        )
        for number in range(count)
    ]
