"""The oracles at many sets of values at once: heads never mix, so a scan with three times the heads is three scans of the same
gates.

The recurrence, its derivative and the bounds are those of a single set, walked once for all of them, which takes hardly longer
than for one; and each set gets the bits that it gets by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import edge_state_shape, leaf_sites, several
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import ReferenceResult, reference
from stmlang.oracle.tolerance import allowances
from stmlang.scan.expression import Spread, inside
from stmlang.scan.scan import Scan

Array = npt.NDArray[np.float64]

ROOM = 1 << 19
"""How many numbers the largest array of an evaluation may have: with more, sets take turns."""


def references(scan: Scan, dag: DAG, sets: Sequence[Arguments]) -> list[ReferenceResult]:
    """`reference` at each of some sets of values: all with initial states, or none."""

    def together(many: Scan, at: Arguments) -> ReferenceResult:
        return reference(many, dag, at.q, at.k, at.v, at.gates, at.initial)

    return _each(scan, dag, together, sets)


def derivatives(scan: Scan, dag: DAG, sets: Sequence[Arguments], along: Sequence[Arguments]) -> list[ReferenceResult]:
    """`derivative` at each of some sets along the change that belongs to it."""

    def together(many: Scan, at: Arguments, change: Arguments) -> ReferenceResult:
        return derivative(many, dag, at, change)

    return _each(scan, dag, together, sets, along)


def bounds(
    scan: Scan, dag: DAG, dtype: str, sets: Sequence[Arguments], along: Sequence[Arguments] | None = None
) -> list[ReferenceResult]:
    """`allowances` at each of some sets; of the derivatives along the change that belongs to it, if there are changes."""

    def together(many: Scan, at: Arguments, change: Arguments | None = None) -> ReferenceResult:
        return allowances(many, dag, dtype, at, change)

    return _each(scan, dag, together, sets, *(() if along is None else (along,)))


def _each(
    scan: Scan, dag: DAG, evaluate: Callable[..., ReferenceResult], *arguments: Sequence[Arguments]
) -> list[ReferenceResult]:
    """`evaluate` of as many sets at a time as there is room for."""
    results: list[ReferenceResult] = []
    for turn in _turns(scan, dag, arguments[0]):
        taken = [sets[turn] for sets in arguments]
        many = evaluate(copies(scan, len(taken[0])), *(side_by_side(scan, dag, sets) for sets in taken))
        results.extend(taken_apart(scan, len(taken[0]), many))
    return results


def _turns(scan: Scan, dag: DAG, sets: Sequence[Arguments]) -> Iterator[slice]:
    if not sets:
        return
    sizes = [np.size(array) for array in (sets[0].q, sets[0].k, sets[0].v, *sets[0].gates.values())]
    states = dag.edge_count * int(np.prod(edge_state_shape(scan)))
    expressions = inside(*(clause.value for gate in scan.gates for clause in gate.clauses))
    # A number for each head is not that of further heads.
    alone = any(isinstance(expr, Spread) for expr in expressions)
    length = 1 if alone else max(1, ROOM // max(states, *sizes, 1))
    yield from (slice(start, start + length) for start in range(0, len(sets), length))


# --- sets as heads


def copies(scan: Scan, count: int) -> Scan:
    """A scan with so many times the heads."""
    return replace(scan, heads=count * scan.heads)


def side_by_side(scan: Scan, dag: DAG, arguments: Sequence[Arguments]) -> Arguments:
    """Arguments of several evaluations as those of one of `copies`. All have initial states, or none."""

    def joined(axis: int, pick: Callable[[Arguments], npt.ArrayLike]) -> Array:
        return np.concatenate([np.asarray(pick(single), dtype=np.float64) for single in arguments], axis=axis)

    gates: dict[str, npt.ArrayLike] = {}
    for leaf in scan.leaves:
        axis = 0 if leaf.kind == "param" else len(leaf_sites(scan, dag, leaf))
        gates[leaf.name] = joined(axis, lambda single, name=leaf.name: single.gates[name])
    initial = None
    if arguments[0].initial is not None:
        head = -len(edge_state_shape(scan))
        initial = [
            {
                port: joined(head, lambda single, number=number, port=port: (single.initial or ())[number][port])
                for port in states
            }
            for number, states in enumerate(arguments[0].initial)
        ]
    lead = len(dag.node_shape)
    return Arguments(
        joined(lead, lambda single: single.q),
        joined(lead, lambda single: single.k),
        joined(lead, lambda single: single.v),
        gates,
        initial,
    )


def taken_apart(scan: Scan, count: int, together: ReferenceResult) -> list[ReferenceResult]:
    """The results of `copies`, one by one; `scan` is the one with its own heads."""
    outer = len(scan.directions) if scan.combine == "concat" else 1
    inner = 1 + len(several(scan.reads))
    lead, rest = together.h.shape[: -1 - inner], together.h.shape[-inner:]
    h = np.moveaxis(together.h.reshape(*lead, outer, count, scan.heads, *rest), len(lead) + 1, 0)
    head = -len(edge_state_shape(scan))
    states = [{port: np.split(array, count, axis=head) for port, array in ports.items()} for ports in together.state]
    return [
        ReferenceResult(
            h[number].reshape(*lead, outer * scan.heads, *rest),
            tuple({port: arrays[number] for port, arrays in ports.items()} for ports in states),
        )
        for number in range(count)
    ]
