"""What is made of degrees where there is nothing to count.

A quotient by what is made of numbers and degrees alone, and a power, root or logarithm of it, is zero where it is undefined or
infinite. `finite` says so in the typed expressions: it goes by what is made of what, through all gates, which is known once all
of them are typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

from stmlang.check.problems import Problems
from stmlang.check.typing.values import DEEPEST
from stmlang.scan.expression import (
    Apply,
    Degree,
    Expr,
    Finite,
    Function,
    GateRef,
    Number,
    Power,
    Product,
    Spread,
    Sum,
    children,
    inside,
)
from stmlang.scan.fold import fold, rebuilt
from stmlang.scan.scan import Clause
from stmlang.source.span import Span


class Made(IntEnum):
    """What an expression is made of."""

    NUMBERS = 0
    DEGREES = 1
    """Numbers and degrees alone, the latter not missing."""
    OTHER = 2


Typed = tuple[Expr, Made]


def finite(problems: Problems, clauses: Mapping[str, tuple[Clause, ...]]) -> dict[str, tuple[Clause, ...]]:
    """The clauses of all gates, given in dependency order, with `Finite` around what the rule is about."""
    made: dict[str, Made] = {}
    finished: dict[str, tuple[Clause, ...]] = {}
    for name, written in clauses.items():
        typed = [_finite(clause.value, made) for clause in written]
        made[name] = max((kind for _, kind in typed), default=Made.OTHER)
        finished[name] = tuple(Clause(clause.ports, value) for clause, (value, _) in zip(written, typed, strict=True))
        for clause, (value, _) in zip(written, typed, strict=True):
            if value is not clause.value and fold(value, _depth, {}) > DEEPEST:
                note = f"at most {DEEPEST} deep; a division by degrees takes two"
                problems.error("STM2026", "operations nest too deeply here", clause.value.span, note)
    return finished


def _depth(expr: Expr, operands: tuple[int, ...]) -> int:
    del expr
    return 1 + max(operands, default=0)


def _finite(value: Expr, gates: Mapping[str, Made]) -> Typed:
    if not any(isinstance(inner, Degree | GateRef) for inner in inside(value)):
        return value, Made.NUMBERS if isinstance(value, Number | Spread) else Made.OTHER
    known: dict[int, tuple[Expr, Typed]] = {}

    def rule(expr: Expr, operands: tuple[Typed, ...]) -> Typed:
        kind = max((kind for _, kind in operands), default=Made.OTHER)
        same = all(new is old for (new, _), old in zip(operands, children(expr), strict=True))
        whole = expr if same else rebuilt(expr, tuple(operand for operand, _ in operands))
        match whole:
            case Number() | Spread():
                return whole, Made.NUMBERS
            case Degree():
                return whole, Made.DEGREES
            case GateRef(gate=name):
                return whole, gates.get(name, Made.OTHER)
            case Product(factors=factors) if any(inverted for inverted, _ in factors):
                return (Finite(whole, whole.span) if kind is Made.DEGREES else _shared(expr, whole, known)), kind
            case Power(base=base) if kind is Made.OTHER and operands[0][1] is Made.DEGREES:
                return _raised(whole, base), kind
            case Power() | Apply(function=Function.LOG | Function.SQRT) if kind is Made.DEGREES:
                return Finite(whole, whole.span), kind
            case Sum() | Product() | Power() | Apply():
                return whole, kind
            case _:
                return whole, Made.OTHER

    return fold(value, rule, known)


def _shared(written: Expr, whole: Product, known: Mapping[int, tuple[Expr, Typed]]) -> Expr:
    """A product, of whose divisors those made of degrees become factors: one over them, or zero. `written` is the same before
    its parts were."""
    if not _divided_by_degrees(written, known):
        return whole
    return Product(tuple(_factors(written, whole.span, known)), whole.span)


def _divided_by_degrees(written: Expr, known: Mapping[int, tuple[Expr, Typed]]) -> bool:
    """Whether a product is divided by what is made of degrees, or by a product that has it for a factor."""
    assert isinstance(written, Product)
    divisors = [operand for inverted, operand in written.factors if inverted]
    inner = [operand for divisor in divisors if isinstance(divisor, Product) for _, operand in divisor.factors]
    return any(known[id(operand)][1][1] is Made.DEGREES for operand in (*divisors, *inner))


def _factors(written: Expr, span: Span, known: Mapping[int, tuple[Expr, Typed]]) -> Iterator[tuple[bool, Expr]]:
    """The factors of a product, those of products that it is divided by one by one."""
    assert isinstance(written, Product)
    for inverted, operand in written.factors:
        whole, kind = known[id(operand)][1]
        if inverted and kind is Made.DEGREES:
            yield False, Finite(Product(((True, whole),), span), span)
        elif inverted and isinstance(operand, Product):
            turned = Product(tuple((not under, factor) for under, factor in operand.factors), span)
            yield from _factors(turned, span, known)
        else:
            yield inverted, whole


def _raised(whole: Power, base: Expr) -> Expr:
    """A power of degrees whose exponent is learned: zero where the base is, and so is its slope."""
    span = whole.span
    there = Finite(Product(((False, base), (True, base)), span), span)
    raised = Power(Sum(((False, base), (False, Number(1.0, span)), (True, there)), span), whole.exponent, span)
    return Product(((False, raised), (False, there)), span)
