"""How far a result may be off: derived for every number of it from the recurrence, not guessed for all of them.

**The bound.** A result is a sum over paths of products of factors: a query, a mark, transitions, a source, a key, a value. Put
the absolute value in place of every factor, and the recurrence gives the sum of the paths' sizes, `A`. Put `|g| + t e` in place
of every factor `g`, `e` being how far it may be off, and the derivative by `t` at zero is

    E  =  sum over paths of  product of |g|  *  sum over its factors of  e / |g|

how far the result may be off, to first order. No cancellation between paths hides in it, and a path counts by its own length,
not by the longest one's. With `u` the unit roundoff (2^-53 in float64, 2^-24 in float32), the error of a factor is

    e  =  u ( (ROUNDINGS + n) |g|  +  NOISE r )

* `ROUNDINGS = 4`: it is made, multiplied, and twice more where a strategy keeps products of factors;
* `n`: the terms of the sums that it takes part in. Edges that enter a node for transitions and marks, directions for the direct
  gate, sizes of the axes that matrices sum over; the sizes of key and track for the query, and all writes of all nodes for the
  key, since a strategy may add all sources up in one sum;
* `r`: what the gate's equation loses, measured by `stmlang.oracle.rounding`: there arguments are moved in their last bit, and
  everything that is made of them.

Where matrices act on the key axis, sizes are norms over that axis, spectral for the matrices: absolute values of a reflection's
entries grow from step to step, a reflection does not.

**Derivatives.** With changes `c` of the factors along a direction, themselves off by `e'`, the derivative of `E` along `|c|`
plus that of `A` along `e'`. It is taken as a difference in `t`: of a polynomial without negative coefficients it can only be
larger.

**Normalizers.** A quotient `h / d` is off by `E_h / |d| + |h| E_d / d^2`, its derivative accordingly. Where `u E_d` is more
than a quarter of `|d|` nothing is known of the quotient, and nothing is claimed: the bound is infinite there. So it is where
`max(|d|, 1)` may be on either side of its kink and a derivative is asked for.

**bfloat16** is computed in float32 from rounded arguments: its bound is float32's, and half a last digit of the result.

**Small numbers.** What is below the smallest normal number of a data type may become zero, and what it would have been
multiplied with is lost as well. So may what an equation takes the absolute value of, or compares: where that changes the side
of a kink, the derivative may be that of either side, and `e` grows by the difference of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Literal

import numpy as np

from stmlang.graph.dag import DAG
from stmlang.graph.shapes import output_shape
from stmlang.oracle.derivative import STEP as TURN
from stmlang.oracle.derivative import Arguments, slope, turned
from stmlang.oracle.functions import Floats
from stmlang.oracle.gates import DirectionGates, evaluate_gates
from stmlang.oracle.recurrence import (
    NORMALIZE_EPSILON,
    ReferenceResult,
    adds_direct,
    entering_states,
    leaving_states,
    run,
    scales,
)
from stmlang.oracle.rounding import STEP, WAYS, Flushed, Rounding
from stmlang.oracle.steps import last_of, written_out
from stmlang.oracle.values import Value
from stmlang.scan.expression import Index
from stmlang.scan.scan import Scan

UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-24}
"""Unit roundoff of a data type's arithmetic: half of what JAX calls `eps`."""
LAST = {"float64": 0.0, "float32": 0.0, "bfloat16": 2.0**-8}
"""What writing a result down changes, relative to it, where that is less exact than the arithmetic."""
SMALLEST = {"float64": 1e-50, "float32": 2.0**-126, "bfloat16": 2.0**-126}
"""Numbers below this may become zero. In float64 it is not the smallest normal number: complex steps of 1e-30 leave squares of
1e-60, and where a derivative is zero nothing hides them."""
FLUSHED = {"float64": None, "float32": SMALLEST["float32"], "bfloat16": SMALLEST["bfloat16"]}
"""Numbers below this may change the side of a kink. None in float64: products of a few arguments get nowhere near its smallest
one."""
LARGEST = {"float64": 1e300, "float32": 1e30, "bfloat16": 1e30}
"""Beyond this something overflows on the way, and nothing is claimed."""
ROUNDINGS = 4.0
NOISE = 8.0
"""How far off gates may be, in units of what was measured: functions are not rounded correctly, and what was measured is what
happened three times."""
SHIFT = 1e-6
"""The step in `t`."""


def allowances(scan: Scan, dag: DAG, dtype: str, at: Arguments, along: Arguments | None = None) -> ReferenceResult:
    """How far off every number of the result and the final states may be in a data type; of their derivatives along a change,
    if there is one. Shaped as what `reference` and `derivative` return; infinite where nothing is claimed.

    Raises ValueError as `reference` does.
    """
    if scan.steps > 1:
        rows = written_out(scan, dag, at.q, at.k, at.v, at.gates)
        change = None if along is None else written_out(scan, dag, along.q, along.k, along.v, along.gates)
        turn = None if along is None or change is None else Arguments(*change[2:], along.initial)
        bound = allowances(rows.scan, rows.dag, dtype, Arguments(*rows[2:], at.initial), turn)
        return ReferenceResult(last_of(scan, bound.h), bound.state)
    inputs, initial = turned(at, along)
    clean = evaluate_gates(scan, dag, *inputs)
    noisy = [evaluate_gates(scan, dag, *inputs, evaluator=partial(Rounding, way)) for way in WAYS]
    smallest = FLUSHED[dtype]
    flushed = None if smallest is None else evaluate_gates(scan, dag, *inputs, evaluator=partial(Flushed, smallest))
    raw: list[Floats] = []
    errors: list[Floats] = []
    finals: list[dict[str, Floats]] = []
    for number, gates in enumerate(clean):
        entering = entering_states(scan, dag, number, {} if initial is None else initial[number])
        direct = adds_direct(scan, number)
        otherwise = None if flushed is None else flushed[number]
        sizes = sizes_of(scan, gates, [ways[number] for ways in noisy], entering, otherwise, UNIT[dtype])
        h, states = sizes.error(scan, direct, along is not None)
        vanishing = sizes.vanishing(dtype)
        h, states = h + vanishing[:, None, None], states + vanishing[:, None, None, None]
        errors.append(h)
        if scan.normalize != "none":
            raw.append(run(scan, gates, entering, direct)[0])
        states = np.broadcast_to(states, (*states.shape[:3], scan.key, states.shape[-1]))
        finals.append(leaving_states(scan, dag, number, claimed(_part(states, along), dtype)))
    h = _together(scan, errors)
    if scan.normalize != "none":
        h = quotient(scan, UNIT[dtype], _together(scan, raw), h, along is not None, scales(scan, clean))
    return ReferenceResult(claimed(_part(h, along), dtype).reshape(output_shape(scan, dag)), tuple(finals))


def claimed(error: Floats, dtype: str) -> Floats:
    """An error in units of the roundoff as one of a data type."""
    return np.where(error < LARGEST[dtype], UNIT[dtype] * np.maximum(error, 0), np.inf)


def _part(error: Floats, along: Arguments | None) -> Floats:
    return error.real if along is None else slope(error)


def _together(scan: Scan, by_direction: list[Floats]) -> Floats:
    return np.concatenate(by_direction, axis=1) if scan.combine == "concat" else np.sum(by_direction, axis=0)


# --- sizes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sizes:
    """One direction in sizes, none negative: its gates, how far each may be off, their changes, how far those may be off; the
    states that enter, and their changes. Errors are in units of the roundoff."""

    gates: DirectionGates
    errors: DirectionGates
    changes: DirectionGates
    change_errors: DirectionGates
    states: Floats
    state_changes: Floats

    def error(self, scan: Scan, direct: bool, turn: bool) -> tuple[Floats, Floats]:
        """The errors of outputs and states; if `turn`, those of the derivatives in the imaginary part."""
        start, end = (self._run(scan, direct, shift, turn) for shift in (0.0, SHIFT))
        h, states = (np.subtract(b, a) / SHIFT for a, b in zip(start, end, strict=True))
        return h, states

    def vanishing(self, dtype: str) -> Floats:
        """What numbers below the smallest normal one may add to any error of each head where they become zero on the way: one
        for each edge and node, times the largest factor of each kind that it may yet meet."""
        dag = self.gates.sites.dag

        def largest(gates: DirectionGates) -> Floats:
            values = (gates.source, gates.transition, gates.mark, gates.direct)
            arrays = (*(value.array for value in values), gates.query, gates.key, gates.value, self.states)
            sizes = (1 + np.max(array, axis=(0, *range(2, array.ndim)), initial=0.0) for array in arrays)
            return reduce(np.multiply, sizes)

        count = SMALLEST[dtype] / UNIT[dtype] * (1 + dag.edge_count + dag.node_count)
        return count * largest(self.gates) * (1 + 1j * TURN * (1 + largest(self.changes)))

    def _run(self, scan: Scan, direct: bool, shift: float, turn: bool) -> tuple[Floats, Floats]:
        side = 1j * TURN if turn else 0.0

        def at(size: Floats, error: Floats, change: Floats, change_error: Floats) -> Floats:
            return size + shift * error + side * (change + shift * change_error)

        gates = combined(at, self.gates, self.errors, self.changes, self.change_errors)
        return run(scan, gates, (1 + shift) * (self.states + side * self.state_changes), direct)


def sizes_of(
    scan: Scan,
    gates: DirectionGates,
    noisy: Sequence[DirectionGates],
    entering: Floats,
    flushed: DirectionGates | None = None,
    unit: float = 1.0,
) -> Sizes:
    """The sizes of gates and of what was measured of their rounding; of what they are where small numbers became zero, if that
    is given, in units of the roundoff."""

    def error(array: Floats, count: Floats, otherwise: Floats, *others: Floats) -> Floats:
        noise = np.max([np.abs(other - array) for other in others], axis=0) / STEP
        return np.abs(array) * count + NOISE * noise + np.abs(otherwise - array) / unit

    def measured(size: Callable[[Floats], Floats]) -> tuple[DirectionGates, DirectionGates]:
        sizes, *others = (combined(size, variant) for variant in (gates, flushed or gates, *noisy))
        return sizes, combined(error, sizes, counts, *others)

    counts = roundings(scan, gates)
    (real, errors), (change, change_errors) = measured(np.real), measured(slope)
    matrices = any("key'" in value.states for value in (gates.transition, gates.mark))
    states, turned_states = entering.real, slope(entering.astype(np.complex128))
    if not matrices:
        real, errors, change, change_errors = (combined(np.abs, measure) for measure in (real, errors, change, change_errors))
        return Sizes(real, errors, change, change_errors, np.abs(states), np.abs(turned_states))
    errors, change, change_errors = (normed(measure, "fro") for measure in (errors, change, change_errors))
    return Sizes(normed(real, 2), errors, change, change_errors, length(states, -2), length(turned_states, -2))


def combined(function: Callable[..., Floats], *gates: DirectionGates) -> DirectionGates:
    """A function of the arrays of some sets of gates."""

    def value(pick: Callable[[DirectionGates], Value]) -> Value:
        values = [pick(variant) for variant in gates]
        return replace(values[0], array=function(*(variant.array for variant in values)))

    return DirectionGates(
        gates[0].sites,
        value(lambda variant: variant.source),
        value(lambda variant: variant.transition),
        value(lambda variant: variant.mark),
        value(lambda variant: variant.direct),
        function(*(variant.query for variant in gates)),
        function(*(variant.key for variant in gates)),
        function(*(variant.value for variant in gates)),
    )


def roundings(scan: Scan, gates: DirectionGates) -> DirectionGates:
    """How many units of the roundoff each entry stands for: `ROUNDINGS + n`."""
    sites = gates.sites
    entering = np.bincount(sites.nodes(("in",)), minlength=sites.dag.node_count).astype(np.float64)

    def counted(value: Value, terms: Floats | float) -> Value:
        inner = scan.key * ("key'" in value.states) + scan.track * ("track'" in value.states)
        count = np.asarray(ROUNDINGS + inner + terms).reshape(-1, *(1,) * (value.array.ndim - 1))
        return replace(value, array=np.broadcast_to(count, value.array.shape))

    return DirectionGates(
        sites,
        counted(gates.source, 0.0),
        counted(gates.transition, entering[sites.nodes(("out", "in"))]),
        counted(gates.mark, entering[sites.nodes(("in",))]),
        counted(gates.direct, float(len(scan.directions) + scan.writes - 1)),
        np.full(gates.query.shape, ROUNDINGS + scan.key * scan.track),
        np.full(gates.key.shape, ROUNDINGS + sites.dag.node_count * scan.writes),
        np.full(gates.value.shape, ROUNDINGS),
    )


def length(array: Floats, axis: int) -> Floats:
    """The 2-norm over an axis, which is kept."""
    return np.sqrt(np.sum(np.abs(array) ** 2, axis=axis, keepdims=True))


def normed(gates: DirectionGates, order: Literal[2, "fro"]) -> DirectionGates:
    """Norms over the key axis: of matrices of the given order (2 for spectral), of what acts elementwise the largest."""

    def value(gate: Value) -> Value:
        axes = tuple(2 + at for at, index in enumerate(gate.states) if index in ("key", "key'"))
        states: tuple[Index, ...] = tuple(index for index in gate.states if index not in ("key", "key'"))
        if len(axes) == 2:
            known = np.isfinite(gate.array)  # of numbers that are none there is no spectrum
            norm = np.linalg.norm(np.where(known, gate.array, 0.0), order, axis=(axes[0], axes[1]))
            return Value(gate.ports, states, np.where(known.all(axes), norm, np.inf))
        return Value(gate.ports, states, np.abs(gate.array).max(axes, initial=0.0))

    return DirectionGates(
        gates.sites,
        value(gates.source),
        value(gates.transition),
        value(gates.mark),
        value(gates.direct),
        length(gates.query, -1),
        length(gates.key, -1),
        np.abs(gates.value),
    )


# --- normalizers -----------------------------------------------------------------------------------------------------


def quotient(scan: Scan, unit: float, raw: Floats, error: Floats, turn: bool, scale: Floats) -> Floats:
    """The error of a normalized result, from what is divided and divided by, `raw`, and its `error`; in the imaginary parts the
    derivatives and their errors."""
    h, d, change = np.abs(raw[..., :-1].real), raw[..., -1:].real, np.abs(slope(raw.astype(np.complex128)))
    h_error, d_error = error[..., :-1].real, error[..., -1:].real
    if scan.normalize == "sum":
        size, moves = np.abs(d + NORMALIZE_EPSILON), np.ones(d.shape, dtype=bool)
        unknown = 4 * unit * d_error > size
    else:
        size, moves = np.maximum(np.abs(d), 1.0), np.abs(d) + unit * d_error >= 1
        unknown = turn & moves & (np.abs(d) - unit * d_error <= 1)
    d_error = np.where(moves, d_error, 0)
    size = size + scan.epsilon * scale.real
    bound = (h_error + h * ROUNDINGS) / size + h * d_error / size**2
    if turn:
        wide = slope(error)
        h_wide, d_wide = wide[..., :-1], np.where(moves, wide[..., -1:], 0)
        h_change, d_change = change[..., :-1], np.where(moves, change[..., -1:], 0)
        first = (h_wide + h_change * ROUNDINGS) / size + (h_change * d_error + h_error * d_change + h * d_wide) / size**2
        second = h * d_change * ROUNDINGS / size**2 + 2 * h * d_change * d_error / size**3
        bound = bound + 1j * TURN * (first + second)
    return np.where(unknown, np.inf * (1 + 1j * turn) if turn else np.inf, bound)
