"""Expressions taken apart and put together without recursion: they may be nested deeper than Python recurses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, assert_never

from stmlang.scan.expression import (
    Apply,
    Degree,
    Expr,
    Eye,
    Finite,
    GateRef,
    InputRef,
    LeafRef,
    LineMask,
    Neighbour,
    Normalize,
    Number,
    Power,
    Product,
    Reduce,
    Spectral,
    Split,
    Spread,
    Stack,
    Sum,
    children,
)

Fact = TypeVar("Fact")


def fold(expr: Expr, rule: Callable[[Expr, tuple[Fact, ...]], Fact], known: dict[int, tuple[Expr, Fact]]) -> Fact:
    """`rule(expr, facts about its parts)` for an expression and everything inside it.

    `known` remembers by identity, and keeps the expressions alive so that an identity is never given twice.
    """
    stack = [expr]
    while stack:
        top = stack[-1]
        if id(top) in known:
            stack.pop()
            continue
        missing = [operand for operand in children(top) if id(operand) not in known]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        known[id(top)] = (top, rule(top, tuple(known[id(operand)][1] for operand in children(top))))
    return known[id(expr)][1]


def rebuilt(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The expression with other parts."""
    match expr:
        case Number() | Spread() | LeafRef() | InputRef() | GateRef() | Eye() | Degree() | Neighbour() | LineMask():
            return expr
        case Apply(function=function, span=span):
            return Apply(function, operands, span)
        case Sum(terms=terms, span=span):
            return Sum(tuple((sign, operand) for (sign, _), operand in zip(terms, operands, strict=True)), span)
        case Product(factors=factors, span=span):
            return Product(tuple((inverted, operand) for (inverted, _), operand in zip(factors, operands, strict=True)), span)
        case Power(span=span):
            return Power(operands[0], operands[1], span)
        case Reduce(kind=kind, over=over, span=span):
            return Reduce(kind, over, operands[0], span)
        case Normalize(kind=kind, over=over, span=span):
            return Normalize(kind, over, operands[0], span)
        case Stack(index=index, entries=entries, rest=rest, span=span):
            places = tuple((place, operand) for (place, _), operand in zip(entries, operands, strict=False))
            return Stack(index, places, None if rest is None else operands[-1], span)
        case Split(span=span):
            return Split(operands, span)
        case Finite(span=span):
            return Finite(operands[0], span)
        case Spectral(pairs=pairs, span=span):
            return Spectral(pairs, operands[0], span)
        case _:
            assert_never(expr)
