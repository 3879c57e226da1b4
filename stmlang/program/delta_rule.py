"""Gates of the delta rule's form, evaluated by their parts: the matrix itself is never made."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Array

from stmlang.facts import Factored
from stmlang.lower.operands import STATE_AXES, Delta, oriented_gate
from stmlang.lower.values import Environment, Frame
from stmlang.program.expressions import Context, expression
from stmlang.scan.expression import Expr, GateRef, InputRef, Number
from stmlang.scan.scan import Scan


def delta(context: Context, environment: Environment, form: Factored, sizes: Sequence[int]) -> Delta:
    """A form without free port indices, on a regular topology."""

    def laid(expr: Expr) -> Array:
        return oriented_gate(context.frame, (), expression(context, environment, expr), sizes, ())

    def number(expr: Expr) -> Array:
        array = laid(expr)
        return array.reshape(array.shape[:-STATE_AXES])

    scale = None if form.scale == _one(form) else number(form.scale)
    u = None if _is_key(context.frame.scan, form.u) else _along_key(context.frame, laid(form.u))
    return Delta(scale, number(form.strength), u)


def _one(form: Factored) -> Number:
    return Number(1.0, form.scale.span)


def _along_key(frame: Frame, array: Array) -> Array:
    lead = array.shape[:-STATE_AXES]
    return array.reshape(*lead, frame.scan.key)


def _is_key(scan: Scan, u: Expr) -> bool:
    """Whether a vector is what values are written under."""
    redefined = any(gate.name == "k" for gate in scan.gates)
    match u:
        case GateRef(gate="k", bind=bind) if redefined:
            return all(entry.index == entry.declared for entry in bind)
        case InputRef(name="k", bind=bind) if not redefined:
            return all(entry.index == entry.declared for entry in bind)
        case _:
            return False
