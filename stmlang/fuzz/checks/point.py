"""A trial's values in a data type, and what the oracles say of them: worked out once for all ways, and at once for all draws
that are tried together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from stmlang.fuzz.memory import remembered
from stmlang.fuzz.trial import NothingClaimed, Trial
from stmlang.graph.dag import DAG
from stmlang.oracle.derivative import Arguments
from stmlang.oracle.functions import Floats
from stmlang.oracle.recurrence import ReferenceResult
from stmlang.oracle.tolerance import LAST, ROUNDINGS, UNIT
from stmlang.oracle.value_sets import bounds, derivatives, references
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.scan import Scan

Array = npt.NDArray[np.float64]
Tree = Any
T = TypeVar("T")
SINGLE = 3
"""How many single entries of arguments are moved by themselves."""
EVERYTHING = "everything"
"""What is moved where all arguments are at once."""


@dataclass(frozen=True, eq=False)
class Slope:
    """The derivative of `cotangent . (result, states)` along a change of some of the argument arrays, by number; how far off it
    may be; and what is changed, in words."""

    name: str
    changes: Mapping[int, Array]
    expected: float
    allowed: float


Pair = tuple[ReferenceResult, ReferenceResult]
"""What is right, and how far off it may be."""


@dataclass(frozen=True, eq=False)
class Point:
    """Where a scan is evaluated: arguments as the data type has them, in float64; without initial states the final ones are not
    looked at. `seed` and `draw` choose changes and cotangents. Nothing is claimed of nodes that are not `real`.

    Of draw 0 derivatives are looked at along every argument array by itself, and single entries. Of the others, which are many,
    along one array, another one for each draw, and along everything at once: that meets every number of a gradient, too.
    """

    together: Together
    place: int
    at: Arguments
    seed: int
    draw: int

    @property
    def scan(self) -> Scan:
        return self.together.scan

    @property
    def dag(self) -> DAG:
        return self.together.dag

    @property
    def dtype(self) -> str:
        return self.together.dtype

    @property
    def stateful(self) -> bool:
        return self.at.initial is not None

    @property
    def result(self) -> ReferenceResult:
        """By the recurrence. Raises NothingClaimed where it overflows."""
        return _known(self.together.results[self.place])

    @property
    def allowed(self) -> ReferenceResult:
        """How far off the result may be."""
        return _known(self.together.allowed[self.place])

    @property
    def derivatives(self) -> list[Pair]:
        """The derivative along each of `asked`, and how far off it may be; the last pair is that along all arrays at once."""
        return _known(self.together.derivatives[self.place])

    @cached_property
    def arrays(self) -> tuple[list[Array], list[str], Any]:
        """All argument arrays, their names, and the structure of `as_tree`."""
        tree, states = as_tree(self.at), self.at.initial or ()
        arrays: list[Array] = jax.tree.leaves(tree)
        structure = cast(Any, jax.tree.structure(tree))
        names = ["q", "k", "v", *map(leaf_name, sorted(self.at.gates))]
        names += [f"initial state of direction {k}, port {port}" for k, ports in enumerate(states) for port in sorted(ports)]
        return arrays, names, structure

    def random(self, purpose: int) -> np.random.Generator:
        """The choices made for a purpose."""
        return np.random.default_rng(self.seed + purpose if self.draw == 0 else [self.seed + purpose, self.draw])

    @cached_property
    def changes(self) -> list[tuple[int, Array]]:
        """Changes of one array each: all of it, and then, of draw 0, single entries; with the array's number."""
        rng, (arrays, _, _) = self.random(0), self.arrays
        changes = [(number, rounded(rng.standard_normal(array.shape), self.dtype)) for number, array in enumerate(arrays)]
        filled = [number for number, array in enumerate(arrays) if array.size]
        for _ in range(SINGLE if filled and self.draw == 0 else 0):
            number = filled[int(rng.integers(len(filled)))]
            single = np.zeros(arrays[number].shape)
            single.flat[int(rng.integers(single.size))] = 1.0
            changes.append((number, single))
        return changes

    @cached_property
    def asked(self) -> list[int | None]:
        """The changes along which derivatives are looked at; None stands for those of all whole arrays at once."""
        if self.draw == 0:
            return [*range(len(self.changes)), None]
        return [self.draw % len(self.arrays[0]), None]

    def moved(self, change: int | None) -> dict[int, Array]:
        """The arrays that one of `asked` moves, by number."""
        return dict(self.changes[: len(self.arrays[0])] if change is None else [self.changes[change]])

    def along(self, change: int | None) -> Arguments:
        """One of `asked` as a change of all arguments."""
        arrays, _, structure = self.arrays
        moved = self.moved(change)
        tree = [moved.get(number, np.zeros(array.shape)) for number, array in enumerate(arrays)]
        return Arguments(*jax.tree.unflatten(structure, tree))

    @cached_property
    def cotangent(self) -> tuple[Array, tuple[dict[str, Array], ...] | None]:
        """A random one for the result and, with states, the final ones; zero where nothing is claimed of a derivative."""
        rng, limits = self.random(1), [bound for _, bound in self.derivatives]

        def draw(*arrays: Floats) -> Array:
            known = np.all(np.isfinite(arrays), axis=0)
            return np.where(known, rounded(rng.standard_normal(arrays[0].shape), self.dtype), 0.0)

        h = draw(*(bound.h for bound in limits))
        if not self.stateful:
            return h, None
        return h, tuple(
            jax.tree.map(draw, *(bound.state[number] for bound in limits)) for number in range(len(limits[0].state))
        )

    @cached_property
    def slopes(self) -> list[Slope]:
        """What the gradient is to be, along each of `asked`; of draw 0, along each array and entry by itself."""
        names = self.arrays[1]
        slopes = [
            Slope(
                EVERYTHING if change is None else names[self.changes[change][0]],
                self.moved(change),
                self.product(right),
                self.product(bound, size=True),
            )
            for change, (right, bound) in zip(self.asked, self.derivatives, strict=True)
        ]
        return slopes[:-1] if self.draw == 0 else slopes

    def product(self, result: ReferenceResult, *, size: bool = False) -> float:
        """The cotangent times a result; if `size`, of the sizes of both."""

        def dot(cotangent: Array, array: Floats) -> float:
            if not size:
                return float(np.sum(cotangent * array.real))
            return float(np.sum(np.abs(cotangent) * np.where(cotangent == 0, 0.0, array)))

        h, state = self.cotangent
        return dot(h, result.h) + sum(jax.tree.leaves(jax.tree.map(dot, state, result.state)) if state is not None else ())


@dataclass(frozen=True, eq=False)
class Together:
    """The points of a scan that the oracles look at together."""

    scan: Scan
    dag: DAG
    dtype: str
    real: npt.NDArray[np.bool_] | None
    points: list[Point] = field(default_factory=list[Point])

    @cached_property
    def results(self) -> list[ReferenceResult | None]:
        """By the recurrence; None where it overflows."""
        return _finite(references(self.scan, self.dag, [point.at for point in self.points]))

    @cached_property
    def allowed(self) -> list[ReferenceResult | None]:
        """How far off each may be."""
        known = [(number, result) for number, result in enumerate(self.results) if result is not None]
        limits = bounds(self.scan, self.dag, self.dtype, [self.points[number].at for number, _ in known])
        allowed: list[ReferenceResult | None] = [None] * len(self.points)
        for (number, result), bound in zip(known, limits, strict=True):
            allowed[number] = self._claimed(replace(bound, h=bound.h + LAST[self.dtype] * np.abs(result.h)))
        return allowed

    @cached_property
    def derivatives(self) -> list[list[Pair] | None]:
        """Those that each point asks for; None where one overflows."""
        known = [point for point in self.points if self.results[point.place] is not None]
        right = self._derivatives(known)
        known = [point for point in known if right[point.place] is not None]
        places = [point for point in known for _ in point.asked]
        limits = iter(
            bounds(
                self.scan,
                self.dag,
                self.dtype,
                [point.at for point in places],
                [point.along(change) for point in known for change in point.asked],
            )
        )
        pairs: list[list[Pair] | None] = [None] * len(self.points)
        for point in known:
            pairs[point.place] = [(result, self._claimed(next(limits))) for result in right[point.place] or ()]
        return pairs

    def _derivatives(self, points: Sequence[Point]) -> dict[int, list[ReferenceResult] | None]:
        """The derivatives of each point, by place; None where one overflows."""
        places = [point for point in points for _ in point.asked]
        along = [point.along(change) for point in points for change in point.asked]
        each = iter(_finite(derivatives(self.scan, self.dag, [point.at for point in places], along)))
        taken = {point.place: [next(each) for _ in point.asked] for point in points}
        return {place: _all_known(results) for place, results in taken.items()}

    def _claimed(self, bound: ReferenceResult) -> ReferenceResult:
        """Bounds, infinite where nothing is claimed."""
        if self.real is None:
            return bound
        return replace(bound, h=np.where(self.real.reshape(-1, *(1,) * (bound.h.ndim - 1)), bound.h, np.inf))


def _finite(results: Iterable[ReferenceResult]) -> list[ReferenceResult | None]:
    """Results, None where something is not finite."""

    def finite(result: ReferenceResult) -> bool:
        arrays = (result.h, *(array for ports in result.state for array in ports.values()))
        return all(np.isfinite(array).all() for array in arrays)

    return [result if finite(result) else None for result in results]


def _all_known(results: Sequence[ReferenceResult | None]) -> list[ReferenceResult] | None:
    known = [result for result in results if result is not None]
    return known if len(known) == len(results) else None


def _known(value: T | None) -> T:
    if value is None:
        raise NothingClaimed("the reference overflows")
    return value


def leaf_name(name: str) -> str:
    """What a leaf's array is called: a leaf may have the name of an input."""
    return f"leaf `{name}`"


def projected(gradient: Sequence[Array], changes: Mapping[int, Array], dtype: str) -> tuple[float, float]:
    """The product of a gradient with changes of some of its arrays, and how much writing the gradient down may change it."""
    terms = [gradient[number] * change for number, change in changes.items()]
    slack = ROUNDINGS * UNIT[dtype] + LAST[dtype]
    return sum(float(np.sum(term)) for term in terms), slack * sum(float(np.sum(np.abs(term))) for term in terms)


def point(trial: Trial, dtype: str, stateful: bool) -> Point:
    """The point of a trial; the last few are kept, with those of the draws that are tried together with it."""
    draws = trial.together
    points = _points(replace(trial, draw=draws.start, beside=None), len(draws), dtype, stateful)
    return points[trial.draw - draws.start]


@remembered(8)
def _points(first: Trial, count: int, dtype: str, stateful: bool) -> list[Point]:
    op = first.compiled(None, dtype)
    draws = first.draws(count)
    return points_at(op.scan, op, dtype, [draw.arguments(op) for draw in draws], stateful, draws)


def points_at(
    scan: Scan, op: CompiledScan, dtype: str, arguments: Sequence[Arguments], stateful: bool, draws: Sequence[Trial]
) -> list[Point]:
    """Points of a scan on the graph of a compiled one, at given arguments for each draw of a trial."""

    def put(array: Array) -> Array:
        return rounded(array, dtype)

    together = Together(scan, op.dag, dtype, draws[0].real)
    for place, (draw, at) in enumerate(zip(draws, arguments, strict=True)):
        exact = Arguments(*jax.tree.map(put, as_tree(at if stateful else replace(at, initial=None))))
        together.points.append(Point(together, place, exact, draw.seed, draw.draw))
    return together.points


def alone(point: Point, scan: Scan, at: Arguments) -> Point:
    """A point of another scan on the same graph, at other arguments, by itself."""
    together = replace(point.together, scan=scan, points=[])
    together.points.append(replace(point, together=together, place=0, at=at))
    return together.points[0]


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
