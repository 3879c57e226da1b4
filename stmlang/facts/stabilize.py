"""Rewriting a scan so that a stability mode holds, by changing its transition and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stmlang.facts.bounding import RAW, Pairs, norm_gate, small_columns, small_entries
from stmlang.facts.classes import Bools, PortClasses
from stmlang.facts.rewrite import refer
from stmlang.scan.expression import PORT_INDICES, Expr, GateRef, Index, LineMask, Number, Product
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Clause, Gate, Scan

ENTRIES = "transition.entries"
"""The same with entries of at most one, where `transition` drops some of them and other gates refer to it."""


def with_small_columns(scan: Scan, pairs: Pairs) -> Scan:
    """Insert P-mode: `T / max(1, sum over out of |T|)`. It has the indices that the transition had, so that other gates that
    refer to the transition see what is really applied."""
    gate = scan.gate("transition")
    raw = replace(gate, name=RAW)
    norm = norm_gate(scan, raw, pairs, columns=True) if pairs or "out" not in gate.indices else None
    return _replaced(scan, [*_before(raw, norm), replace(gate, clauses=(Clause((), small_columns(raw, norm)),))])


def with_small_entries(scan: Scan, pairs: Pairs) -> Scan:
    """Insert D-mode where the line graph is a multitree already: `T / max(1, |T|)`."""
    gate = scan.gate("transition")
    raw = replace(gate, name=RAW)
    norm = norm_gate(scan, raw, pairs, columns=False) if pairs else None
    return _replaced(scan, [*_before(raw, norm), replace(gate, clauses=(Clause((), small_entries(raw, norm)),))])


def with_single_paths(scan: Scan, classes: PortClasses, dropped: Bools | None, pairs: Pairs, bounded: bool) -> Scan:
    """Insert D-mode: drop turns between ports (`dropped[out, in]`), or, if that is None, the line edges that a multitree
    reduction of the graph drops; and make the entries small unless they are (`bounded`).

    Where the transition gets port indices that it did not declare, other gates keep seeing it without them, and whole.
    """
    gate = scan.gate("transition")
    raw = replace(gate, name=RAW)
    norm = norm_gate(scan, raw, pairs, columns=False) if pairs and not bounded else None
    value = refer(raw, gate.span) if bounded else small_entries(raw, norm)
    entries = replace(gate, name=ENTRIES, clauses=(Clause((), value),))
    whole = refer(entries, gate.span)
    indices: tuple[Index, ...] = (*PORT_INDICES, *(index for index in gate.indices if index not in PORT_INDICES))
    if dropped is None:
        clauses = [Clause((), Product(((False, LineMask(gate.span)), (False, whole)), gate.span))]
    else:
        zero = Number(0.0, gate.span)
        places = [(int(out), int(into)) for out, into in np.argwhere(dropped)]
        names = classes.names
        clauses = [
            Clause((), whole),
            *(Clause((("out", names[out]), ("in", names[into])), zero) for out, into in places),
        ]
    made = _replaced(scan, [*_before(raw, norm), entries, replace(gate, indices=indices, clauses=tuple(clauses))])
    return made if set(indices) == set(gate.indices) else _redirected(made)


def _before(raw: Gate, norm: Gate | None) -> list[Gate]:
    """What the transition is made of."""
    return [raw] if norm is None else [raw, norm]


def _replaced(scan: Scan, gates: list[Gate]) -> Scan:
    """The scan with gates in the transition's place."""
    replaced: list[Gate] = []
    for gate in scan.gates:
        replaced.extend(gates if gate.name == "transition" else [gate])
    return replace(scan, gates=tuple(replaced))


def _redirected(scan: Scan) -> Scan:
    """References to the transition lead to its entries instead."""

    def rule(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
        if isinstance(expr, GateRef):
            return GateRef(ENTRIES, expr.bind, expr.span) if expr.gate == "transition" else expr
        return rebuilt(expr, operands) if operands else expr

    gates = [
        replace(gate, clauses=tuple(Clause(clause.ports, fold(clause.value, rule, {})) for clause in gate.clauses))
        for gate in scan.gates
    ]
    return replace(scan, gates=tuple(gates))
