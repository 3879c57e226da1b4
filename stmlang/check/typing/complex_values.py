"""Complex numbers while equations are typed: two real values each, which is all that is left of them in a scan.

Nothing behind the checker knows of complex numbers. A state of them has two tracks, the real and the imaginary part, and a
number that it is multiplied by is the matrix `[[a, -b], [b, a]]` on these. So every strategy, derivative and data type for real
gates with tracks takes them, and the oracle's exact derivatives, which are complex steps, stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from stmlang.check.typing.values import Value
from stmlang.scan.expression import Index
from stmlang.source.span import Span


class Form(IntEnum):
    """How the number that a gate is can be written. What is made of several numbers has the form of the largest of them."""

    REAL = 0
    POLAR = 1
    """A modulus, which may be negative, and an angle in radians: its modulus is what stability goes by."""
    CARTESIAN = 2
    """A real and an imaginary part."""

    @property
    def halves(self) -> tuple[str, str]:
        """The names of its two real values."""
        assert self is not Form.REAL
        return ("radius", "angle") if self is Form.POLAR else ("real", "imaginary")


def written_name(gate: str) -> str:
    """What a spec calls a gate, of which this may be one half: `decay` of `decay.radius`."""
    return gate.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Polar:
    """`radius * exp(i * angle)`."""

    radius: Value
    angle: Value


@dataclass(frozen=True, slots=True)
class Cartesian:
    """`real + i * imaginary`."""

    real: Value
    imaginary: Value


Complex = Polar | Cartesian
Typed = Value | Complex


def form_of(value: Typed) -> Form:
    match value:
        case Value():
            return Form.REAL
        case Polar():
            return Form.POLAR
        case Cartesian():
            return Form.CARTESIAN


def halves(value: Complex) -> tuple[Value, Value]:
    """The two real values."""
    return (value.radius, value.angle) if isinstance(value, Polar) else (value.real, value.imaginary)


def reals(value: Typed) -> tuple[Value, ...]:
    """The real values that a value is made of: one or two."""
    return (value,) if isinstance(value, Value) else halves(value)


def free_of(values: Sequence[Typed]) -> frozenset[Index]:
    """The indices that are free in some values."""
    return frozenset[Index]().union(*(half.free for value in values for half in reals(value)))


def respanned(value: Typed, span: Span) -> Typed:
    """What a call made, at the place of the call."""

    def moved(half: Value) -> Value:
        return replace(half, expr=replace(half.expr, span=span))

    match value:
        case Value():
            return moved(value)
        case Polar(radius=radius, angle=angle):
            return Polar(moved(radius), moved(angle))
        case Cartesian(real=real, imaginary=imaginary):
            return Cartesian(moved(real), moved(imaginary))
