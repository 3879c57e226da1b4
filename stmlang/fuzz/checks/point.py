"""A trial's arguments in a data type, and what the oracles say of them: worked out once for all ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stmlang.fuzz.trial import NotApplicable, Trial
from stmlang.graph.dag import DAG
from stmlang.oracle.copies import copies, side_by_side, taken_apart
from stmlang.oracle.derivative import Arguments, derivative
from stmlang.oracle.functions import Floats
from stmlang.oracle.recurrence import ReferenceResult, reference
from stmlang.oracle.tolerance import LAST, ROUNDINGS, UNIT, allowances
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.scan import Scan

Array = npt.NDArray[np.float64]
Tree = Any
SINGLE = 3
"""How many single entries of arguments are moved by themselves."""


@dataclass(frozen=True, eq=False)
class Slope:
    """The derivative of `cotangent . (result, states)` along a change of one argument array, `name`, which is number `array`
    among them; how far off it may be; and the change."""

    name: str
    array: int
    change: Array
    wanted: float
    allowed: float


@dataclass(frozen=True, eq=False)
class Point:
    """Where a scan is evaluated: arguments as the data type has them, in float64; without initial states the final ones are not
    looked at. `seed` draws changes and cotangents. Nothing is claimed of nodes that are not `real`."""

    scan: Scan
    dag: DAG
    dtype: str
    at: Arguments
    seed: int
    real: npt.NDArray[np.bool_] | None = None

    @property
    def stateful(self) -> bool:
        return self.at.initial is not None

    @cached_property
    def result(self) -> ReferenceResult:
        """By the recurrence. Raises NotApplicable where it overflows."""
        found = reference(self.scan, self.dag, self.at.q, self.at.k, self.at.v, self.at.gates, self.at.initial)
        return self._finite(found)

    @cached_property
    def allowed(self) -> ReferenceResult:
        """How far off the result may be."""
        bound = allowances(self.scan, self.dag, self.dtype, self.at)
        return self._claimed(replace(bound, h=bound.h + LAST[self.dtype] * np.abs(self.result.h)))

    @cached_property
    def arrays(self) -> tuple[list[Array], list[str], Any]:
        """All argument arrays, their names, and the structure of `as_tree`."""
        tree, states = as_tree(self.at), self.at.initial or ()
        arrays: list[Array] = jax.tree.leaves(tree)
        structure = cast(Any, jax.tree.structure(tree))
        names = ["q", "k", "v", *map(leaf_name, sorted(self.at.gates))]
        names += [f"initial state of direction {k}, port {port}" for k, ports in enumerate(states) for port in sorted(ports)]
        return arrays, names, structure

    @cached_property
    def changes(self) -> list[tuple[int, Array]]:
        """Changes of one array each: all of it, and then single entries; with the array's number."""
        rng, (arrays, _, _) = np.random.default_rng(self.seed), self.arrays
        found = [(number, rounded(rng.standard_normal(array.shape), self.dtype)) for number, array in enumerate(arrays)]
        filled = [number for number, array in enumerate(arrays) if array.size]
        for _ in range(SINGLE if filled else 0):
            number = filled[int(rng.integers(len(filled)))]
            single = np.zeros(arrays[number].shape)
            single.flat[int(rng.integers(single.size))] = 1.0
            found.append((number, single))
        return found

    def along(self, change: int | None) -> Arguments:
        """One of `changes` as a change of all arguments; None: those of all whole arrays at once."""
        arrays, _, structure = self.arrays
        moved = [np.zeros(array.shape) for array in arrays]
        for number, array in self.changes[: len(arrays)] if change is None else [self.changes[change]]:
            moved[number] = array
        return Arguments(*jax.tree.unflatten(structure, moved))

    @cached_property
    def derivatives(self) -> list[tuple[ReferenceResult, ReferenceResult]]:
        """The derivative along each of `changes`, and how far off it may be; the last pair is that along all arrays at once."""
        along = [self.along(number) for number in (*range(len(self.changes)), None)]
        many = copies(self.scan, len(along))
        at, moved = (side_by_side(self.scan, self.dag, parts) for parts in ([self.at] * len(along), along))
        found, bound = derivative(many, self.dag, at, moved), allowances(many, self.dag, self.dtype, at, moved)
        apart = [taken_apart(self.scan, len(along), part) for part in (self._finite(found), bound)]
        return [(wanted, self._claimed(bound)) for wanted, bound in zip(*apart, strict=True)]

    @cached_property
    def cotangent(self) -> tuple[Array, tuple[dict[str, Array], ...] | None]:
        """A random one for the result and, with states, the final ones; zero where nothing is claimed of a derivative."""
        rng, bounds = np.random.default_rng(self.seed + 1), [bound for _, bound in self.derivatives]

        def draw(*parts: Floats) -> Array:
            known = np.all(np.isfinite(parts), axis=0)
            return np.where(known, rounded(rng.standard_normal(parts[0].shape), self.dtype), 0.0)

        h = draw(*(bound.h for bound in bounds))
        if not self.stateful:
            return h, None
        return h, tuple(
            jax.tree.map(draw, *(bound.state[number] for bound in bounds)) for number in range(len(bounds[0].state))
        )

    @cached_property
    def slopes(self) -> list[Slope]:
        """What the gradient is to be, along each of `changes`."""
        names = self.arrays[1]
        return [
            Slope(names[number], number, change, self.product(found), self.product(bound, size=True))
            for (number, change), (found, bound) in zip(self.changes, self.derivatives, strict=False)
        ]

    def product(self, found: ReferenceResult, *, size: bool = False) -> float:
        """The cotangent times a result; if `size`, of the sizes of both."""

        def dot(cotangent: Array, array: Floats) -> float:
            if not size:
                return float(np.sum(cotangent * array.real))
            return float(np.sum(np.abs(cotangent) * np.where(cotangent == 0, 0.0, array)))

        h, state = self.cotangent
        return dot(h, found.h) + sum(jax.tree.leaves(jax.tree.map(dot, state, found.state)) if state is not None else ())

    def _claimed(self, bound: ReferenceResult) -> ReferenceResult:
        """Bounds, infinite where nothing is claimed."""
        if self.real is None:
            return bound
        return replace(bound, h=np.where(self.real.reshape(-1, *(1,) * (bound.h.ndim - 1)), bound.h, np.inf))

    def _finite(self, found: ReferenceResult) -> ReferenceResult:
        arrays = [found.h, *(array for ports in found.state for array in ports.values())]
        if not all(np.isfinite(array).all() for array in arrays):
            raise NotApplicable("the reference overflows")
        return found


def leaf_name(name: str) -> str:
    """What a leaf's array is called: a leaf may have the name of an input."""
    return f"leaf `{name}`"


def slope_slack(gradient: Array, change: Array, dtype: str) -> float:
    """How much writing a gradient down may change its product with a change."""
    return (ROUNDINGS * UNIT[dtype] + LAST[dtype]) * float(np.sum(np.abs(gradient * change)))


@lru_cache(maxsize=8)
def point(trial: Trial, dtype: str, stateful: bool) -> Point:
    """The point of a trial; the last few are kept."""
    op = trial.compiled(None, dtype)
    return point_at(op, dtype, trial.arguments(op), stateful, trial)


def point_at(op: CompiledScan, dtype: str, arguments: Arguments, stateful: bool, trial: Trial) -> Point:
    """A point at given arguments of a trial's scan."""
    at = arguments if stateful else replace(arguments, initial=None)

    def put(array: Array) -> Array:
        return rounded(array, dtype)

    exact = Arguments(*jax.tree.map(put, as_tree(at)))
    return Point(op.scan, op.dag, dtype, exact, trial.seed, trial.real)


def rounded(array: npt.ArrayLike, dtype: str) -> Array:
    """Numbers as a data type has them, in float64. Below its smallest normal number that is zero, with the sign: XLA takes it
    so on CPUs, and on which side of a kink an argument lies may not depend on the machine."""
    wide = np.asarray(np.asarray(array, np.float64).astype(jnp.dtype(dtype)), np.float64)
    kind = cast(Any, jnp.finfo)(dtype)
    return np.where(np.abs(wide) < float(kind.smallest_normal), np.copysign(0.0, wide), wide)


def as_tree(arguments: Arguments) -> Tree:
    """The arguments as a pytree for `op(*tree)`."""
    initial: Sequence[Any] | None = arguments.initial
    states = None if initial is None else tuple(dict(ports) for ports in initial)
    return arguments.q, arguments.k, arguments.v, dict(arguments.gates), states
