"""The scan that runs against the one that was written: a stabilizer leaves alone what keeps the mode's bound.

Every other check compares with the stabilized scan, and would not see a stabilizer that divides by too much.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stmlang.facts.stabilize import ENTRIES
from stmlang.fuzz.checks.gradients import of_gradient
from stmlang.fuzz.checks.judgement import judge, of_results
from stmlang.fuzz.checks.point import Point, Together, point
from stmlang.fuzz.checks.programs import arguments_of, cotangent_of, differentiated, execute
from stmlang.fuzz.memory import remembered
from stmlang.fuzz.trial import Finding, NotApplicable, NothingClaimed, Trial, Way
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import evaluate_gates
from stmlang.oracle.values import Value
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.expression import GateRef, Index, inside
from stmlang.scan.scan import Scan

EXACT = 1e-9
"""How far beyond one rounding may take the norm of a matrix, which is left alone there; a number has to be as far below it,
since its slope is another one beyond."""
PAIRS: tuple[tuple[Index, Index], ...] = (("key", "key'"), ("value", "value'"), ("track", "track'"))


def declared(trial: Trial, way: Way) -> Finding | None:
    """Result, final states and gradient of a scan in which a mode was inserted, where it was not needed: those of the scan as
    it is written. Not where D-mode leaves out paths."""
    op, sample = trial.compiled(way, "float64"), point(trial, "float64", True)
    if not op.facts.verdict.inserted:
        raise NotApplicable("nothing was inserted")
    if any(gate.name == ENTRIES for gate in op.scan.gates):
        raise NotApplicable("paths are left out")
    written = _written(sample.together, op.facts.spec)[sample.place]
    if not keeps_bound(op, written.scan, written.dag, written.at):
        raise NothingClaimed("the transition is too large here")
    computed, gradient = execute(differentiated, op, arguments_of(written, op), cotangent_of(written, op))
    return judge("declared", way, [*of_results(computed, written.result, written.allowed), *of_gradient(written, gradient)])


@remembered(2)
def _written(together: Together, scan: Scan) -> list[Point]:
    """The same points of the scan as it is written."""
    written = replace(together, scan=scan, points=[])
    written.points.extend(replace(point, together=written) for point in together.points)
    return written.points


def keeps_bound(op: CompiledScan, scan: Scan, dag: DAG, at: Arguments) -> bool:
    """Whether the mode that was inserted holds of the transition as it is written, at the given arguments; and of what `mark`
    reads of it, also at edges behind which nothing follows. Not where further gates read it."""
    read = _readers(scan)
    if read - {"mark"}:
        return False
    for gates in evaluate_gates(scan, dag, at.q, at.k, at.v, at.gates):
        if read and not np.all(_norms(gates.mark)[0] <= 1 - EXACT):
            return False
        norms, matrices = _norms(gates.transition)
        if op.facts.verdict.mode == "P":
            into = gates.sites.line[:, 1]
            norms = np.stack([norms[into == edge].sum(axis=0) for edge in np.unique(into)] or [np.zeros(())])
        if not np.all(norms <= (1 + EXACT if matrices else 1 - EXACT)):
            return False
    return True


def _readers(scan: Scan) -> set[str]:
    """The gates that refer to the transition."""
    terms = ((gate.name, term) for gate in scan.gates for term in inside(*(clause.value for clause in gate.clauses)))
    return {name for name, term in terms if isinstance(term, GateRef) and term.gate == "transition"}


def _norms(transition: Value) -> tuple[np.ndarray[Any, np.dtype[np.float64]], bool]:
    """The spectral norm of the transition at each pair of edges, head and index on which it is no matrix; and whether it is one
    on any axis."""
    states, array = transition.states, np.asarray(transition.array, np.float64)
    pairs = [pair for pair in PAIRS if set(pair) <= set(states)]
    if not pairs:
        return np.abs(array), False
    axes = [2 + states.index(pair[side]) for side in (0, 1) for pair in pairs]
    moved: Floats = np.moveaxis(array, axes, range(-len(axes), 0))
    rows = int(np.prod(moved.shape[len(moved.shape) - len(pairs) :]))
    return np.linalg.norm(moved.reshape(*moved.shape[: -len(axes)], rows, rows), 2, axis=(-2, -1)), True
