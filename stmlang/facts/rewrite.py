"""Small rewritings of expressions: renaming indices, taking products apart and putting them together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from stmlang.scan.expression import (
    BOUND_INDICES,
    STATE_INDICES,
    Bind,
    Expr,
    Eye,
    GateRef,
    Index,
    InputRef,
    LeafRef,
    Normalize,
    Number,
    Product,
    Reduce,
    Spectral,
    Stack,
    Sum,
    free_indices,
    inside,
)
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Gate
from stmlang.source.span import Span

SMALL = 400
"""Expressions with more nodes than this are left as they are."""


def small(expr: Expr) -> bool:
    """Whether an expression has at most `SMALL` nodes, and so is nested no deeper."""
    return sum(1 for _ in islice(inside(expr), SMALL + 1)) <= SMALL


def refer(gate: Gate, span: Span) -> GateRef:
    """A gate with all its indices."""
    return GateRef(gate.name, tuple(Bind(index, index) for index in gate.indices), span)


def renamed(expr: Expr, names: Mapping[Index, Index]) -> Expr | None:
    """An expression with free state indices renamed; None where a leaf, whose indices are its own, or a reduction over one of
    the names is in the way."""
    changed: dict[Index, Index] = {old: new for old, new in names.items() if old != new}
    if not changed:
        return expr
    involved = set(changed) | set(changed.values())
    if not involved <= {*STATE_INDICES, *BOUND_INDICES}:
        return None

    def rename(index: Index) -> Index:
        return changed.get(index, index)

    def rule(expr: Expr, operands: tuple[Expr | None, ...]) -> Expr | None:
        match expr:
            case LeafRef(indices=indices):
                return None if involved & set(indices) else expr
            case InputRef(name=name, bind=bind, span=span):
                return InputRef(name, _rebound(bind, changed), span)
            case GateRef(gate=gate, bind=bind, span=span):
                return GateRef(gate, _rebound(bind, changed), span)
            case Eye(first=first, second=second, span=span):
                return Eye(rename(first), rename(second), span)
            case Reduce(over=over) if over in involved:
                return None
            case Stack(index=index) if index in involved and (rename(index) in free_indices(expr) or index not in changed):
                return None
            case Spectral() if expr.indices & involved:
                return None
            case _:
                known = [operand for operand in operands if operand is not None]
                if len(known) < len(operands):
                    return None
                whole = rebuilt(expr, tuple(known))
                if isinstance(whole, Stack):
                    return Stack(rename(whole.index), whole.entries, whole.rest, whole.span)
                if isinstance(whole, Normalize):
                    return Normalize(whole.kind, rename(whole.over), whole.argument, whole.span)
                return whole

    return fold(expr, rule, {})


def _rebound(bind: tuple[Bind, ...], names: Mapping[Index, Index]) -> tuple[Bind, ...]:
    return tuple(entry if entry.index is None else Bind(entry.declared, names.get(entry.index, entry.index)) for entry in bind)


def factors(expr: Expr) -> tuple[bool, list[tuple[bool, Expr]]]:
    """A product taken apart through nested products and signs: whether it is negated, and its (inverted, factor) pairs."""
    negative, multiplied = False, list[tuple[bool, Expr]]()
    stack = [(False, expr)]
    while stack:
        inverted, top = stack.pop()
        match top:
            case Product(factors=inside):
                stack.extend((inverted != under, factor) for under, factor in reversed(inside))
            case Sum(terms=((sign, factor),)):
                negative ^= sign
                stack.append((inverted, factor))
            case _:
                multiplied.append((inverted, top))
    return negative, multiplied


def product(negative: bool, multiplied: list[tuple[bool, Expr]], span: Span) -> Expr:
    """The converse of `factors`, without superfluous ones."""
    needed = [(inverted, factor) for inverted, factor in multiplied if not (isinstance(factor, Number) and factor.value == 1)]
    whole: Expr
    if not needed:
        return Number(-1.0 if negative else 1.0, span)
    whole = needed[0][1] if len(needed) == 1 and not needed[0][0] else Product(tuple(needed), span)
    return Sum(((True, whole),), span) if negative else whole
