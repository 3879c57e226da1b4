"""Numbers for the arguments of a scan, ordinary and at the edges.

A profile is a rule for the values of leaves. Inputs and initial states are standard normal under every profile; sums of weights
that are divided by (`normalize sum`) start positive, so that they stay away from zero where weights are positive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from stmlang.graph.shapes import key_shape, leaf_shape, query_shape, state_shapes, value_shape
from stmlang.oracle.derivative import Arguments
from stmlang.runtime.compiled import CompiledScan
from stmlang.scan.expression import Apply, Function, inside
from stmlang.scan.scan import Leaf, Scan

Floats = npt.NDArray[np.float64]
Rule = Callable[[np.random.Generator, Leaf, tuple[int, ...], float], Floats]
"""Values of a leaf: its shape, and the largest magnitude that the equation around it can take without overflow."""

LARGE = 1000.0
"""Where `sigmoid` is 0 or 1 and `tanh` 1 or -1 exactly, in every data type."""
LARGE_EXPONENT = 8.0
"""The same for a leaf that stands below `exp` or a power."""


def _random(rng: np.random.Generator, leaf: Leaf, shape: tuple[int, ...], _: float) -> Floats:
    """Standard normal, given ones uniform in [-0.6, 0.6], or a little beyond their bounds."""
    if leaf.kind != "given":
        return rng.normal(size=shape)
    if np.isinf(leaf.low) or np.isinf(leaf.high):
        return rng.uniform(-0.6, 0.6, shape)
    beyond = 0.2 * (leaf.high - leaf.low)
    return rng.uniform(leaf.low - beyond, leaf.high + beyond, shape)


def _exact(rng: np.random.Generator, _: Leaf, shape: tuple[int, ...], __: float) -> Floats:
    """0, -0, 1 and -1 only."""
    return rng.choice([0.0, -0.0, 1.0, -1.0], shape, p=[0.25, 0.15, 0.4, 0.2])


def _tiny(rng: np.random.Generator, leaf: Leaf, shape: tuple[int, ...], largest: float) -> Floats:
    """Half of them ordinary, the others between 1e-38 and 1e-30 in magnitude."""
    small = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-38, -30, shape)
    return np.where(rng.random(shape) < 0.5, small, _random(rng, leaf, shape, largest))


def _critical(rng: np.random.Generator, leaf: Leaf, shape: tuple[int, ...], largest: float) -> Floats:
    """What makes shares 0, 1 or equal parts exactly, and `tanh` and `sigmoid` one: the border of P-mode. `linear` is a large
    number or the same for all, everything else 0 or 1, mostly 1."""
    if leaf.kind != "linear":
        return rng.choice([0.0, 1.0], shape, p=[0.3, 0.7])
    return rng.choice([-largest, largest], shape, p=[0.3, 0.7])


def _saturated(rng: np.random.Generator, leaf: Leaf, shape: tuple[int, ...], largest: float) -> Floats:
    """So large, either way, that `sigmoid` and `tanh` are 0, 1 or -1 exactly; what is given lies far outside its bounds, or is
    1 or -1 where it has none."""
    bounded = leaf.kind == "linear" or not (np.isinf(leaf.low) or np.isinf(leaf.high))
    return rng.choice([-1.0, 1.0], shape) * (largest if bounded else 1.0)


def _signs(rng: np.random.Generator, _: Leaf, shape: tuple[int, ...], __: float) -> Floats:
    """Magnitudes between 0.3 and 1, of alternating sign."""
    signs = 1.0 - 2.0 * (np.indices(shape).sum(axis=0) % 2) if shape else np.ones(shape)
    return signs * rng.uniform(0.3, 1.0, shape)


def _kept(rng: np.random.Generator, leaf: Leaf, shape: tuple[int, ...], __: float) -> Floats:
    """What makes nothing larger, and often not smaller: orthogonal matrices, identities, contractions, unit vectors, numbers in
    [0, 1], mostly one."""
    state = [index for index in leaf.indices if index not in ("out", "in")]
    pair = next(((row, f"{row}'") for row in ("key", "value", "track") if {row, f"{row}'"} <= set(state)), None)
    if pair is None:
        entries = rng.choice([0.0, 0.25, 1.0], shape, p=[0.1, 0.3, 0.6])
        axis = len(shape) - 1 if state and leaf.indices[-1] in state else None
        if axis is None or shape[axis] < 2:
            return entries
        vectors = rng.normal(size=shape)
        return vectors / np.linalg.norm(vectors, axis=axis, keepdims=True)
    axes = tuple(len(shape) - len(leaf.indices) + leaf.indices.index(index) for index in pair)
    moved = np.moveaxis(rng.normal(size=shape), axes, (-2, -1))
    left, _, right = np.linalg.svd(moved)
    values = rng.choice([0.3, 1.0], (*moved.shape[:-2], 1, 1)) * left @ right
    matrices = np.where(rng.random((*moved.shape[:-2], 1, 1)) < 0.3, np.eye(moved.shape[-1]), values)
    return np.moveaxis(matrices, (-2, -1), axes)


PROFILES: Mapping[str, Rule] = {
    "random": _random,
    "exact": _exact,
    "signs": _signs,
    "tiny": _tiny,
    "critical": _critical,
    "saturated": _saturated,
    "kept": _kept,
}
"""How values of leaves are drawn, by name."""


def gate_values() -> st.SearchStrategy[str]:
    """Names of profiles: `random`; `exact`, 0, -0, 1 and -1 only; `signs`,
    alternating; `tiny`, half of them 1e-30 to 1e-38; `critical`, shares of exactly 0 and 1 and decays of 1; `saturated`, where
    `sigmoid` and `tanh` are at their ends; `kept`, orthogonal matrices, unit
    vectors and keys, numbers in [0, 1]."""
    return st.sampled_from(tuple(PROFILES))


def random_arguments(op: CompiledScan, seed: int, values: str = "random", draw: int = 0) -> Arguments:
    """Arguments of a scan in float64, initial states included, by the profile of a name; the same seed and draw give the same
    numbers. Of draws other than 0, one in four keeps to the profile, one has another for all leaves, one has a profile for each
    leaf; and one is speckled: by the profile, but for some entries, of inputs and states too, that are 0, -0, 1, -1, very small
    or as large as may be.

    Raises KeyError for a name that is none of `PROFILES`.
    """
    rng = np.random.default_rng(seed if draw == 0 else [seed, draw])
    scan, dag = op.scan, op.dag
    rules = _rules(rng, scan, values, draw)
    speckled = _speckled if draw % 4 == SPECKLED and draw else _as_it_is
    gates: dict[str, npt.ArrayLike] = {}
    for leaf, rule in zip(scan.leaves, rules, strict=True):
        size = largest(scan, leaf)
        bounded = leaf.kind == "linear" or not (np.isinf(leaf.low) or np.isinf(leaf.high))
        array = rule(rng, leaf, leaf_shape(scan, dag, leaf), size)
        gates[leaf.name] = speckled(rng, array, size if bounded else 1.0)

    def normal(shape: tuple[int, ...]) -> Floats:
        return speckled(rng, rng.normal(size=shape), LARGE)

    q, k, v = (normal(shape) for shape in (query_shape(scan, dag), key_shape(scan, dag), value_shape(scan, dag)))
    if values == "kept":
        k = k / np.maximum(np.linalg.norm(k, axis=-1, keepdims=True), TINY)
    initial = tuple({name: normal(shape) for name, shape in ports.items()} for ports in state_shapes(scan, dag))
    if scan.normalize == "sum":
        for array in (array for ports in initial for array in ports.values()):
            array[..., -1] = np.abs(array[..., -1])
    return Arguments(q, k, v, gates, initial)


def _rules(rng: np.random.Generator, scan: Scan, values: str, draw: int) -> list[Rule]:
    """A rule for each leaf."""
    own, rules = PROFILES[values], list(PROFILES.values())
    match draw % 4:
        case 2:
            other = rules[draw // 4 % len(rules)]
            return [other for _ in scan.leaves]
        case 3:
            return [rules[int(number)] for number in rng.integers(len(rules), size=len(scan.leaves))]
        case _:
            return [own for _ in scan.leaves]


SPECKLED = 0
"""Which of each four draws is speckled."""
SPECKLES = 0.15
"""How many entries are, of those."""
TINY = 1e-38
"""Hardly a normal number in float32."""


def _speckled(rng: np.random.Generator, array: Floats, largest: float) -> Floats:
    """Some entries replaced by numbers at which something may happen."""
    special = rng.choice([0.0, -0.0, 1.0, -1.0, TINY, -TINY, largest, -largest], array.shape)
    return np.where(rng.random(array.shape) < SPECKLES, special, array)


def _as_it_is(_: np.random.Generator, array: Floats, __: float) -> Floats:
    return array


def largest(scan: Scan, leaf: Leaf) -> float:
    """How large a leaf may be: less where its gate takes an exponential."""
    gates = [gate for gate in scan.gates if gate.name == leaf.name.split(".")[0].split("[")[0]]
    expressions = inside(*(clause.value for gate in gates for clause in gate.clauses))
    raises = any(isinstance(expression, Apply) and expression.function is Function.EXP for expression in expressions)
    return LARGE_EXPONENT if raises else LARGE
