"""Sums, products and quotients of which a number is complex, written out in real ones.

Products and quotients of numbers in polar form stay in it, which keeps what is known of their moduli: `|a b| = |a| |b|`. A None
among the operands stands for what was refused, which has been reported, and makes the result None.
"""

from __future__ import annotations

from collections.abc import Sequence

from stmlang.check.typing.complex_values import Cartesian, Complex, Form, Polar, Typed, form_of
from stmlang.check.typing.context import Context
from stmlang.check.typing.values import Value, combined
from stmlang.scan.expression import Apply, Function, Number, Power, Product, Sum
from stmlang.source.span import Span

Signed = tuple[bool, Value | None]
"""A term with whether it is subtracted, or a factor with whether it is divided by."""


def summed(context: Context, span: Span, *terms: Signed) -> Value | None:
    """A sum of real terms."""
    values = [value for _, value in terms if value is not None]
    if len(values) < len(terms):
        return None
    signed = tuple((negative, value.expr) for (negative, _), value in zip(terms, values, strict=True))
    return values[0] if signed == ((False, values[0].expr),) else context.made(combined(Sum(signed, span), values))


def multiplied(context: Context, span: Span, *factors: Signed) -> Value | None:
    """A product of real factors."""
    values = [value for _, value in factors if value is not None]
    if len(values) < len(factors):
        return None
    signed = tuple((inverted, value.expr) for (inverted, _), value in zip(factors, values, strict=True))
    return values[0] if signed == ((False, values[0].expr),) else context.made(combined(Product(signed, span), values))


def applied(context: Context, span: Span, function: Function, value: Value | None) -> Value | None:
    """An elementwise function of a real value."""
    return None if value is None else context.made(combined(Apply(function, (value.expr,), span), [value]))


def cartesian(context: Context, span: Span, value: Typed) -> Cartesian | None:
    """A number by its real and imaginary part."""
    match value:
        case Cartesian():
            return value
        case Value():
            return Cartesian(value, Value(Number(0.0, span)))
        case Polar(radius=radius, angle=angle):
            real = multiplied(context, span, (False, radius), (False, applied(context, span, Function.COS, angle)))
            imaginary = multiplied(context, span, (False, radius), (False, applied(context, span, Function.SIN, angle)))
            return _pair(real, imaginary)


def real_part(context: Context, span: Span, value: Typed) -> Value | None:
    if isinstance(value, Value):
        return value
    number = cartesian(context, span, value)
    return None if number is None else number.real


def in_form(context: Context, span: Span, value: Typed, form: Form) -> Typed | None:
    """A number in a form that holds it: one that is larger than its own, or the same."""
    if form is form_of(value):
        return value
    if form is Form.POLAR:
        assert isinstance(value, Value), "a modulus is not found again"
        return Polar(value, Value(Number(0.0, span)))
    assert form is Form.CARTESIAN, "a complex gate is none that was taken for real"
    return cartesian(context, span, value)


def total(context: Context, span: Span, terms: Sequence[tuple[bool, Typed]]) -> Typed | None:
    """A sum, or a single term with its sign."""
    match terms:
        case [(negative, Polar(radius=radius, angle=angle))]:
            radius = summed(context, span, (negative, radius))
            return None if radius is None else Polar(radius, angle)
        case _:
            pass
    numbers = [cartesian(context, span, value) for _, value in terms if not isinstance(value, Value)]
    if not numbers:
        return summed(context, span, *((negative, value) for negative, value in terms if isinstance(value, Value)))
    sound = iter([number for number in numbers if number is not None])
    if any(number is None for number in numbers):
        return None
    real, imaginary = list[Signed](), list[Signed]()
    for negative, value in terms:
        if isinstance(value, Value):
            real.append((negative, value))
        else:
            number = next(sound)
            real.append((negative, number.real))
            imaginary.append((negative, number.imaginary))
    return _pair(summed(context, span, *real), summed(context, span, *imaginary))


def ratio(context: Context, span: Span, factors: Sequence[tuple[bool, Typed]]) -> Typed | None:
    """A product of numbers, some of which are divided by."""
    numbers = [(inverted, value) for inverted, value in factors if isinstance(value, Value)]
    turning = [(inverted, value) for inverted, value in factors if not isinstance(value, Value)]
    if not turning:
        return multiplied(context, span, *numbers)
    radii = [(inverted, value.radius) for inverted, value in turning if isinstance(value, Polar)]
    angles = [(inverted, value.angle) for inverted, value in turning if isinstance(value, Polar)]
    if len(radii) == len(turning):
        radius = multiplied(context, span, *numbers, *radii)
        angle = summed(context, span, *angles)
        return None if radius is None or angle is None else Polar(radius, angle)
    whole: Cartesian | None = None
    for inverted, value in turning:
        number = cartesian(context, span, value)
        if number is None:
            return None
        whole = _next(context, span, whole, number, inverted)
        if whole is None:
            return None
    assert whole is not None
    if not numbers:
        return whole
    scaled = [multiplied(context, span, *_in_front(numbers, half)) for half in (whole.real, whole.imaginary)]
    return _pair(*scaled)


def _in_front(numbers: Sequence[tuple[bool, Value]], half: Value) -> list[Signed]:
    """The real factors and one half of what they multiply, a factor that is not divided by first."""
    return [*numbers, (False, half)] if not numbers[0][0] else [(False, half), *numbers]


def _next(context: Context, span: Span, left: Cartesian | None, right: Cartesian, inverted: bool) -> Cartesian | None:
    """`left * right`, or `left / right = left * conjugate(right) / |right|^2`; no number on the left is one."""
    a, b, c, d = (left and left.real), (left and left.imaginary), right.real, right.imaginary
    if not inverted and left is None:
        return right

    def twice(x: Value | None, y: Value, minus: bool, z: Value | None, w: Value) -> Value | None:
        return summed(
            context,
            span,
            (False, multiplied(context, span, (False, x), (False, y))),
            (minus, multiplied(context, span, (False, z), (False, w))),
        )

    if not inverted:
        return _pair(twice(a, c, True, b, d), twice(a, d, False, b, c))
    size = _squared_modulus(context, span, right)
    if left is None:
        real, imaginary = c, summed(context, span, (True, d))
    else:
        real, imaginary = twice(a, c, False, b, d), twice(b, c, True, a, d)
    return _pair(*(multiplied(context, span, (False, half), (True, size)) for half in (real, imaginary)))


def _pair(real: Value | None, imaginary: Value | None) -> Cartesian | None:
    return None if real is None or imaginary is None else Cartesian(real, imaginary)


def conjugated(context: Context, span: Span, value: Complex) -> Complex | None:
    """The number with the other sign of its angle, and of its imaginary part."""
    if isinstance(value, Polar):
        angle = summed(context, span, (True, value.angle))
        return None if angle is None else Polar(value.radius, angle)
    return _pair(value.real, summed(context, span, (True, value.imaginary)))


def modulus(context: Context, span: Span, value: Complex) -> Value | None:
    """`|a + i b| = sqrt(a^2 + b^2)`, and of a number in polar form the magnitude of its radius."""
    if isinstance(value, Polar):
        return applied(context, span, Function.ABS, value.radius)
    return applied(context, span, Function.SQRT, _squared_modulus(context, span, value))


def _squared_modulus(context: Context, span: Span, value: Cartesian) -> Value | None:
    """`a^2 + b^2`."""
    two = Value(Number(2.0, span))
    squares = [context.made(combined(Power(half.expr, two.expr, span), [half, two])) for half in (value.real, value.imaginary)]
    return summed(context, span, *((False, square) for square in squares))


def exponential(context: Context, span: Span, value: Complex) -> Polar | None:
    """`exp(a + i b)`: of modulus `exp(a)` and angle `b`."""
    number = cartesian(context, span, value)
    radius = None if number is None else applied(context, span, Function.EXP, number.real)
    return None if number is None or radius is None else Polar(radius, number.imaginary)
