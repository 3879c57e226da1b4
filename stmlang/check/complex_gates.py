"""What complex gates become: real ones, and two tracks of the state.

A gate `g` in polar form is the two gates `g.radius` and `g.angle`, one by its parts `g.real` and `g.imaginary`; no spec can
write these names. A state of complex numbers has its real part on the first track and its imaginary part on the second, so that

    source = [a, b]        transition = [[a, -b], [b, a]]        mark = [a, -b]

on the tracks: the last is the real part of a product, as the output is real.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stmlang.check.implied import Implied
from stmlang.check.typing.complex_values import Form
from stmlang.check.typing.scope import Header
from stmlang.scan.expression import Apply, Bind, Expr, Eye, Function, GateRef, Index, Number, Product, Stack, Sum, inside
from stmlang.scan.scan import Clause
from stmlang.source.span import Span

Clauses = tuple[Clause, ...]
Halves = tuple[Clauses, Clauses]


@dataclass(frozen=True)
class RealGate:
    """A gate of the scan, before what it rests on is known."""

    indices: tuple[Index, ...]
    clauses: Clauses
    span: Span


def implied_gate(implied: Implied) -> RealGate:
    """A gate that no equation gives."""
    return RealGate(_indices(implied.header), (Clause((), implied.value),), implied.header.span)


def real_gate(header: Header, clauses: Clauses) -> RealGate:
    """A gate of real numbers. Where it is added to a complex state, or reads one, it is about the real part alone."""
    if header.paired:
        clauses = tuple(Clause(clause.ports, _stack("track", clause.value, _zero(clause.value.span))) for clause in clauses)
    return RealGate(_indices(header), clauses, header.span)


def complex_gates(header: Header, both: Halves) -> dict[str, RealGate]:
    """The gates that a complex one is, and behind them the one that the recurrence has, if it has it."""
    names = [f"{header.name}.{half}" for half in header.form.halves]
    gates = {name: RealGate(header.indices, half, header.span) for name, half in zip(names, both, strict=True)}
    if header.paired:
        pairs = zip(*both, strict=True)
        clauses = tuple(Clause(first.ports, _on_tracks(header, first, second)) for first, second in pairs)
        gates[header.name] = RealGate(_indices(header), clauses, header.span)
    return gates


def _indices(header: Header) -> tuple[Index, ...]:
    if not header.paired:
        return header.indices
    return (*header.indices, "track", "track'") if header.name == "transition" else (*header.indices, "track")


def _on_tracks(header: Header, first: Clause, second: Clause) -> Expr:
    """One equation of a gate of the recurrence, which refers to its halves. What is zero stays a number: a turn left out."""
    span = first.value.span
    is_zero = [isinstance(half.value, Number) and half.value.value == 0 for half in (first, second)]
    if is_zero[0] and (is_zero[1] or header.form is Form.POLAR):
        return _zero(span)
    pins = dict(first.ports)
    bind = tuple(Bind(index, None, pins[index]) if index in pins else Bind(index, index) for index in header.indices)
    a, b = (GateRef(f"{header.name}.{half}", bind, span) for half in header.form.halves)
    polar = header.form is Form.POLAR
    real, imaginary = (Apply(Function.COS, (b,), span), Apply(Function.SIN, (b,), span)) if polar else (a, b)
    minus = Sum(((True, imaginary),), span)
    if header.name != "transition":
        whole = _stack("track", real, minus if header.name == "mark" else imaginary)
    elif polar and is_zero[1]:
        whole = Eye("track", "track'", span)
    else:
        whole = _stack("track", _stack("track'", real, minus), _stack("track'", imaginary, real))
    return Product(((False, a), (False, whole)), span) if polar else whole


def _stack(index: Index, first: Expr, second: Expr) -> Expr:
    return Stack(index, ((0, first), (1, second)), None, first.span)


def _zero(span: Span) -> Expr:
    return Number(0.0, span)


def referred(gates: Mapping[str, RealGate], name: str) -> dict[str, Span]:
    """The gates that one refers to, each with the first place."""
    uses: dict[str, Span] = {}
    for expr in inside(*(clause.value for clause in gates[name].clauses)):
        if isinstance(expr, GateRef):
            uses.setdefault(expr.gate, expr.span)
    return uses
