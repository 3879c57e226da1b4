"""Normalized chains with exponential gates, kept in range by a running maximum.

A normalized scan's result is a ratio, so its states may be held at any scale. With `m` the largest logarithm that a state's
terms have, carried along by the same recurrence in (max, +),

    m[t]  =  max(log |T[t]| + m[t-1],  log |S[t]|)          and          C'[t] = exp(-m[t]) C[t]

the scaled states obey the scaled recurrence `T' = T exp(m[t-1] - m[t])`, `S' = S exp(-m[t])`; reading at node t is scaled by
`mu[t]`, the largest logarithm read, `M' = M exp(m[t-1] - mu[t])`, `D' = D exp(-mu[t])`, and what the result is divided by has
`exp(-mu)` in place of one. Nothing overflows, although `exp` gates do: a gate is held as `mantissa * exp(exponent)`, the
exponent taken from the equation.

Nothing depends on the scale, so its derivative is zero, and yet it is followed. Of a term that outweighs all others, what it
adds to a result and what it adds to the divisor cancel in its derivative; in single precision their difference is noise, which
may be thousands of times the derivative. What flows back through the scale is the same noise with the other sign: the term's
share in the maximum is its share in the sums, and what is left of both is the derivative that the other terms make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from stmlang.lower.operands import STATE_AXES, Factors, Operands, flip, laid_out, oriented_gate
from stmlang.lower.running_maximum import running_maximum
from stmlang.lower.sites import common
from stmlang.lower.values import Environment, Frame, Value
from stmlang.program.expressions import Context, expression, rebind
from stmlang.scan.expression import Apply, Expr, Function, GateRef, Index, Product
from stmlang.scan.scan import Direction

FLOOR = -60.0
"""Scales below exp(-60) are not followed: what is added to the denominator, 1 or 1e-10, is larger by far."""

CORE = ("source", "transition", "mark", "direct")


class Scaled(NamedTuple):
    """A gate as `mantissa * exp(exponent)`, without the one where it is one, without the other where it is zero."""

    mantissa: Value | None
    exponent: Value | None


class Scale(NamedTuple):
    """Logarithms of scales: of what each node reads (one for all directions where they are summed) and of the final state; the
    direct gate at the scale of what is read; and `e^m` for the epsilon of `normalize mlstm`, at that scale too."""

    read: Float[Array, "direction head node"]
    direct: Float[Array, "direction head node"]
    final: Float[Array, "direction *scale"]
    largest: Float[Array, "direction head node"] | None


def scaled_gates(context: Context, environment: Environment) -> dict[str, Scaled]:
    """The four gates of the recurrence, each with the exponent that its equation shows."""
    scaled: dict[str, Scaled] = {}
    for gate in context.frame.scan.gates:
        clause = gate.clauses[0]
        whole = len(gate.clauses) == 1 and not clause.ports
        scaled[gate.name] = _split(context, environment, scaled, clause.value) if whole else _plain(environment[gate.name])
    return {name: scaled[name] for name in CORE}


def _plain(value: Value) -> Scaled:
    return Scaled(value, None)


def _split(context: Context, environment: Environment, scaled: dict[str, Scaled], expr: Expr) -> Scaled:
    match expr:
        case Apply(function=Function.EXP, arguments=(argument,)):
            return Scaled(None, expression(context, environment, argument))
        case Product(factors=factors):
            scaled_factors = [(inverted, _split(context, environment, scaled, factor)) for inverted, factor in factors]
            return Scaled(
                _folded(context.frame, [(inverted, factor.mantissa) for inverted, factor in scaled_factors], "product"),
                _folded(context.frame, [(inverted, factor.exponent) for inverted, factor in scaled_factors], "sum"),
            )
        case GateRef(gate=name, bind=bind) if name in scaled:
            return Scaled(*(None if value is None else rebind(context.frame, value, bind) for value in scaled[name]))
        case _:
            return _plain(expression(context, environment, expr))


def _folded(frame: Frame, terms: Sequence[tuple[bool, Value | None]], kind: Literal["product", "sum"]) -> Value | None:
    """The product of those that are there, inverted ones divided by, or their sum, inverted ones subtracted."""
    present = [(inverted, value) for inverted, value in terms if value is not None]
    if not present:
        return None
    arrays, site = common(frame, [value for _, value in present])
    with_sign = [(inverted, array) for (inverted, _), array in zip(present, arrays, strict=True)]
    (inverted, folded), *others = with_sign
    if inverted:
        folded = 1 / folded if kind == "product" else -folded
    for inverted, array in others:
        if kind == "product":
            folded = folded / array if inverted else folded * array
        else:
            folded = folded - array if inverted else folded + array
    return Value(folded, site)


def _left_out(gate: Scaled, mask: Array, otherwise: float) -> Scaled:
    """A gate that is one number, without an exponent, at the nodes that a mask leaves out."""

    def masked(array: Array, otherwise: float) -> Value:
        own = mask.reshape(-1, *(1,) * (array.ndim - 1))
        return Value(jnp.where(own, array, jnp.asarray(otherwise, array.dtype)), "node")

    mantissa, exponent = gate
    if mantissa is not None:
        left = masked(mantissa.array, otherwise)
    elif exponent is not None and otherwise != 1:
        left = masked(jnp.ones_like(exponent.array), otherwise)
    else:
        left = None
    return Scaled(left, None if exponent is None else masked(exponent.array, 0.0))


# --- the running maximum ---------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """Mantissas and exponents laid out like operands of a chain, `(direction, head, node)`, one of them left out as in
    `Scaled`."""

    mantissa: Array | None
    exponent: Array | None

    @property
    def log(self) -> Array:
        """`log |gate|`, minus infinity and without a gradient where it is zero."""
        if self.mantissa is None:
            assert self.exponent is not None
            return self.exponent
        size = jnp.abs(self.mantissa)
        log = jnp.log(jnp.where(size > 0, size, 1))
        return jnp.where(size > 0, log if self.exponent is None else log + self.exponent, -jnp.inf)

    def times(self, log: Array) -> Array:
        """`gate * exp(log)`, formed without overflow where the product has none."""
        factor = jnp.exp(log if self.exponent is None else self.exponent + log)
        return factor if self.mantissa is None else self.mantissa * factor


def rescale(
    context: Context,
    environment: Environment,
    operands: Operands,
    nodes: int,
    start: Float[Array, "direction *scale"],
    mask: Array | None = None,
    closed: Bool[Array, "direction node in"] | None = None,
) -> tuple[Operands, Scale]:
    """The operands of a chain at a scale of their own, on which states enter at the scale `start` (`LOG_SCALE` of each
    direction). Nodes that a mask leaves out have no part in it, and nothing passes into a node where it is `closed`."""
    frame, directions = context.frame, context.frame.scan.directions
    gates = scaled_gates(context, environment)
    if mask is not None:
        gates = {name: _left_out(gate, mask, 1.0 if name == "transition" else 0.0) for name, gate in gates.items()}
    source, transition, mark, direct = _laid(frame, gates, nodes)
    if closed is not None:
        transition, mark = (_closed(gate, closed[..., 0]) for gate in (transition, mark))
    passed, added = running_maximum(transition.log, source.log)
    first = start[:, 0] if frame.scan.epsilon else start
    leaving = jnp.maximum(jnp.maximum(passed + first[..., None], added), FLOOR)
    entering = jnp.concatenate([first[..., None], leaving[..., :-1]], axis=-1)
    strongest = jnp.maximum(_turned(mark.log + entering, directions), direct.log)
    if frame.scan.combine == "sum":
        strongest = strongest.max(0, keepdims=True)
    read = jnp.maximum(strongest, FLOOR)
    oriented = _turned(jnp.broadcast_to(read, leaving.shape), directions)

    def shaped(row: Array, like: Array) -> Array:
        return jnp.broadcast_to(row.reshape(*row.shape, *(1,) * (like.ndim - row.ndim)), like.shape)

    rescaled = shaped(transition.times(entering - leaving), operands.transition)
    ends = None if operands.factors is None else Factors(jnp.squeeze(rescaled, -2 - STATE_AXES), jnp.ones_like(operands.mark))
    scaled = operands._replace(
        source=shaped(source.times(-leaving), operands.source),
        transition=rescaled,
        factors=ends,
        mark=shaped(mark.times(entering - oriented), operands.mark),
    )
    largest, final = None, leaving[..., -1]
    if frame.scan.epsilon:
        terms = jnp.maximum(passed + start[:, 1, :, None], added)
        m = _largest_read(terms, start[:, 1], mark, direct, directions)
        largest, last = jnp.exp(_turned(m, directions) - read), terms[..., -1]
        final = jnp.stack([final, last], axis=1)
        if frame.scan.combine == "sum":
            largest = largest.sum(0, keepdims=True)
    return scaled, Scale(read, direct.times(-read), final, largest)


def _largest_read(
    terms: Float[Array, "direction head node"],
    start: Float[Array, "direction head"],
    mark: Terms,
    direct: Terms,
    directions: tuple[Direction, ...],
) -> Float[Array, "direction head node"]:
    """`m[t] = max(log |M| + m'[t-1], log |D|)` of the largest term up to each node, `m'[-1] = start`, minus infinity before the
    first: as the authors have it, a number that the result depends on."""
    entering = jnp.concatenate([start[..., None], terms[..., :-1]], axis=-1)
    return jnp.maximum(mark.log + entering, _turned(jnp.broadcast_to(direct.log, terms.shape), directions))


def _laid(frame: Frame, gates: dict[str, Scaled], nodes: int) -> list[Terms]:
    """The gates of `CORE` in every direction's own coordinates, the direct one, which belongs to all, in the declared ones."""
    ports: dict[str, tuple[Index, ...]] = {"source": ("out",), "transition": ("out", "in"), "mark": ("in",)}

    def row(name: str, value: Value | None) -> Array | None:
        if value is None:
            return None
        if name == "direct":
            return _row(laid_out(frame, (), value, (nodes,), ()))
        return _row(oriented_gate(frame, (), value, (nodes,), ports[name]))

    return [Terms(*(row(name, value) for value in gates[name])) for name in CORE]


def _closed(gate: Terms, closed: Bool[Array, "direction node"]) -> Terms:
    """A gate that is zero at some nodes, however large what it would be multiplied with."""
    mantissa, exponent = gate
    if mantissa is not None:
        mantissa = jnp.where(closed[:, None], 0, mantissa)
        exponent = jnp.zeros_like(mantissa) if exponent is None else exponent
    assert exponent is not None
    return Terms(mantissa, jnp.where(closed[:, None], -jnp.inf, exponent))


def _row(array: Array) -> Array:
    """`(direction, head, node)`: a chain's ports and absent state axes are of size one."""
    return array.reshape(array.shape[:3])


def _turned(array: Array, directions: tuple[Direction, ...]) -> Array:
    """From a direction's own coordinates to the declared ones, or back."""
    return jnp.stack([flip(lane, direction.senses, 1) for lane, direction in zip(array, directions, strict=True)])
