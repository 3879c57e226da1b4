"""Matrices on a state axis as sums of products, so that equal equations look equal however they are bracketed and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product as combinations
from math import copysign, frexp, isfinite, prod

from stmlang.facts.rewrite import product, renamed, small
from stmlang.scan.expression import (
    PORT_INDICES,
    STATE_INDICES,
    Expr,
    GateRef,
    Index,
    InputRef,
    Number,
    Product,
    Sum,
    free_indices,
)
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Gate
from stmlang.source.span import Span

PAIRS: tuple[tuple[Index, Index], ...] = (("key", "key'"), ("value", "value'"), ("track", "track'"))
"""Row and column index of a matrix on each state axis."""
MOST = 16
"""Sums of more terms than this are not multiplied out."""
ROUNDS = 20
"""References are followed no further than this."""

Gates = Mapping[str, Gate]
Factor = tuple[bool, Expr]


@dataclass(frozen=True, slots=True)
class Term:
    """`coefficient * product of factor^(-1 if inverted)`; no factor is a number but one that is divided by, or a product."""

    coefficient: float
    factors: tuple[Factor, ...]

    def written(self, span: Span) -> Expr:
        size = abs(self.coefficient)
        return product(self.coefficient < 0, [(False, Number(size, span)), *self.factors], span)

    def having(self, index: Index) -> tuple[Factor, ...]:
        """The parts with an index."""
        return tuple(factor for factor in self.factors if index in free_indices(factor[1]))

    def without(self, *gone: Factor) -> Term:
        """The term but for some of its parts, each taken out once."""
        remaining = list(self.factors)
        for factor in gone:
            remaining.remove(factor)
        return Term(self.coefficient, tuple(remaining))


def written(terms: tuple[Term, ...], span: Span) -> Expr:
    """A sum of terms."""
    if not terms:
        return Number(0.0, span)
    if len(terms) == 1:
        return terms[0].written(span)
    size = [Term(abs(term.coefficient), term.factors) for term in terms]
    return Sum(
        tuple((term.coefficient < 0, magnitude.written(span)) for term, magnitude in zip(terms, size, strict=True)), span
    )


def multiplied_out(expr: Expr, pair: tuple[Index, Index]) -> tuple[Term, ...]:
    """The terms of a matrix on the axis `pair`. Sums that are no matrices on it are parts, like everything else that is no
    product and no number."""

    def rule(expr: Expr, operands: tuple[tuple[Term, ...], ...]) -> tuple[Term, ...]:
        alone = (Term(1.0, ((False, expr),)),)
        expanded: tuple[Term, ...]
        match expr:
            case Number(value=value):
                return (Term(value, ()),)
            case Sum(terms=terms) if len(terms) == 1 or set(pair) <= set(free_indices(expr)):
                signs = [-1.0 if negative else 1.0 for negative, _ in terms]
                expanded = tuple(
                    Term(sign * term.coefficient, term.factors)
                    for sign, operand in zip(signs, operands, strict=True)
                    for term in operand
                )
            case Product(factors=factors):
                known = zip(factors, operands, strict=True)
                choices = [_inverse(operand, factor) if inverted else operand for (inverted, factor), operand in known]
                if prod(map(len, choices)) > MOST:
                    return alone
                expanded = tuple(_times(chosen) for chosen in combinations(*choices))
            case _:
                return alone
        return expanded if len(expanded) <= MOST and all(isfinite(term.coefficient) for term in expanded) else alone

    return fold(expr, rule, {})


def _inverse(terms: tuple[Term, ...], expr: Expr) -> tuple[Term, ...]:
    """One over an expression, part by part if it is a single term. Numbers that have no exact inverse stay divisors."""
    if len(terms) != 1 or terms[0].coefficient == 0:
        return (Term(1.0, ((True, expr),)),)
    (term,) = terms
    inverses = tuple((not inverted, factor) for inverted, factor in term.factors)
    if abs(frexp(term.coefficient)[0]) == 0.5:
        return (Term(1 / term.coefficient, inverses),)
    size = Number(abs(term.coefficient), expr.span)
    return (Term(copysign(1.0, term.coefficient), ((True, size), *inverses)),)


def _times(terms: tuple[Term, ...]) -> Term:
    return Term(prod(term.coefficient for term in terms), tuple(factor for term in terms for factor in term.factors))


# --- references followed ---------------------------------------------------------------------------------------------


def opened(expr: Expr, gates: Gates, deep: bool) -> Expr:
    """An expression with the equations of matrix gates in place of references to them; if `deep`, those of all gates that are
    products or other names for something too. As it is where it would grow too large."""
    return _followed(expr, gates, _is_matrix_or_product if deep else _is_matrix)


def same(first: Expr, other: Expr, gates: Gates) -> bool:
    """Whether two expressions have the same value because they read the same once all references are followed."""
    return first == other or _followed(first, gates, _always) == _followed(other, gates, _always)


def _is_matrix(expr: GateRef, value: Expr) -> bool:
    del value
    indices = {entry.index for entry in expr.bind}
    return any(indices.issuperset(pair) for pair in PAIRS)


def _is_matrix_or_product(expr: GateRef, value: Expr) -> bool:
    named = isinstance(value, Product | GateRef | InputRef | Number) or (isinstance(value, Sum) and len(value.terms) == 1)
    return named or _is_matrix(expr, value)


def _always(expr: GateRef, value: Expr) -> bool:
    del expr, value
    return True


def _followed(expr: Expr, gates: Gates, follows: Callable[[GateRef, Expr], bool]) -> Expr:
    if not small(expr):
        return expr
    whole = expr
    for _ in range(ROUNDS):
        changed = False

        def rule(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
            nonlocal changed
            if isinstance(expr, GateRef) and (value := _definition(expr, gates)) is not None and follows(expr, value):
                changed = True
                return value
            return rebuilt(expr, operands) if operands else expr

        wider = fold(whole, rule, {})
        if not changed:
            return whole
        if not small(wider):
            return expr
        whole = wider
    return whole


def _definition(expr: GateRef, gates: Gates) -> Expr | None:
    """The equation of a gate with a single one, in the indices of a reference; None where it cannot be written in them."""
    gate = gates.get(expr.gate)
    if gate is None or len(gate.clauses) != 1 or gate.clauses[0].ports or not small(gate.clauses[0].value):
        return None
    names: dict[Index, Index] = {}
    for entry in expr.bind:
        if entry.index is None or (entry.declared in PORT_INDICES and entry.index != entry.declared):
            return None
        if entry.declared in STATE_INDICES:
            names[entry.declared] = entry.index
    return renamed(gate.clauses[0].value, names)
