"""Transitions of the delta rule's form: `scale * (eye[key, key'] - strength * u[key] * u[key'])`, found by reading."""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.facts.rewrite import factors, product, renamed, small
from stmlang.scan.expression import Expr, Eye, GateRef, Index, Number, Sum, free_indices
from stmlang.scan.scan import Scan

PAIRS: tuple[tuple[Index, Index], ...] = (("key", "key'"), ("value", "value'"), ("track", "track'"))
"""Row and column index of a matrix on each state axis."""


@dataclass(frozen=True, slots=True)
class Factored:
    """`scale * (eye - strength * u u^T)` on the axis `pair`; `u` has the row index, `scale` and `strength` neither of the two.

    Port indices may be free in all three."""

    pair: tuple[Index, Index]
    scale: Expr
    strength: Expr
    u: Expr


def one_minus_outer(expr: Sum) -> Factored | None:
    """`eye - a * u * u'`, the two terms in any order, `scale` one. Vectors are compared as they are written."""
    if len(expr.terms) != 2:
        return None
    for (negative, one), (sign, other) in (expr.terms, expr.terms[::-1]):
        if not negative and isinstance(one, Eye) and small(other):
            pair = next((pair for pair in PAIRS if set(pair) == {one.first, one.second}), None)
            found = None if pair is None else _outer(sign, other, pair)
            if found is not None:
                return found
    return None


def _outer(negative: bool, term: Expr, pair: tuple[Index, Index]) -> Factored | None:
    """A term of the sum as minus an outer product of a vector with itself."""
    flipped, parts = factors(term)
    row, column = pair
    rows = [(inverted, part) for inverted, part in parts if row in free_indices(part)]
    columns = [(inverted, part) for inverted, part in parts if column in free_indices(part)]
    if len(rows) != 1 or len(columns) != 1 or rows[0][0] or columns[0][0]:
        return None
    u, other = rows[0][1], columns[0][1]
    if u is other or column in free_indices(u) or renamed(u, {row: column}) != other:
        return None
    rest = [(inverted, part) for inverted, part in parts if part is not u and part is not other]
    return Factored(pair, Number(1.0, term.span), product(negative == flipped, rest, term.span), u)


def factored_value(expr: Expr, known: dict[str, Factored | None]) -> Factored | None:
    """A value in that form: the sum itself, or it, or a reference to a gate of that form, times what lacks both indices."""
    if not small(expr):
        return None
    negative, parts = factors(expr)
    cores: list[tuple[int, Factored]] = []
    for number, (inverted, part) in enumerate(parts):
        core = one_minus_outer(part) if isinstance(part, Sum) else _referred(part, known) if isinstance(part, GateRef) else None
        if core is not None and not inverted:
            cores.append((number, core))
    if len(cores) != 1:
        return None
    number, core = cores[0]
    rest = [part for position, part in enumerate(parts) if position != number]
    if any(set(core.pair) & set(free_indices(part)) for _, part in rest):
        return None
    scale = product(negative, [*rest, (False, core.scale)], expr.span)
    return Factored(core.pair, scale, core.strength, core.u)


def _referred(expr: GateRef, known: dict[str, Factored | None]) -> Factored | None:
    """A gate of that form, referred to by its own indices or transposed, which is the same."""
    found = known.get(expr.gate)
    if found is None:
        return None
    row, column = found.pair
    swapped: dict[Index, Index] = {row: column, column: row}
    kept = all(entry.index == entry.declared for entry in expr.bind)
    turned = all(entry.index == swapped.get(entry.declared, entry.declared) for entry in expr.bind)
    return found if kept or turned else None


def factored_gates(scan: Scan) -> dict[str, tuple[Factored | None, ...]]:
    """For each gate with a matrix on a state axis, clause by clause, its factored form."""
    whole: dict[str, Factored | None] = {}
    found: dict[str, tuple[Factored | None, ...]] = {}
    for gate in scan.gates:
        if any(set(pair) <= set(gate.indices) for pair in PAIRS):
            found[gate.name] = tuple(factored_value(clause.value, whole) for clause in gate.clauses)
            whole[gate.name] = found[gate.name][0] if len(gate.clauses) == 1 else None
    return found


def sole_form(scan: Scan, name: str) -> Factored | None:
    """The factored form of a gate with one clause; None where it has another form or several clauses."""
    clauses = factored_gates(scan).get(name, ())
    return clauses[0] if len(clauses) == 1 else None
