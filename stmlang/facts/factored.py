"""Matrices that are a diagonal and a symmetric outer product, found by reading: `d * eye - c * u u^T`, and among them the
transitions of the delta rule, `scale * (eye - strength * u u^T)`.

Equal equations are read alike: terms come in any order and with any signs, brackets are multiplied out, names of products and
of matrices stand for what they name, and common factors of both terms are the scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from stmlang.facts.rewrite import product, renamed, small
from stmlang.facts.terms import PAIRS, Factor, Gates, Term, multiplied_out, opened, same, written
from stmlang.scan.expression import Expr, Eye, Index, free_indices
from stmlang.scan.scan import Scan
from stmlang.source.span import Span


@dataclass(frozen=True, slots=True)
class Factored:
    """`scale * (eye - strength * u u^T)` on the axis `pair`; `u` has the row index, `scale` and `strength` neither of the two.

    Port indices may be free in all three."""

    pair: tuple[Index, Index]
    scale: Expr
    strength: Expr
    u: Expr


@dataclass(frozen=True, slots=True)
class Shifted:
    """`diagonal * eye - weight * u u^T` on the axis `pair`. `u` has the row index, or is None where there is no outer product;
    `diagonal` may have it. No term has the column index."""

    pair: tuple[Index, Index]
    diagonal_terms: tuple[Term, ...]
    weight_terms: tuple[Term, ...]
    u: Expr | None
    span: Span

    @property
    def diagonal(self) -> Expr:
        return written(self.diagonal_terms, self.span)

    @property
    def weight(self) -> Expr:
        return written(self.weight_terms, self.span)

    @property
    def uniform(self) -> bool:
        """Whether the diagonal is one number."""
        return not any(term.having(self.pair[0]) for term in self.diagonal_terms)

    def factored(self, gates: Gates) -> Factored | None:
        """The same with the diagonal as a common factor; None where it is not one by reading, since it may be zero."""
        if self.u is None or not self.uniform or len(self.diagonal_terms) != 1:
            return None
        (scale,) = self.diagonal_terms
        divided = tuple(_divided(term, scale, gates) for term in self.weight_terms)
        strength = tuple(term for term in divided if term is not None)
        if len(strength) < len(divided):
            return None
        return Factored(self.pair, scale.written(self.span), written(strength, self.span), self.u)


def _divided(term: Term, by: Term, gates: Gates) -> Term | None:
    """A term over another one all of whose parts are among its own."""
    if by.coefficient == 0:
        return None
    quotient = term
    for factor in by.factors:
        cancelled = _matching(factor, quotient.factors, gates)
        if cancelled is None:
            return None
        quotient = quotient.without(cancelled)
    return Term(quotient.coefficient / by.coefficient, quotient.factors)


def _matching(factor: Factor, among: tuple[Factor, ...], gates: Gates) -> Factor | None:
    """The part that is the same as one, the same by reading if there is one."""
    if factor in among:
        return factor
    return next((other for other in among if other[0] == factor[0] and same(other[1], factor[1], gates)), None)


# --- reading ---------------------------------------------------------------------------------------------------------


def shifted(expr: Expr, pair: tuple[Index, Index], gates: Gates, deep: bool) -> Shifted | None:
    """A matrix on an axis as a diagonal and an outer product. If `deep`, names of products are followed."""
    if not small(expr):
        return None
    whole = opened(expr, gates, deep)
    if not set(pair) <= set(free_indices(whole)):
        return None
    diagonal, weights = list[Term](), list[Term]()
    u: Expr | None = None
    for term in multiplied_out(whole, pair):
        if term.coefficient == 0:
            return None
        if (entry := _on_diagonal(term, pair)) is not None:
            diagonal.append(entry)
            continue
        outer = _outer(term, pair, gates, expr.span)
        if outer is None or (u is not None and not same(u, outer[1], gates)):
            return None
        weights.append(Term(-outer[0].coefficient, outer[0].factors))
        u = outer[1] if u is None else u
    return Shifted(pair, tuple(diagonal), tuple(weights), u, expr.span) if diagonal else None


def _on_diagonal(term: Term, pair: tuple[Index, Index]) -> Term | None:
    """A term with the identity as what stands on its diagonal, by rows."""
    row, column = pair
    eyes = [
        factor for factor in term.factors if isinstance(factor[1], Eye) and {factor[1].first, factor[1].second} == set(pair)
    ]
    if len(eyes) != 1 or eyes[0][0]:
        return None
    diagonal: list[Factor] = []
    for inverted, factor in term.without(eyes[0]).factors:
        indices = free_indices(factor)
        if row in indices and column in indices:
            return None
        by_row = renamed(factor, {column: row}) if column in indices else factor
        if by_row is None:
            return None
        diagonal.append((inverted, by_row))
    return Term(term.coefficient, tuple(diagonal))


def _outer(term: Term, pair: tuple[Index, Index], gates: Gates, span: Span) -> tuple[Term, Expr] | None:
    """A term as a number times the outer product of a vector with itself."""
    row, column = pair
    rows, columns = term.having(row), list(term.having(column))
    if not rows or len(rows) != len(columns) or any(factor in columns for factor in rows):
        return None
    for inverted, factor in rows:
        turned = renamed(factor, {row: column})
        matching = None if turned is None else _matching((inverted, turned), tuple(columns), gates)
        if matching is None:
            return None
        columns.remove(matching)
    return term.without(*rows, *term.having(column)), product(False, list(rows), span)


def factored_value(expr: Expr, gates: Gates) -> Factored | None:
    """A value in the delta rule's form: as it is written if it has it so, else with the names of products followed."""
    for deep in (False, True):
        for pair in PAIRS:
            shifted_form = shifted(expr, pair, gates, deep) if set(pair) <= set(free_indices(expr)) else None
            form = None if shifted_form is None else shifted_form.factored(gates)
            if form is not None:
                return form
    return None


def factored_gates(scan: Scan) -> dict[str, tuple[Factored | None, ...]]:
    """For each gate with a matrix on a state axis, clause by clause, its factored form."""
    gates = {gate.name: gate for gate in scan.gates}
    return {
        gate.name: tuple(factored_value(clause.value, gates) if small(clause.value) else None for clause in gate.clauses)
        for gate in scan.gates
        if any(set(pair) <= set(gate.indices) for pair in PAIRS)
    }
