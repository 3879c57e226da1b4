"""Gates of the delta rule on any topology, `scale[out, in] * (eye - strength * u u^T)`: what a node erases is the same on all
of its edges, and how much of the rest passes is a number for each pair of them.

Where the numbers of transition and source have their dependence on `out` in common,

    transition[out, in] = share[out] * into[in] * (eye - strength * u u^T)          source[out] = share[out] * written

what leaves a node along all of its edges is one state times `share`. Both are found by reading, as in `.factored`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stmlang.facts.factored import Factored, factored_value
from stmlang.facts.rewrite import factors, product, small
from stmlang.facts.terms import PAIRS, Factor, Gates, opened, same
from stmlang.scan.expression import PORT_INDICES, Expr, GateRef, InputRef, Number, free_indices
from stmlang.scan.scan import Clause, Gate, Scan

KEYS = PAIRS[0]


@dataclass(frozen=True, slots=True)
class Overwriting:
    """`scale * (eye - strength * u u^T)` on keys. `scale` is a gate with the port indices alone, an equation for each of the
    gate's; `strength` and `u` have no port index."""

    scale: Gate
    strength: Expr
    u: Expr

    @property
    def plain(self) -> bool:
        """Whether the scale is one everywhere."""
        return all(clause.value == Number(1.0, clause.value.span) for clause in self.scale.clauses)


@dataclass(frozen=True, slots=True)
class Sharing:
    """`share` depends on `out`, `into` on `in`, `written` on neither. A source with an index of writes shares nothing, since a
    node writes one number here."""

    share: Expr
    into: Expr
    written: Expr


@dataclass(frozen=True, slots=True)
class DeltaRule:
    """A scan of the delta rule: its transition, its mark where that has the form too, and what transition and source share."""

    transition: Overwriting
    mark: Overwriting | None
    sharing: Sharing | None


def is_key(scan: Scan, u: Expr) -> bool:
    """Whether a vector is what values are written under."""
    redefined = any(gate.name == "k" for gate in scan.gates)
    match u:
        case GateRef(gate="k", bind=bind) if redefined:
            return all(entry.index == entry.declared for entry in bind)
        case InputRef(name="k", bind=bind) if not redefined:
            return all(entry.index == entry.declared for entry in bind)
        case _:
            return False


def delta_rule(scan: Scan) -> DeltaRule | None:
    """A scan's gates in these forms; None where its transition has another."""
    transition = overwriting(scan, "transition")
    return None if transition is None else DeltaRule(transition, overwriting(scan, "mark"), _sharing(scan, transition))


def overwriting(scan: Scan, name: str) -> Overwriting | None:
    """A gate of the scan, all of whose equations have the form or are zero; None where it has another."""
    gate, gates = scan.gate(name), {entry.name: entry for entry in scan.gates}
    if set(gate.indices) - set(PORT_INDICES) != set(KEYS):
        return None
    first: Factored | None = None
    scales = list[Clause]()
    for clause in gate.clauses:
        if isinstance(clause.value, Number) and clause.value.value == 0:
            scales.append(clause)
            continue
        form = factored_value(clause.value, gates) if small(clause.value) else None
        if form is None or form.pair != KEYS or not _alike(form, first, gates):
            return None
        first = first or form
        scales.append(replace(clause, value=form.scale))
    if first is None:
        return None
    ports = tuple(index for index in gate.indices if index in PORT_INDICES)
    return Overwriting(replace(gate, indices=ports, clauses=tuple(scales)), first.strength, first.u)


def _alike(form: Factored, first: Factored | None, gates: Gates) -> bool:
    """Whether what is erased is one thing for all edges of a node, and for all equations."""
    if not set(free_indices(form.scale)) <= set(PORT_INDICES) or free_indices(form.strength):
        return False
    if set(free_indices(form.u)) != {KEYS[0]}:
        return False
    return first is None or (same(form.strength, first.strength, gates) and same(form.u, first.u, gates))


def _sharing(scan: Scan, form: Overwriting) -> Sharing | None:
    """What transition and source have in common, if their dependence on `out` is."""
    source = scan.gate("source")
    clauses = (*source.clauses, *form.scale.clauses)
    if len(clauses) > 2 or any(clause.ports for clause in clauses) or "write" in source.indices:
        return None
    if not all(small(clause.value) for clause in clauses):
        return None
    gates = {entry.name: entry for entry in scan.gates}
    written, passed = (_parted(clause.value, gates) for clause in clauses)
    if not set(source.indices) <= set(PORT_INDICES):
        # Drawn into keys or values, which know no edges.
        written = _Parted(False, [], [])
    if any("in" in free_indices(factor) for _, factor in passed.sent) or not _equal(written.sent, passed.sent, gates):
        return None
    return Sharing(product(False, passed.sent, form.scale.span), passed.rest(form.scale), written.rest(source))


@dataclass(frozen=True, slots=True)
class _Parted:
    """A product by its factors with the index `out`, and the others."""

    negative: bool
    sent: list[Factor]
    kept: list[Factor]

    def rest(self, gate: Gate) -> Expr:
        return product(self.negative, self.kept, gate.span)


def _parted(expr: Expr, gates: Gates) -> _Parted:
    negative, multiplied = factors(opened(expr, gates, deep=True))
    sent = [factor for factor in multiplied if "out" in free_indices(factor[1])]
    return _Parted(negative, sent, [factor for factor in multiplied if "out" not in free_indices(factor[1])])


def _equal(first: list[Factor], other: list[Factor], gates: Gates) -> bool:
    """Whether two products have the same factors, in any order."""
    left = list(other)
    for inverted, factor in first:
        match = next((entry for entry in left if entry[0] == inverted and same(entry[1], factor, gates)), None)
        if match is None:
            return False
        left.remove(match)
    return not left
