"""Whether the numbers of a candidate are right, before it may win.

The judge is the float64 reference, node by node; in training mode its exact derivative along one random change of all
arguments must be the product of that change with the gradients. Where the reference would take too long, it judges a smaller
scan of the same spec, and at full size the candidate must agree with another strategy, in the result and every gradient.

What rounding may change is measured, not guessed: besides a tolerance, a result may be off by a few times as much as the judge
itself moves when its arguments change in their last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stmlang.compiler import Call, Prepared, Request, plan_problem, prepare
from stmlang.cost.counts import Counts, regular_counts
from stmlang.cost.roofline import Estimate
from stmlang.cost.target import Target
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.recurrence import reference
from stmlang.plan.choose import rechosen
from stmlang.runtime.compiled import CompiledScan, compiled
from stmlang.runtime.measure import Built, gate_axes, scan_program
from stmlang.scan.scan import Scan
from stmlang.scan.topology import Axis, Regular
from stmlang.source.diagnostic import SpecError
from stmlang.strategies.registry import reference_strategy

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 5e-2}
"""How far a result may be off, relative to its largest number."""
NOISE = 30
"""How many times the effect of a changed last bit is still rounding."""
REFERENCE_SECONDS = 1.5
"""The reference may take so long for one evaluation."""
SITE_SECONDS, NUMBER_SECONDS = 15e-6, 4e-9
"""What the reference takes for each place where states meet, and for each number of the state there."""
RIVAL_SECONDS = 10.0
"""Another strategy is asked if it is predicted to take no longer."""
NARROW = 4
"""Key and value of a scan whose graph cannot be made smaller."""

Tree = Any
Outputs = dict[str, Any]


class Inspector:
    """Judges candidates of one problem, all on the same random arguments. `rivals` are the candidates that fit, the fastest
    first."""

    def __init__(self, prepared: Prepared, target: Target, rivals: Sequence[Estimate], seed: int) -> None:
        self.prepared, self.target, self.rivals, self.seed = prepared, target, rivals, seed
        self.training, self.batch = prepared.problem.training, prepared.problem.batch
        self.full = reference_seconds(prepared.problem.counts, prepared.declared) <= REFERENCE_SECONDS
        self._oracles: dict[bool, Oracle] = {}
        self._opinions: dict[str, tuple[Outputs, dict[str, float]]] = {}

    @cached_property
    def small(self) -> Prepared | None:
        """A scan of the same spec that the reference can judge, if this one is too large for it."""
        scan = None if self.full else smaller(self.prepared)
        return None if scan is None else prepare(scan, Call(self.prepared.problem.dtype, self.prepared.problem.mode))

    @property
    def checked(self) -> str:
        """What numbers are compared with, for people."""
        what = "results and gradients" if self.training else "results"
        if self.full:
            return f"{what} as the reference has them"
        where = "another strategy has them" if self._opinions else "no other strategy could be asked for them"
        if self.small is None:
            return f"{what} as {where}; too large for the reference"
        return f"{what} at {_size(self.small)} as the reference has them, and at full size as {where}"

    def fault(self, op: CompiledScan, program: Built) -> str:
        """What is wrong with a candidate, compiled by `scan_program`; empty if nothing is."""
        if self.full:
            return self._oracle(op, program).fault(program, self.batch)
        return self._small_fault(op) or self._rival_fault(op, program)

    def _oracle(self, op: CompiledScan, program: Built) -> Oracle:
        """The reference's verdict for the size of `op`, computed once."""
        full = op.dag is self.prepared.dag
        if full not in self._oracles:
            arguments = _last(op, program.arguments[1], self.batch if full else 1)
            self._oracles[full] = oracle(op, arguments, self.training, self.seed)
        return self._oracles[full]

    def _small_fault(self, op: CompiledScan) -> str:
        """The same strategy on the smaller scan. A strategy that has nothing to propose there is not judged by it."""
        if self.small is None:
            return ""
        choice = op.plan.chosen.candidate.choice
        for settings in (choice.settings, None):
            request = Request(strategy=choice.strategy, settings=settings, tuned=False)
            try:
                plan = plan_problem(self.small.problem, request, self.target, None)
            except SpecError:
                continue
            small = compiled(self.small, plan)
            program = scan_program(small, self.small.problem.mode, 1, self.seed)
            fault = self._oracle(small, program).fault(program, 1)
            return f"{fault} at {_size(self.small)}" if fault else ""
        return ""

    def _rival_fault(self, op: CompiledScan, program: Built) -> str:
        """Against another strategy at full size."""
        own = op.plan.strategy
        names = (reference_strategy().name, *(entry.candidate.strategy for entry in self.rivals))
        for name in dict.fromkeys(names):
            rival = next((entry for entry in self.rivals if entry.candidate.strategy == name), None)
            if name == own or rival is None or rival.seconds > RIVAL_SECONDS:
                continue
            opinion, noise = self._opinion(op, rival)
            fault = _compare(self._outputs(program), opinion, noise, 10 * TOLERANCE[op.dtype])
            return f"{fault}, says `{name}`" if fault else ""
        return ""

    def _opinion(self, op: CompiledScan, rival: Estimate) -> tuple[Outputs, dict[str, float]]:
        """What another strategy computes, and how far each array of it moves when the arguments change in their last bit."""
        name = rival.candidate.strategy
        if name not in self._opinions:
            other = compiled(self.prepared, rechosen(op.plan, rival))
            program = scan_program(other, self.prepared.problem.mode, self.batch, self.seed)
            outputs = self._outputs(program)
            noise = dict.fromkeys(outputs, 0.0)
            if op.dtype != "bfloat16":  # there the last bit is what the tolerance allows
                arguments = program.arguments[1]
                moved = jax.tree.map(_like, _rounded(arguments, op.dtype, self.seed), arguments)
                noise = jax.tree.map(_error, self._outputs(program, moved), outputs)
            self._opinions[name] = outputs, noise
        return self._opinions[name]

    def _outputs(self, program: Built, arguments: Tree = None) -> Outputs:
        """The result, and the gradients if there are any, by name, as numpy arrays."""
        op, default, *rest = program.arguments
        computed: Any = jax.device_get(program.call(op, default if arguments is None else arguments, *rest))
        if not self.training:
            return {"result": computed}
        h, (q, k, v, gates) = computed
        named = {f"gradient of `{name}`": array for name, array in {"q": q, "k": k, "v": v, **gates}.items()}
        return {"result": h, **named}


@dataclass(frozen=True, eq=False)
class Oracle:
    """What the reference says of a scan without a batch: the result `h`, and in training mode the slope of `cotangent . h`
    along a change of the arguments; each with how far it may be off."""

    h: np.ndarray
    allowed: float
    along: Arguments
    cotangent: np.ndarray
    slope: float
    slope_allowed: float
    training: bool

    def fault(self, program: Built, batch: int) -> str:
        """What is wrong with a program; of a batch, the last scan is looked at."""
        op, arguments, *rest = program.arguments
        if not self.training:
            return self._result_fault(program.call(op, arguments), batch)
        shape, dtype = rest[0].shape, rest[0].dtype
        cotangent = np.zeros(shape) if batch > 1 else self.cotangent
        if batch > 1:
            cotangent[-1] = self.cotangent
        h, gradients = program.call(op, arguments, jnp.asarray(cotangent, dtype))
        q, k, v, gates = _last(op, gradients, batch)
        pairs = [(q, self.along.q), (k, self.along.k), (v, self.along.v)]
        pairs += [(gates[name], change) for name, change in self.along.gates.items()]
        slope = sum(float(np.vdot(_wide(gradient), _wide(change))) for gradient, change in pairs)
        error = abs(slope - self.slope) / (abs(self.slope) or 1.0)
        return self._result_fault(h, batch) or _words("gradients", error, self.slope_allowed)

    def _result_fault(self, h: Array, batch: int) -> str:
        return _words("result", _error(_wide(h) if batch == 1 else _wide(h)[-1], self.h), self.allowed)


def oracle(op: CompiledScan, arguments: Tree, training: bool, seed: int) -> Oracle:
    """Ask the reference, once with the arguments and once with others that differ in the last bit."""
    scan, dag, tolerance = op.scan, op.dag, TOLERANCE[op.dtype]
    points = [Arguments(*point) for point in (jax.tree.map(_wide, arguments), _rounded(arguments, op.dtype, seed))]
    h, moved = (reference(scan, dag, point.q, point.k, point.v, point.gates).h for point in points)
    allowed = max(tolerance, NOISE * _error(moved, h))
    generator = np.random.default_rng(seed + 1)

    def change_of(array: Array) -> np.ndarray:
        return generator.standard_normal(array.shape)

    along = Arguments(*jax.tree.map(change_of, arguments))
    if not training:
        return Oracle(h, allowed, along, h, 0.0, 0.0, training)
    change, other = (derivative(scan, dag, point, along).h for point in points)
    slope = float(np.linalg.norm(change))
    # The cotangent points where the result goes, so that nothing cancels in the slope.
    cotangent = change / slope if slope else np.ones_like(change)
    moved_slope = abs(float(np.vdot(cotangent, other)) - slope) / (slope or 1.0)
    return Oracle(h, allowed, along, cotangent, slope, max(tolerance, NOISE * moved_slope), training)


def _last(op: CompiledScan, arguments: Tree, batch: int) -> Tree:
    """The last scan's part of a batch of arguments or gradients."""
    if batch == 1:
        return arguments
    q, k, v, gates = arguments
    shared = {name for name, axis in gate_axes(op).items() if axis is None}
    return q[-1], k[-1], v[-1], {name: leaf if name in shared else leaf[-1] for name, leaf in gates.items()}


def _rounded(arguments: Tree, dtype: str, seed: int) -> Tree:
    """Arguments in float64, each number larger or smaller by the last bit of what sums are computed in."""
    generator = np.random.default_rng(seed + 2)
    eps = float(np.finfo(np.float64 if dtype == "float64" else np.float32).eps)

    def move(array: Array) -> np.ndarray:
        return _wide(array) * (1 + eps * generator.choice([-1.0, 1.0], array.shape))

    return jax.tree.map(move, arguments)


def _like(array: np.ndarray, other: Array) -> Array:
    return jnp.asarray(array, other.dtype)


def _wide(array: Any) -> np.ndarray:
    return np.asarray(array).astype(np.float64)


def _error(computed: Any, expected: Any) -> float:
    """The largest difference, relative to the largest number wanted; infinite where a number is none."""
    computed, expected = _wide(computed), _wide(expected)
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    error = float(np.abs(computed - expected).max(initial=0.0)) / scale
    return error if np.isfinite(error) else float("inf")


def _compare(computed: Outputs, expected: Outputs, noise: dict[str, float], tolerance: float) -> str:
    for name, array in expected.items():
        if fault := _words(name, _error(computed[name], array), max(tolerance, NOISE * noise[name])):
            return fault
    return ""


def _words(what: str, error: float, allowed: float) -> str:
    return "" if error <= allowed else f"{what} off by {error:.1e} where {allowed:.1e} is allowed"


# --- smaller scans ---------------------------------------------------------------------------------------------------


def reference_seconds(counts: Counts, scan: Scan) -> float:
    """How long the reference takes for an evaluation, about."""
    sites = (counts.nodes + 2 * counts.edges + counts.line_edges) * len(scan.directions)
    return sites * (SITE_SECONDS + NUMBER_SECONDS * scan.heads * scan.track * scan.key * scan.value)


def smaller(prepared: Prepared) -> Scan | None:
    """The same scan with axes short enough for the reference; where there are none to shorten, with a narrow state. None
    where that does not help."""
    scan = prepared.declared
    if not isinstance(scan.topology, Regular):
        narrow = replace(scan, key=min(scan.key, NARROW), value=min(scan.value, NARROW))
        return narrow if reference_seconds(prepared.problem.counts, narrow) <= REFERENCE_SECONDS else None
    sizes = [cast(int, axis.size) for axis in scan.topology.axes]
    while reference_seconds(regular_counts(tuple(sizes)), scan) > REFERENCE_SECONDS and max(sizes) > 1:
        longest = sizes.index(max(sizes))
        sizes[longest] = -(-sizes[longest] // 2)
    axes = tuple(Axis(axis.name, size) for axis, size in zip(scan.topology.axes, sizes, strict=True))
    return replace(scan, topology=replace(scan.topology, axes=axes))


def _size(small: Prepared) -> str:
    axes, scan = small.problem.axes, small.declared
    return f"key {scan.key}, value {scan.value}" if axes is None else " x ".join(map(str, axes))
