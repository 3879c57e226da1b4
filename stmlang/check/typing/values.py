"""What the type checker knows of an expression, and arithmetic on constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stmlang.scan.expression import Apply, Expr, Function, Index, Number, Power, Product, Sum

DEEPEST = 200
"""How deep operations may nest, definitions expanded: every later stage may recurse over an expression."""

EMPTY: frozenset[Index] = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """A typed expression with its free indices, and its size and depth as a tree (shared parts counted every time).

    `degrees`: it is made of numbers and degrees alone, written out in one equation, and not without degrees.
    """

    expr: Expr
    free: frozenset[Index] = EMPTY
    weight: int = 1
    depth: int = 1
    degrees: bool = False


def combined(
    expr: Expr, operands: Sequence[Value], without: frozenset[Index] = EMPTY, extra: frozenset[Index] = EMPTY
) -> Value:
    """The value of an expression made of parts: it has their free indices, less and plus some."""
    free = EMPTY.union(*(operand.free for operand in operands)) - without | extra
    weight = 1 + sum(operand.weight for operand in operands)
    degrees = any(operand.degrees for operand in operands) and all(
        operand.degrees or isinstance(operand.expr, Number) for operand in operands
    )
    return Value(expr, free, weight, 1 + max((operand.depth for operand in operands), default=0), degrees)


def folded(value: Value) -> Value | None:
    """A constant expression as the number it is, any other as it stands; None if the number does not exist.

    The parts of an expression have been folded already, so that only its outermost sign is looked at.
    """
    match value.expr:
        case Sum(terms=terms):
            numbers = _numbers([term for _, term in terms])
            result = None if numbers is None else _sum([negative for negative, _ in terms], numbers)
        case Product(factors=factors):
            numbers = _numbers([factor for _, factor in factors])
            result = None if numbers is None else _defined(lambda: _product([inverted for inverted, _ in factors], numbers))
        case Power(base=Number(value=base), exponent=Number(value=exponent)):
            result = _defined(lambda: math.pow(base, exponent))
        case Apply(function=function, arguments=arguments):
            numbers = _numbers(arguments)
            result = None if numbers is None else _defined(lambda: _FUNCTIONS[function](*numbers))
        case _:
            return value
    if result is None:
        return value
    return Value(Number(result, value.expr.span), degrees=value.degrees) if math.isfinite(result) else None


def _numbers(operands: Sequence[Expr]) -> list[float] | None:
    """The numbers that parts are, if all are."""
    numbers: list[float] = []
    for operand in operands:
        if not isinstance(operand, Number):
            return None
        numbers.append(operand.value)
    return numbers


def _defined(compute: Callable[[], float]) -> float:
    """A computed number, not a number where it is undefined or too large."""
    try:
        return compute()
    except (ArithmeticError, ValueError):
        return math.nan


def _sum(negative: Sequence[bool], numbers: Sequence[float]) -> float:
    return sum(-number if minus else number for minus, number in zip(negative, numbers, strict=True))


def _product(inverted: Sequence[bool], numbers: Sequence[float]) -> float:
    result = 1.0
    for below, number in zip(inverted, numbers, strict=True):
        result = result / number if below else result * number
    return result


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


def _relu(x: float) -> float:
    return max(x, 0.0)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _cap(x: float) -> float:
    return x / max(1.0, abs(x))


def _minimum(a: float, b: float) -> float:
    return min(a, b)


def _maximum(a: float, b: float) -> float:
    return max(a, b)


def _clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


_FUNCTIONS: dict[Function, Callable[..., float]] = {
    Function.EXP: math.exp,
    Function.LOG: math.log,
    Function.SIGMOID: _sigmoid,
    Function.TANH: math.tanh,
    Function.RELU: _relu,
    Function.SOFTPLUS: _softplus,
    Function.ABS: math.fabs,
    Function.SQRT: math.sqrt,
    Function.SIN: math.sin,
    Function.COS: math.cos,
    Function.CAP: _cap,
    Function.MINIMUM: _minimum,
    Function.MAXIMUM: _maximum,
    Function.CLIP: _clip,
}
