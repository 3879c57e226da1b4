"""Normalized chains with exponential gates, kept in range by a running maximum.

A normalized scan's result is a ratio, so its states may be held at any scale. With `m` the largest logarithm that a state's
terms have, carried along by the same recurrence in (max, +),

    m[t]  =  max(log |T[t]| + m[t-1],  log |S[t]|)          and          C'[t] = exp(-m[t]) C[t]

the scaled states obey the scaled recurrence `T' = T exp(m[t-1] - m[t])`, `S' = S exp(-m[t])`; reading at node t is scaled by
`mu[t]`, the largest logarithm read, `M' = M exp(m[t-1] - mu[t])`, `D' = D exp(-mu[t])`, and what the result is divided by has
`exp(-mu)` in place of one. Nothing overflows, although `exp` gates do: a gate is held as `mantissa * exp(exponent)`, the
exponent taken from the equation. As nothing depends on the scale, no gradient flows through it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from stmlang.lower.operands import STATE_AXES, Factors, Operands, flip, laid_out, oriented_gate
from stmlang.lower.sites import common
from stmlang.lower.values import Environment, Value
from stmlang.program.expressions import Context, expression, rebind
from stmlang.scan.expression import Apply, Expr, Function, GateRef, Index, Product
from stmlang.scan.scan import Direction

FLOOR = -60.0
"""Scales below exp(-60) are not followed: what is added to the denominator, 1 or 1e-10, is larger by far."""

CORE = ("source", "transition", "mark", "direct")


class Scaled(NamedTuple):
    """A gate as `mantissa * exp(exponent)`."""

    mantissa: Value
    exponent: Value


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
    return Scaled(value, Value(jnp.zeros((1,) * value.array.ndim, value.array.dtype), "constant"))


def _split(context: Context, environment: Environment, scaled: dict[str, Scaled], expr: Expr) -> Scaled:
    match expr:
        case Apply(function=Function.EXP, arguments=(argument,)):
            exponent = expression(context, environment, argument)
            return Scaled(Value(jnp.ones_like(exponent.array), exponent.site), exponent)
        case Product(factors=factors):
            scaled_factors = [_split(context, environment, scaled, factor) for _, factor in factors]
            mantissas, site = common(context.frame, [scaled_factor.mantissa for scaled_factor in scaled_factors])
            exponents, exponent_site = common(context.frame, [scaled_factor.exponent for scaled_factor in scaled_factors])
            mantissa, exponent = mantissas[0], exponents[0]
            if factors[0][0]:
                mantissa, exponent = 1 / mantissa, -exponent
            for (inverted, _), m, e in zip(factors[1:], mantissas[1:], exponents[1:], strict=True):
                mantissa = mantissa / m if inverted else mantissa * m
                exponent = exponent - e if inverted else exponent + e
            return Scaled(Value(mantissa, site), Value(exponent, exponent_site))
        case GateRef(gate=name, bind=bind) if name in scaled:
            return Scaled(*(rebind(context.frame, value, bind) for value in scaled[name]))
        case _:
            return _plain(expression(context, environment, expr))


def _left_out(gate: Scaled, mask: Array, otherwise: float) -> Scaled:
    """A gate that is one number, without an exponent, at the nodes that a mask leaves out."""

    def masked(value: Value, otherwise: float) -> Value:
        own = mask.reshape(-1, *(1,) * (value.array.ndim - 1))
        return Value(jnp.where(own, value.array, jnp.asarray(otherwise, value.array.dtype)), "node")

    return Scaled(masked(gate.mantissa, otherwise), masked(gate.exponent, 0.0))


# --- the running maximum ---------------------------------------------------------------------------------------------


class Terms(NamedTuple):
    """Mantissas and exponents laid out like operands of a chain: `(direction, head, node)`."""

    mantissa: Array
    exponent: Array

    @property
    def log(self) -> Array:
        """`log |gate|`, minus infinity where it is zero; no gradient."""
        size = jax.lax.stop_gradient(jnp.abs(self.mantissa))
        return jnp.where(size > 0, jnp.log(jnp.where(size > 0, size, 1)), -jnp.inf) + jax.lax.stop_gradient(self.exponent)

    @property
    def magnitude(self) -> Array:
        """The same with its gradient, which is none where the gate is zero."""
        size = jnp.abs(self.mantissa)
        return jnp.where(size > 0, jnp.log(jnp.where(size > 0, size, 1)) + self.exponent, -jnp.inf)

    def times(self, log: Array) -> Array:
        """`gate * exp(log)`, formed without overflow where the product has none."""
        return self.mantissa * jnp.exp(self.exponent + log)


def running_maximum(through: Array, added: Array, start: Array) -> Array:
    """`m[t] = max(through[t] + m[t-1], added[t])` along the last axis from `m[-1] = start`.

    By doubling: after the turn of distance `d`, `passed[t]` and `added[t]` are those of the last `2d` nodes up to `t`. The
    distances are what a loop runs over, so that the program is the same at any length, where `associative_scan` would write out
    its levels. Sums of logarithms that are subtracted again, as with a running sum and `cummax`, would lose those of a zero
    (minus infinity) and the digits of all after a small one.
    """
    passed, added = jnp.broadcast_arrays(through, added)
    length = passed.shape[-1]

    def double(pair: tuple[Array, Array], distance: Array) -> tuple[tuple[Array, Array], None]:
        passed, added = pair
        passed_before, added_before = (
            jax.lax.dynamic_slice_in_dim(jnp.concatenate([jnp.full_like(row, nothing), row], -1), length - distance, length, -1)
            for row, nothing in ((passed, 0.0), (added, -jnp.inf))
        )
        return (passed_before + passed, jnp.maximum(passed + added_before, added)), None

    distances = 2 ** np.arange(max(0, length - 1).bit_length())
    (passed, added), _ = jax.lax.scan(double, (passed, added), jnp.asarray(distances))
    return jnp.maximum(passed + start[..., None], added)


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
    ports: dict[str, tuple[Index, ...]] = {"source": ("out",), "transition": ("out", "in"), "mark": ("in",)}
    source, transition, mark = (
        Terms(*(_row(oriented_gate(frame, (), value, (nodes,), indices)) for value in gates[name]))
        for name, indices in ports.items()
    )
    if closed is not None:
        transition, mark = (_closed(gate, closed[..., 0]) for gate in (transition, mark))
    direct = Terms(*(_row(laid_out(frame, (), value, (nodes,), ())) for value in gates["direct"]))
    first = jax.lax.stop_gradient(start[:, 0] if frame.scan.epsilon else start)
    leaving = jnp.maximum(running_maximum(transition.log, source.log, first), FLOOR)
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
        m, last = largest_read(transition, source, mark, direct, directions, start[:, 1])
        largest = jnp.exp(_turned(m, directions) - read)
        final = jnp.stack([final, last], axis=1)
        if frame.scan.combine == "sum":
            largest = largest.sum(0, keepdims=True)
    return scaled, Scale(read, direct.times(-read), final, largest)


def largest_read(
    transition: Terms,
    source: Terms,
    mark: Terms,
    direct: Terms,
    directions: tuple[Direction, ...],
    start: Float[Array, "direction head"],
) -> tuple[Float[Array, "direction head node"], Float[Array, "direction head"]]:
    """`m[t] = max(log |M| + m'[t-1], log |D|)` with `m'[t] = max(log |T| + m'[t-1], log |S|)` from `m'[-1] = start`, minus
    infinity before the first term: as the authors have it, a number that gradients flow through. And the last `m'`."""

    leaving = running_maximum(transition.magnitude, source.magnitude, start)
    entering = jnp.concatenate([start[..., None], leaving[..., :-1]], axis=-1)
    m = jnp.maximum(mark.magnitude + entering, _turned(jnp.broadcast_to(direct.magnitude, leaving.shape), directions))
    return m, leaving[..., -1]


def _closed(gate: Terms, closed: Bool[Array, "direction node"]) -> Terms:
    """A gate that is zero at some nodes, however large what it would be multiplied with."""
    zero, nothing = (jnp.full((1, 1, 1), number, gate.mantissa.dtype) for number in (0, -jnp.inf))
    return Terms(jnp.where(closed[:, None], zero, gate.mantissa), jnp.where(closed[:, None], nothing, gate.exponent))


def _row(array: Array) -> Array:
    """`(direction, head, node)`: a chain's ports and absent state axes are of size one."""
    return array.reshape(array.shape[:3])


def _turned(array: Array, directions: tuple[Direction, ...]) -> Array:
    """From a direction's own coordinates to the declared ones, or back."""
    return jnp.stack([flip(lane, direction.senses, 1) for lane, direction in zip(array, directions, strict=True)])
